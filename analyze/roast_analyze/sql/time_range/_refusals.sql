-- Needs: _time_range
CREATE TABLE _refusals AS
SELECT refusal.*
FROM trace._refusals AS refusal
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE refusal.t >= from_t AND refusal.t < until_t;
