-- Failed attempts.
-- The compute time of a failed attempt is lost, and its task ends later. The saving is at least the
-- lost time divided among all threads; at most, the run also waited for the last tasks that were
-- retried. If tasks failed for good, the result is incomplete, and without the error the run would
-- take longer: there is no saving. Tasks that lost their workers belong to rule killed-workers.
-- Records: transition
-- Source: Spark's Dr. Elephant, "job with failed tasks"; recorded outcomes of attempts
-- Documentation: https://distributed.dask.org/en/stable/resilience.html
-- $min_attempts = 1: number of failed attempts
-- $max_words = 16: words of the first error that are quoted
-- $max_characters = 300: their length
WITH attempts AS (
    SELECT
        trace_id,
        key,
        prefix,
        outcome,
        compute_seconds,
        trim(regexp_replace(_error_cause(exception), '\s+', ' ', 'g')) AS error,
        coalesce(
            nullif(regexp_extract(error, '^(?:\w+\.)*(\w+)', 1), ''), 'unknown exception'
        ) AS exception_type,
        end_t
    FROM task_runs
    WHERE outcome IN ('retried', 'erred') AND NOT starts_with(coalesce(exception, ''), 'KilledWorker')
),
-- A client can compute a task again that failed.
recovered AS (
    SELECT failed.trace_id, failed.key
    FROM (SELECT trace_id, key, end_t FROM attempts WHERE outcome = 'erred') AS failed
    INNER JOIN _task_runs AS run
        ON failed.trace_id = run.trace_id
        AND failed.key = run.key
        AND run.outcome = 'memory'
        AND run.end_t > failed.end_t
),
failed AS (
    SELECT
        trace_id,
        exception_type,
        count(*) AS attempts,
        count(DISTINCT key) AS keys,
        count(DISTINCT key) FILTER (
            outcome = 'erred' AND (trace_id, key) NOT IN (SELECT (trace_id, key) FROM recovered)
        ) AS failed_keys,
        count(*) FILTER (outcome = 'retried') AS retried,
        CASE WHEN count(DISTINCT prefix) > 1 THEN 'such as ' ELSE '' END || mode(prefix) AS prefix,
        arg_min(error, end_t) AS first_error,
        array_to_string(string_split(first_error, ' ')[:$max_words::BIGINT], ' ')[:$max_characters::BIGINT]
            AS error,
        coalesce(sum(compute_seconds), 0) AS seconds,
        coalesce(max(compute_seconds), 0) AS longest_seconds
    FROM attempts
    GROUP BY ALL
    HAVING count(*) >= $min_attempts
),
tail AS (
    SELECT trace_id, sum(seconds) AS idle_seconds
    FROM _core_time
    WHERE use = 'tail'
    GROUP BY trace_id
)
SELECT
    exception_type AS entity,
    'high' AS confidence,
    concat(
        CASE
            WHEN failed_keys > 0 THEN format(
                '{} {}{} failed for good with {}: {}. {} failed.',
                failed_keys, CASE WHEN failed_keys = 1 THEN 'task' ELSE 'tasks' END,
                coalesce(' (' || prefix || ')', ''), exception_type,
                CASE
                    WHEN failed_keys = 1 THEN 'its result is missing, and those of all tasks that need it'
                    ELSE 'their results are missing, and those of all tasks that need them'
                END,
                CASE WHEN attempts = 1 THEN 'One attempt' ELSE attempts || ' attempts' END
            )
            ELSE format(
                '{} {} at {} {}{} failed with {}: {:.1f} s of computing were lost.',
                attempts, CASE WHEN attempts = 1 THEN 'attempt' ELSE 'attempts' END,
                keys, CASE WHEN keys = 1 THEN 'task' ELSE 'tasks' END,
                -- A trace can lack the tasks.
                coalesce(' (' || prefix || ')', ''), exception_type, seconds
            )
        END,
        ' The error: ' || nullif(error, exception_type)
        || CASE WHEN error = first_error THEN '' ELSE ' …' END
    ) AS sentence,
    CASE WHEN failed_keys = 0 THEN seconds END AS core_seconds,
    CASE WHEN failed_keys = 0 THEN 0.8 * seconds / mean_nthreads END AS wall_seconds_min,
    CASE
        WHEN failed_keys = 0
            THEN 1.3 * seconds / mean_nthreads
                + least(longest_seconds, coalesce(idle_seconds, 0) / mean_nthreads)
    END AS wall_seconds_max,
    CASE
        WHEN failed_keys = 0 AND retried > 0 THEN format(
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
