-- Needs: _time_range
-- Processes present in the range. A process that joined before the range joins at its start; one
-- that left after the range did not leave.
CREATE TABLE _workers AS
SELECT
    worker.* EXCLUDE (trace_id)
    REPLACE (
        CASE WHEN added_t < time_range.from_t THEN time_range.from_t ELSE added_t END AS added_t,
        CASE WHEN removed_t < until_t THEN removed_t END AS removed_t,
        CASE WHEN removed_t < until_t THEN removal_stimulus_id END AS removal_stimulus_id
    ),
    trace_id
FROM trace._workers AS worker
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE coalesce(added_t, '-infinity'::DOUBLE) < until_t
    AND coalesce(removed_t, 'infinity'::DOUBLE) >= time_range.from_t;
