-- Needs: _task_runs
-- Median compute time of the attempts of each task group. This is a table for the same reason as
-- _task_group_workers.
CREATE TABLE _task_group_medians AS
SELECT run.trace_id, task."group" AS task_group, median(run.whole_seconds) AS median_compute_seconds
FROM _task_runs AS run
LEFT JOIN raw.task AS task ON run.submission = task.rowid
GROUP BY run.trace_id, task."group";
