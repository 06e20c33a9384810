-- Needs: _excerpt
-- A span lasts.
CREATE VIEW raw.span AS
SELECT record.rowid, record.*
FROM trace.raw.span AS record
INNER JOIN _excerpt AS excerpt USING (trace_id)
WHERE record.t < until_t;
