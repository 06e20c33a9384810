-- Threads that waited for inputs from other workers.
-- The time is that of core_time: one waiting attempt explains one idle thread. Without transfers, at
-- least half of it is computed; at most, the tail that they leave behind shrinks as well.
-- Source: Spark's "shuffle read blocked time"; recorded transfers of attempts
-- Documentation: https://distributed.dask.org/en/stable/efficiency.html
-- $min_share = 0.05: part of the core time
WITH waited AS (
    SELECT trace_id, prefix, sum(seconds) AS seconds
    FROM core_time
    WHERE use = 'transfer'
    GROUP BY trace_id, prefix
),
found AS (
    SELECT waited.*, mean_nthreads
    FROM waited
    INNER JOIN _run_size USING (trace_id)
    WHERE waited.seconds >= $min_share * run_core_seconds AND prefix IS NOT NULL
),
tail AS (
    SELECT trace_id, sum(tail_seconds + dependencies_seconds) AS seconds
    FROM _bucket_uses
    GROUP BY trace_id
),
inputs AS (
    SELECT trace_id, prefix, worker, unnest(dependencies) AS dependency
    FROM (
        SELECT task.trace_id, task.prefix, run.worker, task.dependencies
        FROM _task_runs AS run
        INNER JOIN raw.task AS task ON run.submission = task.rowid
        INNER JOIN found ON task.trace_id = found.trace_id AND task.prefix = found.prefix
        WHERE run.outcome = 'memory'
    )
),
moved AS (
    SELECT
        trace_id,
        prefix,
        sum(nbytes) AS nbytes,
        max_by(source, nbytes) AS source
    FROM (
        SELECT
            inputs.trace_id,
            inputs.prefix,
            result.prefix AS source,
            sum(result.nbytes) AS nbytes
        -- Tasks of a worker share a transfer.
        FROM (SELECT DISTINCT trace_id, prefix, worker, dependency FROM inputs) AS inputs
        INNER JOIN _task_runs AS result
            ON inputs.trace_id = result.trace_id
            AND inputs.dependency = result.key
            AND inputs.worker <> result.worker
            AND result.outcome = 'memory'
        GROUP BY ALL
    )
    GROUP BY trace_id, prefix
)
SELECT
    found.prefix AS entity,
    'high' AS confidence,
    concat(
        format(
            'Threads waited for {:.1f} s for the inputs of {} from other workers', found.seconds, found.prefix
        ),
        format(': {:.0f} MB, mostly results of {}', moved.nbytes / 1e6, moved.source),
        '.'
    ) AS sentence,
    found.seconds AS core_seconds,
    0.5 * found.seconds / mean_nthreads AS wall_seconds_min,
    1.1 * (found.seconds + least(coalesce(tail.seconds, 0), found.seconds)) / mean_nthreads
        AS wall_seconds_max,
    concat(
        'Move less data: reduce the results', ' of ' || moved.source,
        ' before ', found.prefix, ' combines them, or use fewer workers with more threads each.'
    ) AS change,
    format(
        'SELECT dependency_prefix, count(*) AS inputs, sum(bytes) AS bytes FROM dependencies'
        ' WHERE prefix = ''{}'' AND is_moved GROUP BY ALL', replace(found.prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM found
LEFT JOIN moved USING (trace_id, prefix)
LEFT JOIN tail USING (trace_id);
