-- Needs: _task_runs
-- Latencies are those of the whole attempt.
CREATE VIEW dispatch_latency AS
SELECT latency.* REPLACE (run.outcome AS outcome)
FROM trace.dispatch_latency AS latency
INNER JOIN _task_runs AS run USING (trace_id, key, attempt)
ORDER BY trace_id, run.seq;
