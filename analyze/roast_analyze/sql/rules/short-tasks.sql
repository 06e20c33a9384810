-- Tasks too short for their overhead.
-- Overhead is the time in core_time in which short tasks were dispatched or deserialized, and their
-- share, by number of tasks, of the time in which threads waited for the scheduler. Longer tasks have
-- less of it per second. The upper end of the saving is all time other than compute time, plus the
-- overhead of calls, which is part of the compute time: at most half of it, and a few milliseconds per
-- task.
-- Records: transition
-- Applies: (SELECT count(*) FROM _task_runs WHERE outcome = 'memory') >= $min_tasks
-- Explains: dispatch, deserialize, scheduler
-- Source: Dask best practices, "Avoid very large graphs": each task costs about 1 ms
-- Documentation: https://docs.dask.org/en/stable/best-practices.html
-- $max_seconds = 0.025: mean duration of a task
-- $min_tasks = 200: number of tasks
-- $min_overhead_share = 0.1: share of overhead in the time of the tasks
-- $max_call_seconds = 0.003: largest overhead of a call
-- $good_seconds = 0.2: duration of a task after the change
-- $least_saved = 0.6: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.4: ratio of the largest saving to the cost; calibrated as well
WITH tasks_of AS (
    SELECT
        trace_id,
        prefix,
        count(*) AS short_tasks,
        avg(whole_seconds) AS mean_seconds,
        sum(whole_seconds) AS seconds
    FROM _task_runs
    WHERE outcome = 'memory' AND whole_seconds IS NOT NULL AND prefix IS NOT NULL
    GROUP BY trace_id, prefix
),
counted AS (
    SELECT *, short_tasks / sum(short_tasks) OVER (PARTITION BY trace_id) AS task_share
    FROM tasks_of
),
spent AS (
    SELECT trace_id, prefix, use, sum(seconds) AS seconds
    FROM _core_time
    WHERE use IN ('dispatch', 'scheduler', 'deserialize')
    GROUP BY ALL
),
short AS (
    SELECT
        counted.*,
        coalesce(dispatched.seconds, 0) + coalesce(waiting.seconds, 0) * task_share AS overhead_seconds
    FROM counted
    LEFT JOIN (
        SELECT trace_id, prefix, sum(seconds) AS seconds
        FROM spent
        WHERE use <> 'scheduler'
        GROUP BY ALL
    ) AS dispatched USING (trace_id, prefix)
    LEFT JOIN (SELECT trace_id, seconds FROM spent WHERE use = 'scheduler') AS waiting USING (trace_id)
    WHERE mean_seconds <= $max_seconds AND short_tasks >= $min_tasks
),
found AS (
    SELECT
        trace_id,
        max_by(prefix, overhead_seconds) AS prefix,
        count(*) AS prefixes,
        sum(short_tasks)::BIGINT AS short_tasks,
        sum(seconds) AS seconds,
        sum(seconds) / sum(short_tasks) AS mean_seconds,
        sum(overhead_seconds) AS overhead_seconds,
        least(0.5 * sum(seconds), $max_call_seconds * sum(short_tasks)) AS call_seconds
    FROM short
    WHERE overhead_seconds >= $min_overhead_share * (overhead_seconds + seconds)
    GROUP BY trace_id
)
SELECT
    prefix AS entity,
    CASE WHEN loads.host IS NULL THEN 'high' ELSE 'medium' END AS confidence,
    format(
        '{:,} tasks{} {}{} compute for {:.2g} ms each; the overhead is {} ms of thread time per task.',
        short_tasks, CASE prefixes WHEN 1 THEN ' of' ELSE ', mostly' END, prefix,
        CASE prefixes WHEN 1 THEN '' ELSE ',' END, 1000 * mean_seconds,
        _three_digits(1000 * overhead_seconds / short_tasks)
    ) || coalesce(
        format(
            ' On host {}, {}: with free cores, the overhead is lower.', loads.host, loads.reason
        ), ''
    ) AS sentence,
    overhead_seconds AS core_seconds,
    $least_saved * overhead_seconds / mean_nthreads AS wall_seconds_min,
    least(
        (run_core_seconds - seconds + call_seconds) / mean_nthreads,
        $most_saved * (overhead_seconds + call_seconds) / mean_nthreads
    ) AS wall_seconds_max,
    CASE WHEN _is_shuffle(prefix) THEN format(
        'Use fewer and larger partitions or chunks before the shuffle, join or rechunking that {} belongs to.{}', prefix,
        _rechunking_hint(prefix)
    )
    ELSE format(
        'Combine about {} tasks of {} into one (map_partitions, larger partitions or batches), so that it takes'
        ' {:.1f} s.',
        greatest(2, ceil($good_seconds / greatest(mean_seconds, 1e-6)))::BIGINT, prefix, $good_seconds
    ) END AS change,
    'SELECT prefix, count(*) AS tasks, avg(compute_seconds) AS compute_seconds,'
    ' avg(compute_start_t - processing_t) AS dispatch_seconds FROM task_runs GROUP BY prefix ORDER BY tasks DESC'
        AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
LEFT JOIN (
    SELECT trace_id, max(host) AS host, arg_max(reason, host) AS reason
    FROM _host_load
    WHERE is_loaded
    GROUP BY trace_id
) AS loads USING (trace_id);
