-- Needs: _earlier_attempts
-- Summary of each key, so that other views need not compare key texts again. Nearly all keys
-- are simple: one attempt, with its begin, end and submission given by rowid.
CREATE TABLE _key_summaries AS
WITH steps AS (
    SELECT
        trace_id,
        key,
        rowid AS seq,
        finish = 'processing' AS begins,
        "start" = 'processing' AS ends,
        CASE WHEN finish = 'waiting' THEN t END AS waiting_t,
        false AS submits,
        false AS was_there
    FROM raw.transition
    WHERE finish IN ('waiting', 'queued', 'no-worker', 'processing') OR "start" = 'processing'
    UNION ALL
    SELECT
        trace_id,
        key,
        rowid AS seq,
        false AS begins,
        false AS ends,
        NULL AS waiting_t,
        true AS submits,
        -1 - rowid IN (SELECT seq FROM _earlier_attempts) AS was_there
    FROM raw.task
)
SELECT
    trace_id,
    key,
    count(*) FILTER (submits) AS submissions,
    min(seq) FILTER (submits) AS submission,
    min(seq) FILTER (begins) AS beginning,
    min(seq) FILTER (ends) AS ending,
    arg_max(waiting_t, seq) FILTER (waiting_t IS NOT NULL) AS waiting_t,
    count(*) FILTER (begins) > 0 OR bool_or(was_there) AS has_attempts,
    -- One attempt with at most one end and one submission, after all waiting.
    NOT bool_or(was_there)
        AND count(*) FILTER (begins) = 1
        AND count(*) FILTER (ends) <= 1
        AND count(*) FILTER (submits) <= 1
        AND coalesce(min(seq) FILTER (ends) > min(seq) FILTER (begins), true)
        AND coalesce(max(seq) FILTER (waiting_t IS NOT NULL) < min(seq) FILTER (begins), true)
        AS is_simple
FROM steps
GROUP BY trace_id, key;
