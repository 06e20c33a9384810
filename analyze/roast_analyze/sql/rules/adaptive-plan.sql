-- Workers that adaptive scaling did not plan.
-- The cluster adapts to the work and planned fewer workers than its maximum, while ready tasks waited for a thread.
-- Dask plans as many workers as it expects to compute these tasks within target_duration; tasks of a prefix of which
-- none has ended count 0.5 s each. With the other workers, each with the mean number of threads, the same work would
-- take as much less time as there would be more threads, at most one per ready task.
-- Applies: EXISTS (FROM raw.environment WHERE section = 'cluster' AND name = 'adapts to maximum')
-- Missing threads: counted
-- Source: Scheduler.adaptive_target of distributed
-- Documentation: https://docs.dask.org/en/stable/adaptive.html
-- $min_seconds = 1: missing thread time
-- $min_share = 0.05: saving as a share of the run
-- $least_saved = 0.5: part of the saving by the threads that is saved at least; assumed, as workers take time to start
-- $most_saved = 1.1: ratio of the largest saving to it; assumed
WITH limits AS (
    SELECT trace_id, max(try_cast(value AS DOUBLE)) AS maximum
    FROM environment
    WHERE section = 'cluster' AND name = 'adapts to maximum'
    GROUP BY trace_id
),
plans AS (
    SELECT
        *,
        -- What was planned once came later than it was needed, which rule late-workers states.
        max(planned) OVER (PARTITION BY trace_id) AS most_planned
    FROM _ready_times
),
found AS (
    SELECT
        trace_id,
        any_value(most_planned) AS most_planned,
        any_value(maximum) AS maximum,
        sum(seconds) AS seconds,
        sum(missing * seconds) AS thread_seconds,
        sum(seconds * missing / (nthreads + missing)) AS saved_seconds
    FROM (
        SELECT
            plans.*,
            maximum,
            least(ready, (maximum - most_planned) * nthreads / workers) AS missing
        FROM plans
        INNER JOIN limits USING (trace_id)
        WHERE maximum > most_planned
    )
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    -- Another worker could not compute tasks that only some workers may.
    if(trace_id IN (SELECT trace_id FROM restrictions), 'medium', 'high') AS confidence,
    format(
        'Ready tasks waited for a thread for {:.1f} s, and adaptive scaling planned at most {} meanwhile{}.',
        found.seconds,
        if(most_planned = 1, '1 worker', most_planned || ' workers'),
        if(isinf(maximum), ', without a maximum', format(', of a maximum of {:g}', maximum))
    ) AS sentence,
    thread_seconds AS core_seconds,
    $least_saved * saved_seconds AS wall_seconds_min,
    $most_saved * saved_seconds AS wall_seconds_max,
    concat(
        'Plan workers for the whole work: cluster.scale, or cluster.adapt with a larger minimum or a shorter'
        ' target_duration, which is the time within which Dask expects the planned workers to compute the ready tasks.'
        ' Or submit more of the work at a time.'
    ) AS change,
    'SELECT t, planned, requested, joined FROM cluster_sizes ORDER BY t' AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
WHERE thread_seconds >= $min_seconds AND saved_seconds >= $min_share * run_seconds;
