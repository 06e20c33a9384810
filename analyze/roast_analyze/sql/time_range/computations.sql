-- Needs: _excerpt
-- Those that entered within the excerpt, whole.
CREATE VIEW computations AS
SELECT record.*
FROM trace.computations AS record
INNER JOIN _excerpt AS excerpt USING (trace_id)
WHERE record.t >= from_t AND record.t < until_t;
