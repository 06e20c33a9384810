-- Needs: _time_range
CREATE VIEW raw.client_activity AS
SELECT record.rowid, record.*
FROM trace.raw.client_activity AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE record.start_t < until_t AND record.stop_t >= from_t;
