-- Needs: _attempt_ends, _task_runs, _tasks
CREATE VIEW dependencies AS
WITH edges AS (
    SELECT
        seq AS task,
        trace_id,
        key,
        prefix,
        "group" AS task_group,
        stimulus_id,
        unnest(dependencies) AS dependency
    FROM _tasks
),
-- Attempt that used the result: the last successful one, or else the last one.
last_attempts AS (
    SELECT
        trace_id,
        key,
        max_by(
            {seq: seq, end_seq: end_seq, worker: worker}, (outcome = 'memory', attempt)
        ) AS run
    FROM _task_runs
    GROUP BY trace_id, key
),
needed AS (
    SELECT
        edges.*,
        last_attempts.run.worker AS worker,
        last_attempts.run.end_seq AS end_seq,
        -- A task that was never dispatched would use the final result.
        coalesce(last_attempts.run.seq, 9223372036854775807) AS needed_seq
    FROM edges
    LEFT JOIN last_attempts USING (trace_id, key)
),
results AS (
    SELECT trace_id, key, end_seq, worker, nbytes
    FROM _task_runs
    WHERE outcome = 'memory'
)
SELECT
    needed.key,
    needed.dependency,
    needed.prefix,
    dependency_task.prefix AS dependency_prefix,
    result.nbytes AS bytes,
    needed.worker,
    result.worker AS dependency_worker,
    needed.worker <> result.worker AS is_moved,
    CASE
        WHEN len(ending.startstops) > 0 AND result.worker IS NOT NULL THEN list_contains(
            list_transform(
                list_filter(ending.startstops, lambda part: part.action = 'transfer'),
                lambda part: part.source
            ),
            result.worker
        )
    END AS has_transfer,
    needed.task_group,
    dependency_task."group" AS dependency_group,
    needed.stimulus_id,
    needed.trace_id
FROM needed
LEFT JOIN _tasks AS dependency_task
    ON needed.trace_id = dependency_task.trace_id AND needed.dependency = dependency_task.key
LEFT JOIN _attempt_ends AS ending ON needed.end_seq = ending.seq
ASOF LEFT JOIN results AS result
    ON needed.trace_id = result.trace_id
    AND needed.dependency = result.key
    AND needed.needed_seq > result.end_seq
ORDER BY needed.trace_id, needed.task, needed.dependency;

COMMENT ON VIEW dependencies IS 'Edges of the task graph, with the workers at both ends. One row per task and dependency. For a task with several attempts, the last successful attempt is used, or else the last one. For the dependency, it is the latest result available when that attempt began. Columns of the run are null for tasks that never ran.';
COMMENT ON COLUMN dependencies.key IS 'Key of the task.';
COMMENT ON COLUMN dependencies.dependency IS 'Key of the task whose result it needs.';
COMMENT ON COLUMN dependencies.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN dependencies.dependency_prefix IS 'Key prefix of the dependency. Null if it was not recorded as a task.';
COMMENT ON COLUMN dependencies.bytes IS 'Size of the result. Null if its computation was not recorded, as for scattered data.';
COMMENT ON COLUMN dependencies.worker IS 'Address of the worker that ran the task or was assigned it.';
COMMENT ON COLUMN dependencies.dependency_worker IS 'Address of the worker that computed the result.';
COMMENT ON COLUMN dependencies.is_moved IS 'True if the two workers differ, so that the result was transferred. Several tasks on a worker share one transfer.';
COMMENT ON COLUMN dependencies.has_transfer IS 'True if this task reported a transfer from that worker. Dask reports a transfer with only one of the tasks that need it, and may fetch a copy from a third worker. Null if the task reported no times.';
COMMENT ON COLUMN dependencies.task_group IS 'Task group of the task.';
COMMENT ON COLUMN dependencies.dependency_group IS 'Task group of the dependency. Null if it was not recorded as a task.';
COMMENT ON COLUMN dependencies.stimulus_id IS 'Graph that the task was submitted with, as in graph_updates.';
COMMENT ON COLUMN dependencies.trace_id IS 'ID of the trace.';
