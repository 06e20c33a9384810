-- Needs: _attempt_ends, _task_runs, _task_states
CREATE VIEW latencies AS
WITH slots AS (
    SELECT trace_id, until_seq AS seq, until_t - from_t AS seconds
    FROM _task_states
    WHERE state IN ('queued', 'no-worker')
),
phases AS (
    SELECT
        run.seq,
        list_transform(ending.startstops, lambda part: part.start) AS starts,
        list_transform(ending.startstops, lambda part: part.stop) AS stops,
        list_filter(ending.startstops, lambda part: part.action = 'transfer') AS transfers,
        list_filter(ending.startstops, lambda part: part.action <> 'transfer') AS others
    FROM _task_runs AS run
    INNER JOIN _attempt_ends AS ending ON run.end_seq = ending.seq
    WHERE len(ending.startstops) > 0
),
instants AS (
    SELECT
        seq,
        list_min(starts) AS first_t,
        list_max(stops) AS last_t,
        list_min(list_transform(transfers, lambda part: part.start)) AS fetch_t,
        list_max(list_transform(transfers, lambda part: part.stop)) AS fetched_t,
        list_min(list_transform(others, lambda part: part.start)) AS execute_t
    FROM phases
)
SELECT
    run.key,
    run.prefix,
    run.attempt,
    run.worker,
    run.outcome,
    run.processing_t,
    run.queued_seconds - coalesce(slots.seconds, 0) AS dependency_seconds,
    CASE
        WHEN run.queued_seconds IS NULL THEN slots.seconds
        ELSE coalesce(slots.seconds, 0)
    END AS slot_seconds,
    first_t - run.processing_t AS dispatch_seconds,
    fetched_t - fetch_t AS fetch_seconds,
    execute_t - fetched_t AS thread_wait_seconds,
    last_t - execute_t AS execute_seconds,
    run.end_t - last_t AS report_seconds,
    run.end_t - run.processing_t AS processing_seconds,
    run.run_id,
    run.trace_id
FROM _task_runs AS run
LEFT JOIN slots USING (trace_id, seq)
LEFT JOIN instants USING (seq)
ORDER BY run.trace_id, run.seq;

COMMENT ON VIEW latencies IS 'Waiting and execution time of task attempts, by phase. One row per attempt, as in task_runs. A task first waits on the scheduler (dependency_seconds, slot_seconds). After dispatch, processing_seconds = dispatch_seconds + fetch_seconds + thread_wait_seconds + execute_seconds + report_seconds (null counts as 0). Workers estimate the scheduler''s clock, so times between the two can be slightly off or even negative.';
COMMENT ON COLUMN latencies.key IS 'Task key.';
COMMENT ON COLUMN latencies.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN latencies.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN latencies.worker IS 'Worker address.';
COMMENT ON COLUMN latencies.outcome IS 'Outcome of the attempt, as in task_runs.';
COMMENT ON COLUMN latencies.processing_t IS 'Dispatch by the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN latencies.dependency_seconds IS 'Time on the scheduler in state waiting, until all dependencies were computed. dependency_seconds + slot_seconds = queued_seconds of task_runs. Null if the start of waiting was not recorded.';
COMMENT ON COLUMN latencies.slot_seconds IS 'Time on the scheduler in state queued or no-worker, until a worker had a free thread. For tasks already queued when recording began, since then.';
COMMENT ON COLUMN latencies.dispatch_seconds IS 'Time from dispatch to the first phase reported by the worker. Null if no phases were reported.';
COMMENT ON COLUMN latencies.fetch_seconds IS 'Time from the start of the first transfer of a dependency to the end of the last. Null without transfers.';
COMMENT ON COLUMN latencies.thread_wait_seconds IS 'Time from the last transfer to execution: waiting for a thread. Null without transfers, when it is part of dispatch_seconds.';
COMMENT ON COLUMN latencies.execute_seconds IS 'Execution time: deserializing, reading from disk, computing, and gaps between these.';
COMMENT ON COLUMN latencies.report_seconds IS 'Time from the end on the worker to the end recorded by the scheduler.';
COMMENT ON COLUMN latencies.processing_seconds IS 'Time from dispatch to the end recorded by the scheduler: end_t - processing_t of task_runs.';
COMMENT ON COLUMN latencies.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN latencies.trace_id IS 'ID of the trace.';
