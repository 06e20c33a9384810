-- Needs: nothing
-- Time of tasks in the states before a result: from the transition into the state to the next
-- transition of the key. A task that was in such a state when recording began counts from then.
-- Sorting numbers takes half as long as sorting texts, so keys are replaced by hashes of 64 bits, and
-- states by their positions; `task` is the hash. Two of a million keys have the same hash with a probability of 3e-8;
-- their times would then be mixed up.
CREATE VIEW _task_states AS
SELECT
    task,
    ['waiting', 'queued', 'no-worker', 'processing'][state] AS state,
    t AS from_t,
    lead(t) OVER in_order AS until_t,
    lead(seq) OVER in_order AS until_seq,
    trace_id
FROM (
    SELECT
        seq,
        hash(trace_id, key) AS task,
        list_position(['waiting', 'queued', 'no-worker', 'processing'], state)::UTINYINT AS state,
        t,
        trace_id
    FROM (
        SELECT rowid AS seq, key, finish AS state, t, trace_id FROM raw.transition
        UNION ALL
        SELECT -1 - task.rowid, task.key, task.state, task.t, task.trace_id
        FROM raw.task AS task
        ANTI JOIN raw.transition AS transition
            ON task.trace_id = transition.trace_id
            AND task.key = transition.key
            -- The record of the task is from after the transition.
            AND transition.t <= task.t
        WHERE task.state IS NOT NULL
    )
)
WINDOW in_order AS (PARTITION BY task ORDER BY seq)
QUALIFY state IS NOT NULL;
