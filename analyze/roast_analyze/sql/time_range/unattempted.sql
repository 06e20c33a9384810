-- Needs: _tasks
CREATE VIEW unattempted AS
SELECT unattempted.*
FROM trace.unattempted AS unattempted
SEMI JOIN _tasks USING (trace_id, key);
