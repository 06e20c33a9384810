-- Needs: _time_range
CREATE VIEW raw.host_sample AS
SELECT record.rowid, record.*
FROM trace.raw.host_sample AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE record.t >= from_t AND record.t < until_t;
