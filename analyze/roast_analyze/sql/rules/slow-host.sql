-- Slow hosts.
-- Attempts are compared with others of the same prefix at the same time, chunks by their events.
-- On a slow host, at least one worker is slow, and at least two workers, and three quarters of all,
-- are slow or take 1.5 times as long as those of other hosts.
-- Applies: EXISTS (FROM _slow_workers WHERE is_of_slow_host AND relative_duration >= $min_relative_duration)
-- Explains: tail, dependencies
-- Source: stragglers in MapReduce (Dean, Ghemawat 2004)
-- Documentation: https://distributed.dask.org/en/stable/efficiency.html
-- $min_relative_duration = 1.5: duration relative to other workers
-- $least_saved = 0.8: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.4: ratio of the largest saving to the cost; calibrated as well
WITH slow AS (
    SELECT
        trace_id,
        _slow_workers.host,
        bool_or(load.is_loaded) AS is_loaded,
        any_value(load.reason) AS reason,
        count(DISTINCT process) AS slow_workers,
        sum(seconds) / sum(seconds / relative_duration) AS relative_duration,
        sum(seconds * (1 - 1 / relative_duration)) AS excess_seconds
    FROM _slow_workers
    LEFT JOIN _loaded_workers AS load USING (trace_id, worker)
    WHERE is_of_slow_host AND relative_duration >= $min_relative_duration
    GROUP BY trace_id, _slow_workers.host
),
idle AS (
    SELECT trace_id, sum(tail_seconds + imbalance_seconds) AS seconds
    FROM _bucket_uses
    GROUP BY trace_id
)
SELECT
    host AS entity,
    'high' AS confidence,
    format(
        '{} workers on host {} take {:.1f} times as long as others for the same work.',
        slow_workers, host, relative_duration
    ) || CASE
        WHEN is_loaded THEN format(' There, {}.', reason)
        ELSE ''
    END AS sentence,
    excess_seconds AS core_seconds,
    $least_saved * excess_seconds / mean_nthreads AS wall_seconds_min,
    $most_saved * (excess_seconds + coalesce(idle.seconds, 0)) / mean_nthreads AS wall_seconds_max,
    CASE
        WHEN is_loaded THEN format('Check which programs use the cores of host {}, or exclude it.', host)
        ELSE format('Exclude host {}, or look for other load, throttled CPUs and slow disks there.', host)
    END AS change,
    'SELECT host, prefix, count(*) AS tasks, median(task_runs.compute_seconds) AS seconds'
    ' FROM task_runs INNER JOIN (SELECT DISTINCT trace_id, worker, host FROM workers)'
    ' USING (trace_id, worker) WHERE outcome = ''memory'''
    ' GROUP BY ALL ORDER BY prefix, seconds DESC' AS evidence,
    trace_id
FROM slow
INNER JOIN _run_size USING (trace_id)
LEFT JOIN idle USING (trace_id);
