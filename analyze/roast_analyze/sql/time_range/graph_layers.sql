-- Needs: _time_range
-- Records submitted in the range, unchanged.
CREATE VIEW graph_layers AS
SELECT record.*
FROM trace.graph_layers AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE record.t >= from_t AND record.t < until_t;
