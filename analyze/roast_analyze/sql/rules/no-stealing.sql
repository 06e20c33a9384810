-- Work stealing switched off.
-- Without it, tasks stay on the workers to which they were assigned, so that workers that join later, or have shorter
-- tasks, get none of them. With a saturation of inf, all tasks that are ready are assigned at once. The cost is the
-- time of free threads while ready tasks were queued on other workers, and that of workers that had just joined.
-- Applies: EXISTS (FROM _core_time WHERE use = 'imbalance')
-- Explains: imbalance, joining worker
-- Source: distributed.scheduler.work-stealing and worker-saturation; uses of core_time
-- Documentation: https://distributed.dask.org/en/stable/work-stealing.html
-- $min_share = 0.05: share of the core time
-- $least_saved = 0.5: part of this time, on all threads, that is saved at least; assumed
-- $most_saved = 1.4: ratio of the largest saving to the cost; assumed
WITH settings AS (
    SELECT
        trace_id,
        max(value) FILTER (name = 'distributed.scheduler.work-stealing') AS stealing,
        max(value) FILTER (name = 'distributed.scheduler.worker-saturation') AS saturation
    FROM config
    WHERE process = 'scheduler'
    GROUP BY trace_id
),
idle AS (
    SELECT
        trace_id,
        sum(seconds) AS seconds,
        sum(seconds) FILTER (use = 'imbalance') AS imbalance_seconds
    FROM _core_time
    WHERE use IN ('imbalance', 'joining worker')
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    -- With stealing, tasks would stay as well if moving them took longer.
    'medium' AS confidence,
    format(
        'Threads were free for {:,.1f} core-seconds while ready tasks were queued on other workers, and work stealing is'
        ' off (distributed.scheduler.work-stealing){}.',
        imbalance_seconds,
        if(saturation = 'inf', '; all tasks are assigned at once (worker-saturation: inf)', '')
    ) AS sentence,
    idle.seconds AS core_seconds,
    $least_saved * imbalance_seconds / mean_nthreads AS wall_seconds_min,
    $most_saved * idle.seconds / mean_nthreads AS wall_seconds_max,
    concat(
        'Leave work stealing on',
        if(saturation = 'inf', ', or worker-saturation at its default, so that tasks wait on the scheduler', ''),
        '.'
    ) AS change,
    'SELECT name, use, sum(seconds) AS seconds FROM core_time GROUP BY ALL ORDER BY seconds DESC' AS evidence,
    trace_id
FROM idle
INNER JOIN settings USING (trace_id)
INNER JOIN _run_size USING (trace_id)
WHERE stealing = 'false'
    AND imbalance_seconds >= $min_share * run_core_seconds
    -- Tasks that only some workers may compute are not stolen by the others.
    AND trace_id NOT IN (SELECT trace_id FROM restrictions);
