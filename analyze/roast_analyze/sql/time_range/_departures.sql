-- Needs: _excerpt
-- The event that says why can come a moment before or after.
CREATE TABLE _departures AS
SELECT departure.*
FROM trace._departures AS departure
INNER JOIN _excerpt AS excerpt USING (trace_id)
WHERE removed_t >= from_t AND removed_t < until_t;
