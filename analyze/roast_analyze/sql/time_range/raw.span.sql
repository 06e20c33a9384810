-- Needs: _time_range
-- Spans have no end.
CREATE VIEW raw.span AS
SELECT record.rowid, record.*
FROM trace.raw.span AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE record.t < until_t;
