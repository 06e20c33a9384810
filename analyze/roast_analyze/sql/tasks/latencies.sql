-- Needs: _task_runs, _task_states
CREATE VIEW latencies AS
WITH held AS (
    SELECT trace_id, until_seq AS seq, until_t - from_t AS seconds
    FROM _task_states
    WHERE state IN ('queued', 'no-worker')
),
parts AS (
    SELECT
        run.seq,
        list_transform(ending.startstops, lambda part: part.start) AS starts,
        list_transform(ending.startstops, lambda part: part.stop) AS stops,
        list_filter(ending.startstops, lambda part: part.action = 'transfer') AS transfers,
        list_filter(ending.startstops, lambda part: part.action <> 'transfer') AS others
    FROM _task_runs AS run
    INNER JOIN raw.transition AS ending ON run.end_seq = ending.rowid
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
    FROM parts
)
SELECT
    run.key,
    run.prefix,
    run.attempt,
    run.worker,
    run.outcome,
    run.processing_t,
    run.queued_seconds - coalesce(held.seconds, 0) AS dependency_seconds,
    CASE
        WHEN run.queued_seconds IS NULL THEN held.seconds
        ELSE coalesce(held.seconds, 0)
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
LEFT JOIN held USING (trace_id, seq)
LEFT JOIN instants USING (seq)
ORDER BY run.trace_id, run.seq;

COMMENT ON VIEW latencies IS 'Where the time of attempts went, waiting included: one row per attempt, as in task_runs. First a task waits on the scheduler (dependency_seconds, slot_seconds); then it is sent to a worker, which takes processing_seconds = dispatch_seconds + fetch_seconds + thread_wait_seconds + execute_seconds + report_seconds (what is null counts as 0). Workers estimate the scheduler''s clock, so that times between the two can be slightly off, even negative.';
COMMENT ON COLUMN latencies.key IS 'Key of the task.';
COMMENT ON COLUMN latencies.prefix IS 'Key prefix: what kind of task it is; null if the task was not recorded.';
COMMENT ON COLUMN latencies.attempt IS 'Number of the attempt within its key, from 1.';
COMMENT ON COLUMN latencies.worker IS 'Address of the worker.';
COMMENT ON COLUMN latencies.outcome IS 'How it ended, as in task_runs.';
COMMENT ON COLUMN latencies.processing_t IS 'When the scheduler sent it to a worker, in seconds since the epoch.';
COMMENT ON COLUMN latencies.dependency_seconds IS 'Time on the scheduler until the results that it takes were there: in state waiting. With slot_seconds it is queued_seconds of task_runs, and like that null if nobody saw it become waiting.';
COMMENT ON COLUMN latencies.slot_seconds IS 'Time on the scheduler, ready, until a worker had a thread for it: in state queued, or no-worker; what was so when recording began has been since then.';
COMMENT ON COLUMN latencies.dispatch_seconds IS 'Time from the scheduler to the first thing that the worker did for it: the way there, and waiting there; null if the worker reported no times.';
COMMENT ON COLUMN latencies.fetch_seconds IS 'Time from the begin of the first transfer of a dependency to the end of the last; null if it tells of none.';
COMMENT ON COLUMN latencies.thread_wait_seconds IS 'Time from the last transfer to execution: waiting for a thread; null without transfers, when it is in dispatch_seconds.';
COMMENT ON COLUMN latencies.execute_seconds IS 'Time of execution: deserializing, reading from disk, computing, and what lies between.';
COMMENT ON COLUMN latencies.report_seconds IS 'Time from the end on the worker until the scheduler heard of it.';
COMMENT ON COLUMN latencies.processing_seconds IS 'Time from the scheduler to the scheduler: end_t - processing_t of task_runs.';
COMMENT ON COLUMN latencies.run_id IS 'Number that Dask gave the attempt.';
COMMENT ON COLUMN latencies.trace_id IS 'Identity of the recording.';
