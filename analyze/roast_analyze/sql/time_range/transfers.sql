-- Needs: _time_range
-- The two reports of a transfer can lie on either side of a boundary.
CREATE VIEW transfers AS
SELECT moved.*
FROM trace.transfers AS moved
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE coalesce(moved.start_t, moved.stop_t) < until_t
    AND coalesce(moved.stop_t, moved.start_t) >= from_t;
