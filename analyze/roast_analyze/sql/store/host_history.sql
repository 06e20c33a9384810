-- Needs: runs, workers
CREATE VIEW host_history AS
WITH hosts AS (
    SELECT
        host,
        trace_id,
        count(*) AS workers,
        try_cast(sum(nthreads) AS BIGINT) AS nthreads,
        sum(task_runs)::BIGINT AS task_runs,
        sum(compute_seconds) AS compute_seconds,
        max(peak_memory_bytes) AS peak_memory_bytes,
        sum(chunks)::BIGINT AS chunks,
        sum(failed_chunks)::BIGINT AS failed_chunks,
        try_cast(sum(events) AS BIGINT) AS events,
        sum(chunk_seconds) AS chunk_seconds,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
        count(*) FILTER (is_slow) AS slow_workers,
        count(*) FILTER (removal_reason IS NOT NULL) AS removed_workers,
        -- Weighted by the number of chunks from which each value was computed.
        sum(relative_duration * chunks)
            / nullif(sum(chunks) FILTER (relative_duration IS NOT NULL), 0) AS relative_duration
    FROM workers
    WHERE host IS NOT NULL
    GROUP BY host, trace_id
)
SELECT
    hosts.host,
    row_number() OVER (PARTITION BY hosts.host ORDER BY runs.start_t, trace_id) AS run_number,
    runs.start_t,
    runs.program,
    hosts.workers,
    hosts.nthreads,
    hosts.task_runs,
    hosts.compute_seconds,
    hosts.peak_memory_bytes,
    hosts.chunks,
    hosts.failed_chunks,
    hosts.events,
    hosts.events / nullif(hosts.chunk_seconds, 0) AS events_per_second,
    hosts.bytes_read,
    hosts.relative_duration,
    hosts.slow_workers,
    hosts.removed_workers,
    hosts.trace_id
FROM hosts
INNER JOIN runs USING (trace_id)
ORDER BY hosts.host, run_number;

COMMENT ON VIEW host_history IS 'Hosts of workers over time. One row per host and run.';
COMMENT ON COLUMN host_history.host IS 'Host of the workers.';
COMMENT ON COLUMN host_history.run_number IS 'Number of the run among those on the host, from 1.';
COMMENT ON COLUMN host_history.start_t IS 'Start of the run, in seconds since the epoch.';
COMMENT ON COLUMN host_history.program IS 'Program of the run.';
COMMENT ON COLUMN host_history.workers IS 'Worker processes on the host.';
COMMENT ON COLUMN host_history.nthreads IS 'Threads of these workers.';
COMMENT ON COLUMN host_history.task_runs IS 'Task attempts on the host.';
COMMENT ON COLUMN host_history.compute_seconds IS 'Compute time of these attempts.';
COMMENT ON COLUMN host_history.peak_memory_bytes IS 'Maximum memory of a worker.';
COMMENT ON COLUMN host_history.chunks IS 'Chunks with a result.';
COMMENT ON COLUMN host_history.failed_chunks IS 'Failed attempts at chunks.';
COMMENT ON COLUMN host_history.events IS 'Events of chunks with a result.';
COMMENT ON COLUMN host_history.events_per_second IS 'Events per second of the time of chunks.';
COMMENT ON COLUMN host_history.bytes_read IS 'Bytes that chunks read.';
COMMENT ON COLUMN host_history.relative_duration IS 'Mean of relative_duration of the workers, as in workers, weighted by their chunks.';
COMMENT ON COLUMN host_history.slow_workers IS 'Workers that were slow, as in workers.';
COMMENT ON COLUMN host_history.removed_workers IS 'Workers that left during the run.';
COMMENT ON COLUMN host_history.trace_id IS 'ID of the trace.';
