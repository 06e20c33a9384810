-- Needs: nothing
-- How long tasks were in the states that come before a result: from a transition into the state
-- to the next one of the key, whichever that is. What was there when recording began has been in
-- its state since then.
CREATE VIEW _task_states AS
SELECT
    key,
    state,
    t AS from_t,
    lead(t) OVER in_order AS until_t,
    lead(seq) OVER in_order AS until_seq,
    trace_id
FROM (
    SELECT rowid AS seq, key, finish AS state, t, trace_id FROM raw.transition
    UNION ALL
    SELECT -1 - rowid, key, state, t, trace_id FROM raw.task WHERE state IS NOT NULL
)
WINDOW in_order AS (PARTITION BY trace_id, key ORDER BY seq)
QUALIFY state IN ('waiting', 'queued', 'no-worker', 'processing');
