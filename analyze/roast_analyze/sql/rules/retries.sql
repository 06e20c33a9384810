-- Attempts that failed and were repeated.
-- The compute time of failed attempts is lost, and their tasks end later.
-- Source: Spark's Dr. Elephant, "Job with failed tasks"; recorded outcomes of attempts
-- Documentation: https://distributed.dask.org/en/stable/resilience.html
-- $min_attempts = 1: number of failed attempts
WITH failed AS (
    SELECT
        trace_id,
        prefix,
        regexp_extract(exception, '^\s*([\w.]+)', 1) AS exception_type,
        count(*) AS attempts,
        sum(compute_seconds) AS seconds
    FROM task_runs
    WHERE outcome IN ('retried', 'erred')
    GROUP BY ALL
    HAVING count(*) >= $min_attempts
)
SELECT
    exception_type AS entity,
    'high' AS confidence,
    format(
        '{} attempts of {} failed with {} after {:.1f} s of computing.',
        attempts, prefix, exception_type, seconds
    ) AS sentence,
    seconds AS core_seconds,
    seconds / nullif(run.peak_nthreads, 0) AS wall_seconds_min,
    least(seconds, run.wall_seconds) AS wall_seconds_max,
    'Fix the cause of ' || exception_type || ', or catch it in the task.' AS change,
    format(
        'SELECT key, attempt, worker, exception FROM task_runs WHERE outcome IN (''retried'', ''erred'')'
        ' AND prefix = ''{}''', replace(prefix, '''', '''''')
    ) AS evidence,
    failed.trace_id
FROM failed
INNER JOIN run USING (trace_id);
