-- Needs: _excerpt
CREATE VIEW transitions AS
SELECT transition.*
FROM trace.transitions AS transition
INNER JOIN _excerpt AS excerpt USING (trace_id)
WHERE transition.t >= from_t AND transition.t < until_t;
