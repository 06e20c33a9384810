-- Needs: _excerpt
CREATE VIEW _recording AS
SELECT trace_id, greatest(start_t, from_t) AS start_t, least(stop_t, until_t) AS stop_t
FROM trace._recording
INNER JOIN _excerpt USING (trace_id);
