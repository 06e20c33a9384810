-- Needs: _key_summaries, _task_runs
-- Good attempts whose result was lost before a dependent had used it for a result that was kept, and was computed
-- again for the same submission of the key. Whether a client fetched a result is not recorded.
CREATE TABLE _discarded_results AS
WITH RECURSIVE attempts AS (
    SELECT
        *,
        lead(seq) OVER in_order AS next_seq,
        bool_or(outcome = 'memory') OVER (
            in_order ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) AS is_recomputed
    FROM _task_runs
    SEMI JOIN (FROM _key_summaries WHERE has_attempts AND NOT is_simple) USING (trace_id, key)
    WINDOW in_order AS (PARTITION BY trace_id, key, submission ORDER BY seq)
),
repeated AS (
    SELECT seq, end_seq, next_seq, key, trace_id
    FROM attempts
    WHERE outcome = 'memory' AND is_recomputed
),
uses AS (
    SELECT repeated.seq, dependent.seq AS dependent
    FROM repeated
    INNER JOIN (
        SELECT trace_id, key AS dependent, unnest(dependencies) AS key FROM raw.task
    ) AS needs USING (trace_id, key)
    INNER JOIN _task_runs AS dependent
        ON needs.trace_id = dependent.trace_id
        AND needs.dependent = dependent.key
        AND dependent.outcome = 'memory'
        AND dependent.seq > repeated.end_seq
        AND dependent.end_seq < repeated.next_seq
),
-- A result that was used only for results that were lost as well was computed in vain.
kept AS (
    SELECT uses.seq FROM uses ANTI JOIN repeated ON uses.dependent = repeated.seq
    UNION
    SELECT uses.seq FROM uses INNER JOIN kept ON uses.dependent = kept.seq
)
SELECT seq FROM repeated ANTI JOIN kept USING (seq);
