-- Needs: _task_runs
-- Number of workers that ran attempts of each task group. This is a table, because in one query with
-- the other aggregates of task_groups it would take many times as long if memory is scarce.
CREATE TABLE _task_group_workers AS
SELECT trace_id, task_group, count(*) AS workers
FROM (
    SELECT DISTINCT run.trace_id, task."group" AS task_group, run.worker
    FROM _task_runs AS run
    LEFT JOIN raw.task AS task ON run.submission = task.rowid
    WHERE run.worker IS NOT NULL
)
GROUP BY trace_id, task_group;
