-- Needs: _time_range
-- Records submitted in the range, unchanged.
CREATE VIEW computations AS
SELECT record.*
FROM trace.computations AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE record.t >= from_t AND record.t < until_t;
