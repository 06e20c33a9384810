-- Needs: _task_runs, _time_range
-- Phases are clipped to the range.
CREATE VIEW task_phases AS
SELECT
    part.* REPLACE (
        run.outcome AS outcome,
        greatest(part.start_t, from_t) AS start_t,
        least(part.stop_t, until_t) AS stop_t,
        greatest(least(part.stop_t, until_t) - greatest(part.start_t, from_t), 0) AS seconds
    )
FROM trace.task_phases AS part
INNER JOIN _task_runs AS run USING (trace_id, key, attempt)
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE part.start_t < until_t AND part.stop_t >= from_t
ORDER BY trace_id, run.seq, start_t;
