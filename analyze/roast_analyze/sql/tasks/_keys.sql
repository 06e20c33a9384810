-- Needs: nothing
-- What was seen of each key: one pass over the names of all tasks, which nothing else needs
-- to compare again. Nearly all keys are simple: one attempt, of which this tells the
-- beginning, and by its place (rowid) the end.
CREATE TABLE _keys AS
WITH steps AS (
    SELECT
        trace_id,
        key,
        rowid AS seq,
        finish = 'processing' AS begins,
        "start" = 'processing' AS ends,
        CASE WHEN finish = 'waiting' THEN t END AS waiting_t,
        CASE WHEN finish = 'processing' THEN t END AS processing_t,
        CASE WHEN finish = 'processing' THEN worker END AS worker,
        CASE WHEN finish = 'processing' THEN run_id END AS run_id,
        false AS submits,
        false AS was_there,
        NULL AS prefix,
        NULL AS span_id
    FROM raw.transition
    WHERE finish IN ('processing', 'waiting') OR "start" = 'processing'
    UNION ALL
    SELECT
        trace_id,
        key,
        rowid AS seq,
        false AS begins,
        false AS ends,
        NULL AS waiting_t,
        NULL AS processing_t,
        NULL AS worker,
        NULL AS run_id,
        true AS submits,
        coalesce(state = 'processing' AND worker IS NOT NULL, false) AS was_there,
        prefix,
        span_id
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
    any_value(processing_t) AS processing_t,
    any_value(worker) AS worker,
    any_value(run_id) AS run_id,
    any_value(prefix) AS prefix,
    any_value(span_id) AS span_id,
    count(*) FILTER (begins) > 0 OR bool_or(was_there) AS has_attempts,
    -- One attempt, whose end is the only one, after all waiting, of the only submission.
    NOT bool_or(was_there)
        AND count(*) FILTER (begins) = 1
        AND count(*) FILTER (ends) <= 1
        AND count(*) FILTER (submits) <= 1
        AND coalesce(min(seq) FILTER (ends) > min(seq) FILTER (begins), true)
        AND coalesce(max(seq) FILTER (waiting_t IS NOT NULL) < min(seq) FILTER (begins), true)
        AS is_simple
FROM steps
GROUP BY trace_id, key;
