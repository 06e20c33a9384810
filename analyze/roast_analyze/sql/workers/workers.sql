-- Needs: _chunks, _is_failed, _relative_duration, _relative_iqr, _task_runs, _worker_removals, _workers
CREATE VIEW workers AS
WITH runs AS (
    SELECT
        process.process,
        count(*) AS task_runs,
        sum(run.compute_seconds) AS compute_seconds,
        sum(run.nbytes) AS output_bytes
    FROM _task_runs AS run
    ASOF INNER JOIN _workers AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        -- Attempts that began before the recording belong to the first process of the address.
        AND coalesce(run.processing_t, '-infinity') >= process.from_t
    GROUP BY process.process
),
chunk_runs AS (
    SELECT
        process,
        count(*) FILTER (outcome = 'memory') AS chunks,
        sum(compute_seconds) FILTER (NOT has_task) AS alone_seconds,
        sum(output_bytes) FILTER (NOT has_task) AS alone_output_bytes,
        count(*) FILTER (_is_failed(outcome)) AS failed_chunks,
        try_cast(CASE
            WHEN count(*) FILTER (outcome = 'memory') = 0 THEN 0
            ELSE sum(events)
        END AS BIGINT) AS events,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
        sum(compute_seconds) AS chunk_seconds,
        sum(events) / nullif(sum(compute_seconds) FILTER (from_checkpoint IS NOT TRUE), 0)
            AS events_per_second,
        sum(bytes_read) / nullif(sum(compute_seconds) FILTER (bytes_read IS NOT NULL), 0)
            AS bytes_per_second,
        median(whole_seconds) FILTER (outcome = 'memory') AS median_chunk_seconds,
        max(whole_seconds) FILTER (outcome = 'memory') AS max_chunk_seconds,
        _relative_iqr(event_seconds) AS relative_iqr,
        arg_min(filename, (-event_seconds, filename)) FILTER (event_seconds IS NOT NULL)
            AS slowest_file,
        max(memory_peak_bytes) AS peak_memory_bytes
    FROM _chunks
    WHERE process IS NOT NULL
    GROUP BY process
),
samples AS (
    SELECT process.process, max(sample.metrics.memory) AS peak_memory_bytes
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
    coalesce(runs.compute_seconds, 0) + coalesce(chunk_runs.alone_seconds, 0) AS compute_seconds,
    try_cast(
        coalesce(runs.output_bytes, 0) + coalesce(chunk_runs.alone_output_bytes, 0) AS BIGINT
    ) AS output_bytes,
    greatest(
        samples.peak_memory_bytes, chunk_runs.peak_memory_bytes, departures.kill_memory_bytes
    ) AS peak_memory_bytes,
    coalesce(chunk_runs.chunks, 0) AS chunks,
    CASE WHEN chunk_runs.process IS NULL THEN 0 ELSE chunk_runs.events END AS events,
    chunk_runs.bytes_read,
    workers.server_id,
    coalesce(chunk_runs.failed_chunks, 0) AS failed_chunks,
    chunk_runs.chunk_seconds,
    chunk_runs.chunk_seconds
        / nullif(sum(chunk_runs.chunk_seconds) OVER (PARTITION BY workers.trace_id), 0)
        AS chunk_share,
    chunk_runs.events_per_second,
    chunk_runs.bytes_per_second,
    chunk_runs.median_chunk_seconds,
    chunk_runs.max_chunk_seconds,
    chunk_runs.relative_iqr,
    chunk_runs.slowest_file,
    relative_duration.relative_duration,
    relative_duration.relative_duration_error,
    relative_duration.is_slow,
    added.pid,
    added.nanny,
    added.resources,
    added.local_directory,
    workers.trace_id
FROM _workers AS workers
LEFT JOIN _worker_removals AS departures USING (process)
LEFT JOIN raw.worker_added AS added ON workers.seq = added.rowid
LEFT JOIN runs USING (process)
LEFT JOIN chunk_runs USING (process)
LEFT JOIN samples USING (process)
LEFT JOIN _relative_duration AS relative_duration USING (process)
ORDER BY workers.process;

COMMENT ON VIEW workers IS 'Worker processes, with totals and memory. One row per process, in the order in which they joined; addresses without a recorded start come first. Records of a reused address belong to the process that joined last, or the first one if earlier.';
COMMENT ON COLUMN workers.worker IS 'Address. A later process can reuse it.';
COMMENT ON COLUMN workers.name IS 'Worker name, which a restarted worker keeps.';
COMMENT ON COLUMN workers.host IS 'Host name or address.';
COMMENT ON COLUMN workers.nthreads IS 'Number of threads that compute.';
COMMENT ON COLUMN workers.memory_limit_bytes IS 'Memory limit. Null if there is none.';
COMMENT ON COLUMN workers.added_t IS 'Time of joining or start of the recording, in seconds since the epoch. Null if not recorded.';
COMMENT ON COLUMN workers.removed_t IS 'Time of leaving, in seconds since the epoch. Null if the worker did not leave.';
COMMENT ON COLUMN workers.removal_reason IS 'Reason for leaving: killed by its nanny at a given memory, or else Dask''s stimulus_id without the time.';
COMMENT ON COLUMN workers.task_runs IS 'Task attempts that ran on the worker or were assigned to it.';
COMMENT ON COLUMN workers.compute_seconds IS 'Compute time of its attempts. Without a cluster, of its chunks.';
COMMENT ON COLUMN workers.output_bytes IS 'Size of its results.';
COMMENT ON COLUMN workers.peak_memory_bytes IS 'Peak process memory, at a sampling tick, during a measured chunk, or when its nanny killed it.';
COMMENT ON COLUMN workers.chunks IS 'Chunks processed successfully.';
COMMENT ON COLUMN workers.events IS 'Events in these chunks. Events of results from a checkpoint are unknown.';
COMMENT ON COLUMN workers.bytes_read IS 'Bytes read by chunks. Null if not measured.';
COMMENT ON COLUMN workers.server_id IS 'ID of the process.';
COMMENT ON COLUMN workers.failed_chunks IS 'Chunk attempts that erred, were retried, were lost, or were skipped.';
COMMENT ON COLUMN workers.chunk_seconds IS 'Compute time of all its chunk attempts.';
COMMENT ON COLUMN workers.chunk_share IS 'Share of the compute time of all chunk attempts.';
COMMENT ON COLUMN workers.events_per_second IS 'events / chunk_seconds: rate of one thread, failed attempts included, results from a checkpoint excluded.';
COMMENT ON COLUMN workers.bytes_per_second IS 'bytes_read divided by the compute time of the attempts that measured it: rate of one thread.';
COMMENT ON COLUMN workers.median_chunk_seconds IS 'Median compute time of successful chunks.';
COMMENT ON COLUMN workers.max_chunk_seconds IS 'Maximum compute time of successful chunks.';
COMMENT ON COLUMN workers.relative_iqr IS 'Interquartile range of the seconds per event of its chunks, divided by their median.';
COMMENT ON COLUMN workers.slowest_file IS 'File of the chunk with the most seconds per event; the first by name in case of a tie.';
COMMENT ON COLUMN workers.relative_duration IS 'Duration of its chunks relative to the median worker: the median over its chunks of measured time divided by the time expected from dataset, size and file. Null if workers and files cannot be separated: one file, or one worker.';
COMMENT ON COLUMN workers.relative_duration_error IS 'Standard error of relative_duration, from the scatter of chunks.';
COMMENT ON COLUMN workers.is_slow IS 'True if relative_duration, from at least 5 chunks, is at least 1.5, 4 standard errors above 1, and above 1 by 4 times the spread of the faster half of all workers. Of two workers, at least 2.5 is required.';
COMMENT ON COLUMN workers.pid IS 'Process id on its host.';
COMMENT ON COLUMN workers.nanny IS 'Address of its nanny. Null if it has none.';
COMMENT ON COLUMN workers.resources IS 'Dask resources that it offers, as JSON.';
COMMENT ON COLUMN workers.local_directory IS 'Folder for spilled results.';
COMMENT ON COLUMN workers.trace_id IS 'ID of the trace.';
