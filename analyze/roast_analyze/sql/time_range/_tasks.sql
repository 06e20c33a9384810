-- Needs: _task_runs, _time_range
-- Tasks submitted or attempted in the range.
CREATE VIEW _tasks AS
SELECT task.*
FROM trace._tasks AS task
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE (task.t >= from_t AND task.t < until_t)
    OR (trace_id, task.key) IN (SELECT (trace_id, key) FROM _task_runs);
