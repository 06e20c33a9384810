-- Workers paused because of memory.
-- A paused worker starts no task. The saving is at least the time of its threads; at most, it also
-- includes the time of threads that waited for the tasks of this worker.
-- Applies: EXISTS (FROM _core_time WHERE use = 'paused worker')
-- Explains: paused worker
-- Source: distributed.worker.memory.pause; view pauses
-- Documentation: https://distributed.dask.org/en/stable/worker-memory.html
-- $min_seconds = 0.5: time paused
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
    format(
        '{} paused because of memory: {:.1f} core-seconds while there was work.',
        CASE
            WHEN paused_workers = 1 THEN 'Worker ' || names || ' was'
            ELSE paused_workers || ' workers were'
        END,
        seconds
    ) AS sentence,
    seconds AS core_seconds,
    $least_saved * seconds / mean_nthreads AS wall_seconds_min,
    $most_saved * (seconds + idle_seconds) / mean_nthreads AS wall_seconds_max,
    'Give workers more memory, or fewer threads each; hold fewer results, and release memory that Dask does'
    ' not manage.' AS change,
    format(
        'SELECT t, memory_bytes, managed_bytes, memory_limit_bytes FROM worker_samples WHERE worker IN ({})'
        ' ORDER BY worker, t', quoted
    ) AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id);
