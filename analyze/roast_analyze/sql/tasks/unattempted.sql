-- Needs: _key_summaries, _refusals, _tasks
CREATE VIEW unattempted AS
WITH never AS (
    SELECT trace_id, key FROM _key_summaries WHERE submissions > 0 AND NOT has_attempts
),
states AS (
    SELECT
        trace_id,
        key,
        bool_or(finish = 'erred') AS has_erred,
        arg_max(finish, rowid) AS last_state
    FROM raw.transition
    SEMI JOIN never USING (trace_id, key)
    GROUP BY trace_id, key
)
SELECT
    task.key,
    task.prefix,
    CASE
        WHEN (task.trace_id, task.key) IN (SELECT (trace_id, key) FROM _refusals) THEN 'refused by the scheduler'
        WHEN states.has_erred THEN 'a dependency failed'
        WHEN coalesce(states.last_state, task.state) IN ('waiting', 'queued', 'no-worker')
            THEN 'waiting at the end'
        WHEN states.last_state = 'memory' OR task.state = 'memory' THEN 'result known before'
        WHEN task.state = 'erred' THEN 'failed before the recording'
        WHEN states.last_state IS NOT NULL THEN 'cancelled'
        ELSE 'not needed'
    END AS reason,
    coalesce(states.last_state, task.state, 'released') AS last_state,
    task.trace_id
FROM _tasks AS task
SEMI JOIN never USING (trace_id, key)
-- Without any transition, attempts are unknown.
SEMI JOIN (SELECT DISTINCT trace_id FROM raw.transition) AS recorded USING (trace_id)
LEFT JOIN states USING (trace_id, key)
ORDER BY task.trace_id, task.seq;

COMMENT ON VIEW unattempted IS 'Tasks that were never attempted, and why. One row per key. Empty if no transitions were recorded.';
COMMENT ON COLUMN unattempted.key IS 'Task key.';
COMMENT ON COLUMN unattempted.prefix IS 'Key prefix.';
COMMENT ON COLUMN unattempted.reason IS 'a dependency failed (so that the task erred, too), refused by the scheduler (its inputs exceed the memory limit of the worker, or no worker could run it for longer than no-workers-timeout), waiting at the end (of the recording), result known before (computed before the recording, or scattered), failed before the recording, cancelled (released before it was dispatched) or not needed (no transition: no requested result depends on it).';
COMMENT ON COLUMN unattempted.last_state IS 'Last recorded state of the task.';
COMMENT ON COLUMN unattempted.trace_id IS 'ID of the trace.';
