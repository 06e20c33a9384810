-- Needs: _key_summaries
-- Time of tasks in the states before a result: from the transition into the state to the next
-- transition of the key. A task that was in such a state when recording began counts from then.
-- Keys are replaced by numbers, because texts would take longer to sort.
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
INNER JOIN _key_summaries USING (trace_id, key)
WINDOW in_order AS (PARTITION BY first_seq ORDER BY seq)
QUALIFY state IN ('waiting', 'queued', 'no-worker', 'processing');
