-- Needs: nothing
-- First and last instant of each trace: one row per trace.
CREATE VIEW _trace_range AS
SELECT trace_id, min(start_t) AS start_t, max(stop_t) AS stop_t
FROM raw.segments
GROUP BY trace_id;
