-- Needs: _time_range
CREATE VIEW pauses AS
SELECT
    pause.* REPLACE (
        greatest(pause.start_t, from_t) AS start_t,
        -- least() ignores null.
        nullif(least(pause.stop_t, until_t), 'infinity') AS stop_t,
        nullif(least(pause.stop_t, until_t), 'infinity') - greatest(pause.start_t, from_t) AS seconds
    )
FROM trace.pauses AS pause
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE pause.start_t < until_t AND coalesce(pause.stop_t >= from_t, true);
