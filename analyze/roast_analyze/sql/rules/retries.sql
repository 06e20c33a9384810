-- Failed attempts.
-- The compute time of a failed attempt is lost, and its task ends later. The saving is at least the
-- lost time divided among all threads; at most, the run also waited for the last tasks that were
-- retried.
-- Records: transition
-- Source: Spark's Dr. Elephant, "job with failed tasks"; recorded outcomes of attempts
-- Documentation: https://distributed.dask.org/en/stable/resilience.html
-- $min_attempts = 1: number of failed attempts
WITH failed AS (
    SELECT
        trace_id,
        coalesce(
            nullif(regexp_extract(_error_cause(exception), '^\s*(?:\w+\.)*(\w+)', 1), ''), 'unknown exception'
        ) AS exception_type,
        count(*) AS attempts,
        count(DISTINCT key) AS keys,
        count(*) FILTER (outcome = 'retried') AS retried,
        mode(prefix) AS prefix,
        coalesce(sum(compute_seconds), 0) AS seconds,
        coalesce(max(compute_seconds), 0) AS longest_seconds
    FROM task_runs
    WHERE outcome IN ('retried', 'erred')
    GROUP BY ALL
    HAVING count(*) >= $min_attempts
),
tail AS (
    SELECT trace_id, sum(seconds) AS idle_seconds
    FROM core_time
    WHERE use = 'tail'
    GROUP BY trace_id
)
SELECT
    exception_type AS entity,
    'high' AS confidence,
    format(
        '{} {} at {} {}{} failed with {}: {:.1f} s of computing were lost.',
        attempts, CASE WHEN attempts = 1 THEN 'attempt' ELSE 'attempts' END,
        keys, CASE WHEN keys = 1 THEN 'task' ELSE 'tasks' END,
        -- A trace can lack the tasks.
        coalesce(' (' || prefix || ')', ''), exception_type, seconds
    ) AS sentence,
    seconds AS core_seconds,
    0.8 * seconds / mean_nthreads AS wall_seconds_min,
    1.3 * seconds / mean_nthreads
        + least(longest_seconds, coalesce(idle_seconds, 0) / mean_nthreads) AS wall_seconds_max,
    CASE
        WHEN retried > 0 THEN format(
            'Find the cause of {}. Repeat only the operation that fails, inside of the task, not the whole task.',
            exception_type
        )
        ELSE format('Find the cause of {}.', exception_type)
    END AS change,
    format(
        'SELECT key, attempt, worker, compute_seconds, exception FROM task_runs'
        ' WHERE outcome IN (''retried'', ''erred'') AND exception LIKE ''%{}%''',
        CASE exception_type WHEN 'unknown exception' THEN '' ELSE replace(exception_type, '''', '''''') END
    ) AS evidence,
    trace_id
FROM failed
INNER JOIN _run_size USING (trace_id)
LEFT JOIN tail USING (trace_id);
