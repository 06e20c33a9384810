-- Needs: _time_range
CREATE VIEW raw.spill AS
SELECT record.rowid, record.*
FROM trace.raw.spill AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE record.t >= from_t AND record.t < until_t;
