-- Needs: _time_range
CREATE VIEW raw.event AS
SELECT record.rowid, record.*
FROM trace.raw.event AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE record.t >= from_t AND record.t < until_t;
