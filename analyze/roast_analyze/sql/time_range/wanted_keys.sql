-- Needs: _time_range
CREATE VIEW wanted_keys AS
SELECT
    wanted.* REPLACE (
        greatest(wanted.start_t, from_t) AS start_t,
        -- least() ignores null.
        nullif(least(wanted.stop_t, until_t), 'infinity') AS stop_t,
        nullif(least(wanted.stop_t, until_t), 'infinity') - greatest(wanted.start_t, from_t)
            AS seconds
    )
FROM trace.wanted_keys AS wanted
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE wanted.start_t < until_t AND coalesce(wanted.stop_t >= from_t, true);
