-- Needs: _tasks
-- Of the tasks of the excerpt; what they took may have been computed before.
CREATE VIEW dependencies AS
SELECT edge.*
FROM trace.dependencies AS edge
SEMI JOIN _tasks AS task USING (trace_id, key);
