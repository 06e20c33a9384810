-- Needs: _tasks, _task_runs, _workers, _chunks, cluster_samples, failures, loss
CREATE VIEW run AS
WITH recording AS (
    SELECT
        trace_id,
        min(start_t) AS start_t,
        max(stop_t) AS stop_t
    FROM raw.segments
    GROUP BY trace_id
),
sampled_threads AS (
    SELECT trace_id, worker, max(nthreads) AS nthreads
    FROM raw.worker_sample
    GROUP BY trace_id, worker
),
presence AS (
    SELECT
        workers.trace_id,
        coalesce(workers.nthreads, sampled_threads.nthreads) AS nthreads,
        coalesce(workers.added_t, recording.start_t) AS from_t,
        coalesce(workers.removed_t, recording.stop_t) AS to_t
    FROM _workers AS workers
    INNER JOIN recording USING (trace_id)
    LEFT JOIN sampled_threads USING (trace_id, worker)
),
changes AS (
    SELECT trace_id, from_t AS t, 1 AS workers, nthreads FROM presence
    UNION ALL
    SELECT trace_id, to_t, -1, -nthreads FROM presence
),
levels AS (
    -- Changes of one instant count together, so that a worker that replaces another one
    -- is not a peak.
    SELECT
        trace_id,
        sum(sum(workers)) OVER (PARTITION BY trace_id ORDER BY t) AS workers,
        sum(sum(nthreads)) OVER (PARTITION BY trace_id ORDER BY t) AS nthreads
    FROM changes
    GROUP BY trace_id, t
),
peaks AS (
    SELECT trace_id, max(workers) AS workers, max(nthreads) AS nthreads
    FROM levels
    GROUP BY trace_id
),
cores AS (
    SELECT
        trace_id,
        count(*) AS workers,
        sum(nthreads * greatest(to_t - from_t, 0)) AS core_seconds
    FROM presence
    GROUP BY trace_id
),
runs AS (
    SELECT
        trace_id,
        max(end_t) - min(processing_t) AS busy_seconds,
        sum(compute_seconds) AS compute_seconds,
        count(*) AS task_runs,
        count(*) FILTER (outcome = 'memory') AS memory,
        count(*) FILTER (outcome = 'erred') AS erred,
        count(*) FILTER (outcome = 'retried') AS retried,
        count(*) FILTER (outcome = 'lost') AS lost,
        count(*) FILTER (outcome = 'rescheduled') AS rescheduled,
        count(*) FILTER (outcome = 'cancelled') AS cancelled,
        count(*) FILTER (outcome = 'unfinished') AS unfinished,
        sum(nbytes) AS output_bytes,
        sum(transfer_seconds) AS transfer_seconds
    FROM _task_runs
    GROUP BY trace_id
),
submitted AS (
    SELECT trace_id, count(*) AS tasks FROM _tasks GROUP BY trace_id
),
chunk_runs AS (
    SELECT
        trace_id,
        count(*) FILTER (is_first_result) AS chunks,
        count(*) AS chunk_attempts,
        sum(events) FILTER (is_first_result) AS events,
        max(end_t) - min(processing_t) AS chunk_wall_seconds,
        sum(bytes_read) AS bytes_read
    FROM _chunks
    GROUP BY trace_id
),
memory AS (
    SELECT trace_id, max(memory_bytes) AS peak_memory_bytes
    FROM cluster_samples
    GROUP BY trace_id
),
failed AS (
    SELECT trace_id, count(*) AS failures FROM failures GROUP BY trace_id
),
lost_records AS (
    SELECT trace_id, sum(records) AS lost_records FROM loss GROUP BY trace_id
)
SELECT
    recording.start_t,
    recording.stop_t,
    recording.stop_t - recording.start_t AS wall_seconds,
    runs.busy_seconds,
    coalesce(cores.workers, 0) AS workers,
    coalesce(peaks.workers, 0)::BIGINT AS peak_workers,
    coalesce(peaks.nthreads, 0)::BIGINT AS peak_nthreads,
    cores.core_seconds,
    runs.compute_seconds,
    runs.compute_seconds / nullif(cores.core_seconds, 0) AS core_efficiency,
    coalesce(submitted.tasks, 0) AS tasks,
    coalesce(runs.task_runs, 0) AS task_runs,
    coalesce(runs.memory, 0) AS memory,
    coalesce(runs.erred, 0) AS erred,
    coalesce(runs.retried, 0) AS retried,
    coalesce(runs.lost, 0) AS lost,
    coalesce(runs.rescheduled, 0) AS rescheduled,
    coalesce(runs.cancelled, 0) AS cancelled,
    coalesce(runs.unfinished, 0) AS unfinished,
    coalesce(failed.failures, 0) AS failures,
    coalesce(chunk_runs.chunks, 0) AS chunks,
    coalesce(chunk_runs.chunk_attempts, 0) AS chunk_attempts,
    coalesce(chunk_runs.events, 0)::BIGINT AS events,
    chunk_runs.events / nullif(chunk_runs.chunk_wall_seconds, 0) AS events_per_second,
    chunk_runs.chunk_wall_seconds,
    chunk_runs.bytes_read::BIGINT AS bytes_read,
    runs.output_bytes::BIGINT AS output_bytes,
    runs.transfer_seconds,
    memory.peak_memory_bytes,
    coalesce(lost_records.lost_records, 0)::BIGINT AS lost_records,
    recording.trace_id
FROM recording
LEFT JOIN cores USING (trace_id)
LEFT JOIN peaks USING (trace_id)
LEFT JOIN runs USING (trace_id)
LEFT JOIN submitted USING (trace_id)
LEFT JOIN chunk_runs USING (trace_id)
LEFT JOIN memory USING (trace_id)
LEFT JOIN failed USING (trace_id)
LEFT JOIN lost_records USING (trace_id)
ORDER BY recording.trace_id;

COMMENT ON VIEW run IS 'The headline: one row per trace.';
COMMENT ON COLUMN run.start_t IS 'First record, in seconds since the epoch.';
COMMENT ON COLUMN run.stop_t IS 'Last record, in seconds since the epoch.';
COMMENT ON COLUMN run.wall_seconds IS 'Length of the recording.';
COMMENT ON COLUMN run.busy_seconds IS 'From the first task that was sent to a worker to the last that ended.';
COMMENT ON COLUMN run.workers IS 'Worker processes ever seen.';
COMMENT ON COLUMN run.peak_workers IS 'Most workers at one time.';
COMMENT ON COLUMN run.peak_nthreads IS 'Most threads at one time.';
COMMENT ON COLUMN run.core_seconds IS 'What the cluster offered: threads times the time that their workers were there, within the recording.';
COMMENT ON COLUMN run.compute_seconds IS 'Computing time of all attempts, failed ones included.';
COMMENT ON COLUMN run.core_efficiency IS 'compute_seconds / core_seconds.';
COMMENT ON COLUMN run.tasks IS 'Keys that entered the graph.';
COMMENT ON COLUMN run.task_runs IS 'Attempts at them.';
COMMENT ON COLUMN run.memory IS 'Attempts that ended well.';
COMMENT ON COLUMN run.erred IS 'Attempts that failed for good.';
COMMENT ON COLUMN run.retried IS 'Attempts that failed and were tried again.';
COMMENT ON COLUMN run.lost IS 'Attempts whose worker went away.';
COMMENT ON COLUMN run.rescheduled IS 'Attempts that asked for another worker.';
COMMENT ON COLUMN run.cancelled IS 'Attempts that nobody wanted any more.';
COMMENT ON COLUMN run.unfinished IS 'Attempts that outlast the trace.';
COMMENT ON COLUMN run.failures IS 'Rows in failures.';
COMMENT ON COLUMN run.chunks IS 'Chunks that were processed; one whose result was lost and computed again counts once.';
COMMENT ON COLUMN run.chunk_attempts IS 'All attempts at chunks.';
COMMENT ON COLUMN run.events IS 'Events in these chunks.';
COMMENT ON COLUMN run.events_per_second IS 'events / chunk_wall_seconds: the rate of the whole cluster.';
COMMENT ON COLUMN run.chunk_wall_seconds IS 'From the first chunk that was sent to a worker to the last that ended.';
COMMENT ON COLUMN run.bytes_read IS 'Bytes that all attempts at chunks read; null if not measured.';
COMMENT ON COLUMN run.output_bytes IS 'Size of all results.';
COMMENT ON COLUMN run.transfer_seconds IS 'Time of fetching dependencies from other workers.';
COMMENT ON COLUMN run.peak_memory_bytes IS 'Most memory of all worker processes together, at a tick.';
COMMENT ON COLUMN run.lost_records IS 'Records known to be missing from the trace; the view loss says why.';
COMMENT ON COLUMN run.trace_id IS 'Identity of the recording.';
