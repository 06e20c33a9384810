-- Needs: _time_range
CREATE VIEW worker_transitions AS
SELECT transition.*
FROM trace.worker_transitions AS transition
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE transition.t >= from_t AND transition.t < until_t;
