-- Needs: _task_runs, _worker_memory
-- Heartbeats contain the memory of a process, which Dask measures every 0.5 s by default: an attempt that
-- computes for all of this time is one of those that used it. Memory that several of them use at the same time
-- cannot be divided.
CREATE VIEW task_memory AS
WITH samples AS (
    -- A sample repeats the last heartbeat.
    SELECT DISTINCT
        trace_id,
        worker,
        last_seen AS t,
        metrics.memory AS memory_bytes,
        metrics.memory - greatest(coalesce(metrics.managed_bytes, 0) - coalesce(metrics.spilled_memory, 0), 0)
            AS unmanaged_bytes
    FROM raw.worker_sample
    WHERE metrics.memory IS NOT NULL
),
attempts AS (
    SELECT
        seq,
        trace_id,
        worker,
        key,
        coalesce(prefix, '?') AS prefix,
        coalesce(compute_start_t, execute_start_t) AS start_t,
        coalesce(compute_stop_t, end_t, 'infinity'::DOUBLE) AS stop_t
    FROM _task_runs
    WHERE start_t IS NOT NULL
),
computing AS (
    SELECT
        sample.*,
        attempt.seq,
        attempt.key,
        attempt.prefix,
        attempt.start_t <= sample.t - 0.5 AND attempt.stop_t >= sample.t AS is_whole
    FROM samples AS sample
    INNER JOIN attempts AS attempt
        ON sample.trace_id = attempt.trace_id
        AND sample.worker = attempt.worker
        AND attempt.start_t <= sample.t
        AND attempt.stop_t >= sample.t - 0.5
),
counted AS (
    SELECT
        *,
        count(*) OVER at_once AS attempts,
        list_sort(list(prefix) OVER at_once) AS prefixes
    FROM computing
    WINDOW at_once AS (PARTITION BY trace_id, worker, t)
),
summed AS (
    SELECT
        trace_id,
        prefix,
        count(DISTINCT seq) AS attempts,
        count(*) AS samples,
        count(*) FILTER (attempts = 1) AS alone_samples,
        max(memory_bytes) FILTER (attempts = 1) AS alone_peak_bytes,
        max(unmanaged_bytes) FILTER (attempts = 1) AS alone_unmanaged_bytes,
        max(memory_bytes) AS peak_bytes,
        arg_max({key: key, worker: worker, t: t, attempts: attempts, prefixes: list_distinct(prefixes)}, memory_bytes)
            AS peak
    FROM counted
    WHERE is_whole
    GROUP BY trace_id, prefix
)
SELECT
    prefix,
    attempts,
    samples,
    alone_samples,
    alone_peak_bytes,
    alone_unmanaged_bytes,
    peak_bytes,
    peak.attempts AS peak_attempts,
    list_sort(peak.prefixes) AS peak_prefixes,
    peak.key AS peak_key,
    peak.worker AS peak_worker,
    peak.t AS peak_t,
    nullif(idle.idle_bytes, 0) AS idle_bytes,
    trace_id
FROM summed
LEFT JOIN (SELECT trace_id, any_value(idle_bytes) AS idle_bytes FROM _worker_memory GROUP BY trace_id) AS idle
    USING (trace_id)
ORDER BY trace_id, peak_bytes DESC, prefix;

COMMENT ON VIEW task_memory IS 'Process memory of workers while tasks computed, from heartbeats. One row per prefix with an attempt that computed for at least 0.5 s before a heartbeat. Dask measures memory every 0.5 s by default: shorter peaks are not known, and memory that several tasks of a process use at the same time cannot be divided.';
COMMENT ON COLUMN task_memory.prefix IS 'Key prefix of the tasks.';
COMMENT ON COLUMN task_memory.attempts IS 'Attempts with a heartbeat.';
COMMENT ON COLUMN task_memory.samples IS 'Heartbeats while attempts computed, one for each attempt.';
COMMENT ON COLUMN task_memory.alone_samples IS 'Heartbeats at which no other task computed in the process.';
COMMENT ON COLUMN task_memory.alone_peak_bytes IS 'Largest process memory at these heartbeats, with results that the worker held.';
COMMENT ON COLUMN task_memory.alone_unmanaged_bytes IS 'Largest process memory at these heartbeats, without results that the worker held. It includes that of the interpreter and its modules (idle_bytes).';
COMMENT ON COLUMN task_memory.peak_bytes IS 'Largest process memory at all heartbeats, with that of other tasks.';
COMMENT ON COLUMN task_memory.peak_attempts IS 'Attempts that computed in the process at the heartbeat of peak_bytes.';
COMMENT ON COLUMN task_memory.peak_prefixes IS 'Prefixes of these attempts.';
COMMENT ON COLUMN task_memory.peak_key IS 'Task of the prefix at the heartbeat of peak_bytes.';
COMMENT ON COLUMN task_memory.peak_worker IS 'Worker address of peak_bytes.';
COMMENT ON COLUMN task_memory.peak_t IS 'Time of the heartbeat of peak_bytes, in seconds since the epoch.';
COMMENT ON COLUMN task_memory.idle_bytes IS 'Least process memory, without results, of a worker of the trace before its first task. Null if it is not known.';
COMMENT ON COLUMN task_memory.trace_id IS 'ID of the trace.';
