-- Needs: _task_runs, _tasks
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
-- The attempt that the result was taken for: the last one that ended well, or the last one.
takers AS (
    SELECT
        trace_id,
        key,
        max_by(
            {seq: seq, end_seq: end_seq, worker: worker}, (outcome = 'memory', attempt)
        ) AS run
    FROM _task_runs
    GROUP BY trace_id, key
),
taken AS (
    SELECT
        edges.*,
        takers.run.worker AS worker,
        takers.run.end_seq AS end_seq,
        -- What was never sent to a worker would take what is there in the end.
        coalesce(takers.run.seq, 9223372036854775807) AS taken_seq
    FROM edges
    LEFT JOIN takers USING (trace_id, key)
),
results AS (
    SELECT trace_id, key, end_seq, worker, nbytes
    FROM _task_runs
    WHERE outcome = 'memory'
)
SELECT
    taken.key,
    taken.dependency,
    taken.prefix,
    there.prefix AS dependency_prefix,
    result.nbytes AS bytes,
    taken.worker,
    result.worker AS dependency_worker,
    taken.worker <> result.worker AS is_moved,
    CASE
        WHEN len(ending.startstops) > 0 AND result.worker IS NOT NULL THEN list_contains(
            list_transform(
                list_filter(ending.startstops, lambda part: part.action = 'transfer'),
                lambda part: part.source
            ),
            result.worker
        )
    END AS has_transfer,
    taken.task_group,
    there."group" AS dependency_group,
    taken.stimulus_id,
    taken.trace_id
FROM taken
LEFT JOIN _tasks AS there
    ON taken.trace_id = there.trace_id AND taken.dependency = there.key
LEFT JOIN raw.transition AS ending ON taken.end_seq = ending.rowid
ASOF LEFT JOIN results AS result
    ON taken.trace_id = result.trace_id
    AND taken.dependency = result.key
    AND taken.taken_seq > result.end_seq
ORDER BY taken.trace_id, taken.task, taken.dependency;

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
COMMENT ON COLUMN dependencies.trace_id IS 'Trace identity.';
