-- Needs: _tasks
-- Dask makes the restrictions of a task of its annotations.
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
        coalesce(annotations -> '$.workers', annotations -> '$.restrictions') AS told,
        CASE json_type(told)
            WHEN 'ARRAY' THEN json_transform(told, '["VARCHAR"]')
            WHEN 'VARCHAR' THEN [told ->> '$']
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

COMMENT ON VIEW restrictions IS 'Where tasks may run and what they need, as their annotations say: one row per task with workers, resources, retries or a priority of its own.';
COMMENT ON COLUMN restrictions.key IS 'Key of the task.';
COMMENT ON COLUMN restrictions.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN restrictions.task_group IS 'Task group of the task.';
COMMENT ON COLUMN restrictions.workers IS 'Workers or hosts that it may run on.';
COMMENT ON COLUMN restrictions.resources IS 'Dask resources that it takes, as JSON.';
COMMENT ON COLUMN restrictions.allow_other_workers IS 'Whether it may run elsewhere if none of its workers is there.';
COMMENT ON COLUMN restrictions.retries IS 'How often it may be tried again.';
COMMENT ON COLUMN restrictions.priority IS 'Priority that the user gave it; the larger goes first.';
COMMENT ON COLUMN restrictions.trace_id IS 'Identity of the recording.';
