-- Needs: _task_runs
-- What an attempt was handed on by is told of the whole attempt.
CREATE VIEW dispatch_latency AS
SELECT handoff.* REPLACE (run.outcome AS outcome)
FROM trace.dispatch_latency AS handoff
INNER JOIN _task_runs AS run USING (trace_id, key, attempt)
ORDER BY trace_id, run.seq;
