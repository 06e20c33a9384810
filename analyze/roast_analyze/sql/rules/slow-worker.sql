-- Slow workers.
-- Attempts are compared with others of the same prefix at the same time, chunks by their events.
-- The saving is at least the lost time divided among all threads; at most, threads that were idle
-- while slow workers computed are used as well.
-- Applies: EXISTS (FROM _slow_workers WHERE NOT is_of_slow_host AND relative_duration >= $min_relative_duration)
-- Explains: tail, dependencies
-- Source: Spark's Dr. Elephant, "mapper skew"; stragglers in MapReduce (Dean, Ghemawat 2004)
-- Documentation: https://distributed.dask.org/en/stable/efficiency.html
-- $min_relative_duration = 1.5: duration relative to other workers
WITH slow AS (
    SELECT
        trace_id,
        process,
        any_value(name) AS name,
        any_value(worker) AS worker,
        any_value(nthreads) AS nthreads,
        any_value(load.host) AS loaded_host,
        any_value(load.reason) AS reason,
        max_by(prefix, seconds) AS prefix,
        sum(seconds) / sum(seconds / relative_duration) AS relative_duration,
        sum(tasks) AS compared,
        sum(seconds * (1 - 1 / relative_duration)) AS excess_seconds
    FROM _slow_workers
    LEFT JOIN _loaded_workers AS load USING (trace_id, worker)
    WHERE NOT is_of_slow_host AND relative_duration >= $min_relative_duration
    GROUP BY trace_id, process
),
slow_buckets AS (
    SELECT trace_id, t, sum(seconds) AS slow_seconds
    FROM _core_time
    WHERE process IN (SELECT process FROM slow) AND prefix IS NOT NULL
    GROUP BY trace_id, t
),
idle AS (
    SELECT
        trace_id,
        sum(
            (tail_seconds + dependencies_seconds + imbalance_seconds)
            * least(slow_seconds / busy_seconds, 1)
        ) AS seconds
    FROM slow_buckets
    INNER JOIN _bucket_uses USING (trace_id, t)
    WHERE busy_seconds > 0
    GROUP BY trace_id
),
found AS (
    SELECT
        trace_id,
        count(*) AS slow_workers,
        -- Only if it explains all of them.
        CASE WHEN bool_and(loaded_host IS NOT NULL) THEN max(loaded_host) END AS loaded_host,
        arg_max(reason, loaded_host) AS reason,
        string_agg(name, ', ' ORDER BY excess_seconds DESC, name) AS names,
        string_agg('''' || replace(worker, '''', '''''') || '''', ', ' ORDER BY worker) AS quoted,
        max_by(prefix, excess_seconds) AS prefix,
        min(relative_duration) AS least_duration,
        max(relative_duration) AS most_duration,
        sum(compared)::BIGINT AS compared,
        sum(excess_seconds) AS excess_seconds,
        sum(nthreads) AS slow_nthreads
    FROM slow
    GROUP BY trace_id
)
SELECT
    CASE WHEN slow_workers <= 5 THEN names END AS entity,
    CASE WHEN loaded_host IS NULL THEN 'high' ELSE 'low' END AS confidence,
    CASE
        WHEN slow_workers = 1 THEN format(
            'Worker {} takes {:.1f} times as long as others for the same work ({} tasks, mostly of prefix {}).',
            names, most_duration, compared, prefix
        )
        ELSE format(
            '{} workers take {:.1f} to {:.1f} times as long as others for the same work.',
            slow_workers, least_duration, most_duration
        )
    END || coalesce(
        format(
            ' On host {}, {}, which can delay one worker more than another.', loaded_host, reason
        ), ''
    ) AS sentence,
    excess_seconds AS core_seconds,
    least(excess_seconds / slow_nthreads, 0.8 * excess_seconds / mean_nthreads) AS wall_seconds_min,
    least(
        excess_seconds / slow_nthreads,
        1.4 * (excess_seconds + coalesce(idle.seconds, 0)) / mean_nthreads
    ) AS wall_seconds_max,
    CASE WHEN NOT settings.has_scheduler
        THEN 'Look for other load, throttled CPUs and slow disks on its host.'
    WHEN loaded_host IS NOT NULL THEN format('Check which programs use the cores of host {}.', loaded_host)
    ELSE format(
        'Look for other load, throttled CPUs and slow disks where {}, or start {} elsewhere: without {}, the others'
        ' have more to do.',
        CASE
            WHEN slow_workers = 1 THEN format('worker {} runs', names)
            WHEN slow_workers <= 5 THEN format('workers {} run', names)
            ELSE 'they run'
        END,
        if(slow_workers = 1, 'it', 'them'), if(slow_workers = 1, 'it', 'them')
    ) END AS change,
    format(
        'SELECT name, prefix, count(*) AS tasks, median(task_runs.compute_seconds) AS seconds'
        ' FROM task_runs INNER JOIN (SELECT DISTINCT trace_id, worker, name FROM workers)'
        ' USING (trace_id, worker) WHERE outcome = ''memory'''
        ' AND prefix IN (SELECT prefix FROM task_runs WHERE worker IN ({}))'
        ' GROUP BY ALL ORDER BY prefix, seconds DESC', quoted
    ) AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
INNER JOIN _run_settings AS settings USING (trace_id)
LEFT JOIN idle USING (trace_id);
