-- Needs: _excerpt
-- Those that entered within the excerpt, whole.
CREATE VIEW graph_updates AS
SELECT record.*
FROM trace.graph_updates AS record
INNER JOIN _excerpt AS excerpt USING (trace_id)
WHERE record.t >= from_t AND record.t < until_t;
