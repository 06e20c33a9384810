-- Needs: _time_range
CREATE VIEW raw.io_segment AS
SELECT record.rowid, record.*
FROM trace.raw.io_segment AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE coalesce(record.start_t, record.t) < until_t AND coalesce(record.stop_t, record.t) >= from_t;
