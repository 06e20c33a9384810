-- Workers paused because of memory.
-- A paused worker starts no task. A worker that may not spill any more, by max-spill, cannot release memory, and
-- stays paused. The saving is at least the time of its threads; at most, it also
-- includes the time of threads that waited for the tasks of this worker.
-- Applies: EXISTS (FROM _core_time WHERE use = 'paused worker')
-- Explains: paused worker
-- Source: distributed.worker.memory.pause; view pauses
-- Documentation: https://distributed.dask.org/en/stable/worker-memory.html
-- $min_seconds = 0.5: time paused
-- $min_spilled_share = 0.5: spilled bytes of a worker, as a share of max-spill, from which the limit is named
-- $least_saved = 0.8: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.3: ratio of the largest saving to the cost; calibrated as well
WITH buckets AS (
    SELECT
        trace_id,
        t,
        -- Part of the bucket in which there was work.
        1 - coalesce(workless_seconds / nullif(seconds - paused_seconds, 0), 0) AS active,
        tail_seconds + imbalance_seconds AS idle_seconds
    FROM _bucket_uses
),
paused AS (
    SELECT
        spent.trace_id,
        coalesce(any_value(worker.name), any_value(worker.worker)) AS name,
        any_value(worker.worker) AS worker,
        sum(spent.seconds * active) AS seconds,
        sum(idle_seconds) AS idle_seconds
    FROM _core_time AS spent
    INNER JOIN buckets USING (trace_id, t)
    INNER JOIN _workers AS worker USING (process)
    WHERE spent.use = 'paused worker'
    GROUP BY spent.trace_id, process
),
-- Workers that were paused at the end, while tasks were left.
lasting AS (
    SELECT trace_id, count(*) AS workers
    FROM paused
    SEMI JOIN (FROM pauses WHERE stop_t IS NULL) AS pause USING (trace_id, worker)
    GROUP BY trace_id
),
left_over AS (
    SELECT trace_id, count(*) AS tasks
    FROM (
        SELECT trace_id FROM unattempted WHERE reason = 'waiting at the end'
        UNION ALL
        SELECT trace_id FROM _task_runs WHERE outcome = 'unfinished'
    )
    GROUP BY trace_id
),
limits AS (
    SELECT
        trace_id,
        worker,
        value,
        regexp_extract(trim(value), '^(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?)[bB]?$', ['number', 'unit', 'binary'])
            AS size
    FROM (
        SELECT trace_id, value, unnest(workers) AS worker
        FROM config
        WHERE name = 'distributed.worker.memory.max-spill'
    )
    SEMI JOIN paused USING (trace_id, worker)
),
limited AS (
    SELECT
        trace_id,
        max(spilled_bytes) AS spilled_bytes,
        max_by(value, spilled_bytes) AS most_spilled
    FROM worker_samples
    INNER JOIN limits USING (trace_id, worker)
    WHERE spilled_bytes >= $min_spilled_share
        * try_cast(size.number AS DOUBLE)
        * pow(if(size.binary = 'i', 1024, 1000), coalesce(strpos('kmgt', nullif(lower(size.unit), '')), 0))
    GROUP BY trace_id
),
found AS (
    SELECT
        trace_id,
        count(*) AS paused_workers,
        string_agg(name, ', ' ORDER BY seconds DESC) AS names,
        string_agg('''' || replace(worker, '''', '''''') || '''', ', ') AS quoted,
        sum(seconds) AS seconds,
        max(idle_seconds) AS idle_seconds
    FROM paused
    GROUP BY trace_id
    HAVING sum(seconds) >= $min_seconds
)
SELECT
    CASE WHEN paused_workers <= 5 THEN names END AS entity,
    'high' AS confidence,
    concat(
        format(
            '{} paused because of memory: {:.1f} core-seconds while there was work.',
            CASE
                WHEN paused_workers = 1 THEN 'Worker ' || names || ' was'
                ELSE paused_workers || ' workers were'
            END,
            seconds
        ),
        format(
            ' {} paused until the recording ended, when {} without a result.',
            CASE
                WHEN lasting.workers = paused_workers THEN if(paused_workers = 1, 'It was', 'They were')
                ELSE lasting.workers || ' of them ' || if(lasting.workers = 1, 'was', 'were')
            END,
            left_over.tasks || if(left_over.tasks = 1, ' task was', ' tasks were')
        ),
        format(
            ' A worker may spill {} (distributed.worker.memory.max-spill), and had spilled up to {:,.0f} MB.',
            most_spilled, spilled_bytes / 1e6
        )
    ) AS sentence,
    seconds AS core_seconds,
    $least_saved * seconds / mean_nthreads AS wall_seconds_min,
    $most_saved * (seconds + idle_seconds) / mean_nthreads AS wall_seconds_max,
    concat(
        CASE WHEN most_spilled IS NOT NULL THEN 'Raise distributed.worker.memory.max-spill if the disk has room. ' END,
        'Give workers more memory, or fewer threads each; hold fewer results, and release memory that Dask does'
        ' not manage.'
    ) AS change,
    format(
        'SELECT t, memory_bytes, managed_bytes, memory_limit_bytes FROM worker_samples WHERE worker IN ({})'
        ' ORDER BY worker, t', quoted
    ) AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
LEFT JOIN lasting USING (trace_id)
LEFT JOIN left_over USING (trace_id)
LEFT JOIN limited USING (trace_id);
