-- Needs: _tasks
-- Dask derives the restrictions of a task from its annotations.
CREATE VIEW restrictions AS
SELECT
    key,
    prefix,
    task_group,
    workers,
    resources,
    allow_other_workers,
    retries,
    priority,
    trace_id
FROM (
    SELECT
        seq,
        trace_id,
        key,
        prefix,
        "group" AS task_group,
        coalesce(annotations -> '$.workers', annotations -> '$.restrictions') AS restricted,
        CASE json_type(restricted)
            WHEN 'ARRAY' THEN json_transform(restricted, '["VARCHAR"]')
            WHEN 'VARCHAR' THEN [restricted ->> '$']
        END AS workers,
        annotations -> '$.resources' AS resources,
        try_cast(coalesce(
            annotations ->> '$.allow_other_workers', annotations ->> '$.loose_restrictions'
        ) AS BOOLEAN) AS allow_other_workers,
        try_cast(annotations ->> '$.retries' AS BIGINT) AS retries,
        try_cast(annotations ->> '$.priority' AS DOUBLE) AS priority
    FROM _tasks
    WHERE json_type(annotations) = 'OBJECT'
)
WHERE
    workers IS NOT NULL
    OR resources IS NOT NULL
    OR retries IS NOT NULL
    OR priority IS NOT NULL
ORDER BY trace_id, seq;

COMMENT ON VIEW restrictions IS 'Worker restrictions, resources and priorities of tasks. One row per task that has any of these annotations.';
COMMENT ON COLUMN restrictions.key IS 'Task key.';
COMMENT ON COLUMN restrictions.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN restrictions.task_group IS 'Task group of the task.';
COMMENT ON COLUMN restrictions.workers IS 'Workers or hosts that the task may run on.';
COMMENT ON COLUMN restrictions.resources IS 'Dask resources required, as JSON.';
COMMENT ON COLUMN restrictions.allow_other_workers IS 'True if the task may run elsewhere when none of these workers is available.';
COMMENT ON COLUMN restrictions.retries IS 'Number of retries allowed.';
COMMENT ON COLUMN restrictions.priority IS 'User priority. Higher values run first.';
COMMENT ON COLUMN restrictions.trace_id IS 'ID of the trace.';
