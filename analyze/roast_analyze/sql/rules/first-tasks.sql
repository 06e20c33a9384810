-- Slow first tasks of each worker.
-- Work that each process does once, such as imports, compilation and reading tables, is part of its first tasks of a
-- prefix: those that began before the first one had ended. They are compared with all later tasks of the prefix. The
-- cost is what they took longer.
-- Records: transition
-- Applies: (SELECT count(DISTINCT worker) FROM _task_runs WHERE outcome = 'memory') > 1
-- Source: compute times of tasks, by their order on each worker
-- Documentation: https://docs.dask.org/en/stable/customize-initialization.html
-- $min_share = 0.05: cost as a share of the core time
-- $min_later = 10: later tasks of the prefix
-- $min_ratio = 3: median of the first tasks relative to that of the later ones
-- $min_workers_share = 0.8: workers whose first tasks took at least half of this ratio
-- $least_saved = 0.25: part of the cost, on all threads, that is saved at least; assumed: a preload does the same work
-- $most_saved = 1: part of the cost, on all threads, that is saved at most
WITH attempts AS (
    SELECT trace_id, prefix, worker, compute_start_t, compute_stop_t, compute_seconds
    FROM _task_runs
    WHERE outcome = 'memory' AND compute_seconds > 0 AND prefix IS NOT NULL AND worker IS NOT NULL
),
begins AS (
    SELECT trace_id, prefix, worker, arg_min(compute_stop_t, compute_start_t) AS first_stop_t
    FROM attempts
    GROUP BY trace_id, prefix, worker
),
ordered AS (
    SELECT attempts.*, compute_start_t < first_stop_t AS is_first
    FROM attempts
    INNER JOIN begins USING (trace_id, prefix, worker)
),
later AS (
    SELECT trace_id, prefix, median(compute_seconds) AS seconds
    FROM ordered
    WHERE NOT is_first
    GROUP BY trace_id, prefix
    HAVING count(*) >= $min_later
),
of_workers AS (
    SELECT
        trace_id,
        prefix,
        worker,
        any_value(later.seconds) AS later_seconds,
        median(compute_seconds) AS first_seconds,
        sum(compute_seconds - later.seconds) AS excess_seconds
    FROM (FROM ordered WHERE is_first) AS first
    INNER JOIN later USING (trace_id, prefix)
    GROUP BY trace_id, prefix, worker
),
found AS (
    SELECT
        trace_id,
        prefix,
        count(*) AS workers,
        any_value(later_seconds) AS later_seconds,
        median(first_seconds) AS first_seconds,
        sum(excess_seconds) AS seconds
    FROM of_workers
    GROUP BY trace_id, prefix
    HAVING count(*) > 1
        AND first_seconds >= $min_ratio * later_seconds
        AND count(*) FILTER (of_workers.first_seconds >= $min_ratio / 2 * of_workers.later_seconds)
            >= $min_workers_share * count(*)
)
SELECT
    prefix AS entity,
    -- The first inputs can be larger, or all workers wait for the same storage.
    'medium' AS confidence,
    format(
        'The first tasks of {} on each of {} workers took {} s (median), {:.3g} times as long as later ones ({} s):'
        ' {:,.1f} core-seconds more in all.',
        prefix, workers, _three_digits(first_seconds), first_seconds / later_seconds, _three_digits(later_seconds),
        found.seconds
    ) AS sentence,
    found.seconds AS core_seconds,
    $least_saved * found.seconds / mean_nthreads AS wall_seconds_min,
    $most_saved * found.seconds / mean_nthreads AS wall_seconds_max,
    'Find out what tasks do only once in each process, such as imports, compilation (numba), opening connections or'
    ' reading tables: make it faster (a local disk, a cache of compiled code), let a preload do it before the program'
    ' begins, or use fewer processes that live longer.' AS change,
    format(
        'SELECT worker, compute_start_t, compute_seconds FROM task_runs WHERE prefix = ''{}'' ORDER BY worker,'
        ' compute_start_t', replace(prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
WHERE found.seconds >= $min_share * run_core_seconds
QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY found.seconds DESC, prefix) = 1;
