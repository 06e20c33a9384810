-- Needs: nothing
-- Attempts that were dispatched before the first transition of their key was recorded: a task was
-- processing when recording began, or its first recorded transition ends an attempt. The existing
-- tasks are recorded in steps, while transitions are recorded already. So an attempt that is in the
-- record of its task can also have a transition that began it: one with the same run id, or, since
-- work stealing changes the run id and old versions of Dask have none, the latest one before that
-- record if it did not end meanwhile. Then it is not counted again.
CREATE VIEW _earlier_attempts AS
WITH existing AS (
    SELECT rowid AS task, key, t, state, worker, run_id, trace_id
    FROM raw.task
    WHERE state IS NOT NULL
),
steps AS (
    SELECT
        existing.*,
        transition.rowid AS seq,
        transition.t AS step_t,
        transition.run_id AS step_run_id,
        transition.finish = 'processing' AS begins
    FROM existing
    LEFT JOIN raw.transition AS transition
        ON existing.trace_id = transition.trace_id
        AND existing.key = transition.key
        AND (transition.finish = 'processing' OR transition."start" = 'processing')
)
SELECT
    -1 - task AS seq,
    key,
    t,
    -- The record of a task can be about a later attempt than the one that its first transition ends.
    CASE WHEN is_processing AND NOT is_begun THEN worker END AS worker,
    CASE WHEN is_processing AND NOT is_begun THEN run_id END AS run_id,
    trace_id
FROM (
    SELECT
        task,
        key,
        t,
        worker,
        run_id,
        trace_id,
        coalesce(state = 'processing' AND worker IS NOT NULL, false) AS is_processing,
        coalesce(bool_or(begins AND step_run_id = run_id), false)
            OR coalesce(arg_max(begins, seq) FILTER (step_t <= t), false) AS is_begun,
        coalesce(NOT arg_min(begins, seq), false) AS ends_first
    FROM steps
    GROUP BY ALL
)
WHERE ends_first OR (is_processing AND NOT is_begun);
