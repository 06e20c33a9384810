-- Needs: _time_range
CREATE VIEW failures AS
SELECT failure.*
FROM trace.failures AS failure
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE failure.t >= from_t AND failure.t < until_t
ORDER BY failure.trace_id, failure.t, failure.key NULLS LAST, failure.attempt;
