-- Needs: _workers, _departures, _task_runs, _chunks
CREATE VIEW workers AS
WITH runs AS (
    SELECT
        process.process,
        count(*) AS task_runs,
        sum(run.compute_seconds) AS compute_seconds,
        sum(run.nbytes)::BIGINT AS output_bytes
    FROM _task_runs AS run
    ASOF INNER JOIN _workers AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        AND run.processing_t >= process.from_t
    GROUP BY process.process
),
chunk_runs AS (
    SELECT
        process.process,
        count(*) FILTER (chunk.outcome = 'memory') AS chunks,
        sum(chunk.events) FILTER (chunk.outcome = 'memory')::BIGINT AS events,
        sum(chunk.bytes_read)::BIGINT AS bytes_read
    FROM _chunks AS chunk
    ASOF INNER JOIN _workers AS process
        ON chunk.trace_id = process.trace_id
        AND chunk.worker = process.worker
        AND chunk.processing_t >= process.from_t
    GROUP BY process.process
),
samples AS (
    SELECT process.process, max(sample.memory) AS peak_memory_bytes
    FROM raw.worker_sample AS sample
    ASOF INNER JOIN _workers AS process
        ON sample.trace_id = process.trace_id
        AND sample.worker = process.worker
        AND sample.t >= process.from_t
    GROUP BY process.process
)
SELECT
    workers.worker,
    workers.name,
    workers.host,
    workers.nthreads,
    workers.memory_limit_bytes,
    workers.added_t,
    workers.removed_t,
    departures.reason AS removal_reason,
    coalesce(runs.task_runs, 0) AS task_runs,
    coalesce(runs.compute_seconds, 0) AS compute_seconds,
    coalesce(runs.output_bytes, 0) AS output_bytes,
    samples.peak_memory_bytes,
    coalesce(chunk_runs.chunks, 0) AS chunks,
    coalesce(chunk_runs.events, 0) AS events,
    chunk_runs.bytes_read,
    workers.server_id,
    workers.trace_id
FROM _workers AS workers
LEFT JOIN _departures AS departures USING (process)
LEFT JOIN runs USING (process)
LEFT JOIN chunk_runs USING (process)
LEFT JOIN samples USING (process)
ORDER BY workers.process;

COMMENT ON VIEW workers IS 'Worker processes and what they did: one row per process, in the order in which they came.';
COMMENT ON COLUMN workers.worker IS 'Address; a later process can have it again.';
COMMENT ON COLUMN workers.name IS 'Name, which a restarted worker keeps.';
COMMENT ON COLUMN workers.host IS 'Host that it ran on.';
COMMENT ON COLUMN workers.nthreads IS 'Threads that compute.';
COMMENT ON COLUMN workers.memory_limit_bytes IS 'Memory it may use; null if there is no limit.';
COMMENT ON COLUMN workers.added_t IS 'When it came, or when recording began, in seconds since the epoch; null if not recorded.';
COMMENT ON COLUMN workers.removed_t IS 'When it went, in seconds since the epoch; null if it was there to the end.';
COMMENT ON COLUMN workers.removal_reason IS 'Why it went, as Dask names it.';
COMMENT ON COLUMN workers.task_runs IS 'Attempts that ran on it, or were sent to it.';
COMMENT ON COLUMN workers.compute_seconds IS 'Their computing time.';
COMMENT ON COLUMN workers.output_bytes IS 'Size of their results.';
COMMENT ON COLUMN workers.peak_memory_bytes IS 'Most memory of the process at any tick.';
COMMENT ON COLUMN workers.chunks IS 'Chunks that ended well on it.';
COMMENT ON COLUMN workers.events IS 'Events in these chunks.';
COMMENT ON COLUMN workers.bytes_read IS 'Bytes that chunks read on it; null if it was not measured.';
COMMENT ON COLUMN workers.server_id IS 'Identity of the process.';
COMMENT ON COLUMN workers.trace_id IS 'Identity of the recording.';
