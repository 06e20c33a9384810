-- Needs: _tasks
-- A task record precedes the transitions of the same instant. A key that is submitted again
-- begins anew.
CREATE MACRO task_states_at(at_t) AS TABLE
WITH changes AS (
    SELECT trace_id, key, finish AS state, t, (t, 1, rowid) AS place
    FROM raw.transition
    WHERE t <= at_t
    UNION ALL
    SELECT trace_id, key, coalesce(state, 'released'), t, (t, 0, rowid)
    FROM raw.task
    WHERE t <= at_t
)
SELECT
    changes.key,
    any_value(task.prefix) AS prefix,
    arg_max(changes.state, place) AS state,
    arg_max(changes.t, place) AS since_t,
    changes.trace_id
FROM changes
LEFT JOIN _tasks AS task USING (trace_id, key)
GROUP BY changes.trace_id, changes.key
ORDER BY changes.trace_id, since_t, changes.key;

CREATE VIEW task_states AS FROM task_states_at('infinity'::DOUBLE);

COMMENT ON MACRO TABLE task_states_at IS 'The view task_states at a given time, in seconds since the epoch.';
COMMENT ON VIEW task_states IS 'State of each task at the end of the recording. One row per key. task_states_at(t) returns the states at another time.';
COMMENT ON COLUMN task_states.key IS 'Task key.';
COMMENT ON COLUMN task_states.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN task_states.state IS 'State on the scheduler: released, waiting, no-worker, queued, processing, memory, erred or forgotten.';
COMMENT ON COLUMN task_states.since_t IS 'Time of the last change of state, in seconds since the epoch.';
COMMENT ON COLUMN task_states.trace_id IS 'ID of the trace.';
