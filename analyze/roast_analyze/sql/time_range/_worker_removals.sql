-- Needs: _time_range
-- The event with the reason can arrive shortly before or after.
CREATE TABLE _worker_removals AS
SELECT departure.*
FROM trace._worker_removals AS departure
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE removed_t >= from_t AND removed_t < until_t;
