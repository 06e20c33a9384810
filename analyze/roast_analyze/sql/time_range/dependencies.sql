-- Needs: _tasks
-- Dependencies of the tasks in the range; the results may have been computed before.
CREATE VIEW dependencies AS
SELECT edge.*
FROM trace.dependencies AS edge
SEMI JOIN _tasks AS task USING (trace_id, key);
