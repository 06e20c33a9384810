-- Needs: _time_range
CREATE VIEW _trace_range AS
SELECT trace_id, greatest(start_t, from_t) AS start_t, least(stop_t, until_t) AS stop_t
FROM trace._trace_range
INNER JOIN _time_range USING (trace_id);
