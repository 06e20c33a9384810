-- High unmanaged memory.
-- Caches, leaks, fragmentation and data of running tasks are not results, so that Dask can neither
-- spill nor move them. The memory of a worker before its first task is not counted. The cost is that of the
-- consequences: workers that are paused or killed, or that spill results that would otherwise fit into
-- their memory. Workers that were killed because of one chunk, or of the tasks that they ran last or
-- first, belong to rule killed-workers. Results whose size Dask does not know look the same, unless they are spilled:
-- they then take more bytes on disk than Dask counts for them in memory.
-- Records: worker_sample
-- Applies: EXISTS (FROM _worker_memory WHERE unmanaged_bytes - idle_bytes >= $min_share * (limit_bytes - idle_bytes))
-- Explains: paused worker
-- Source: process memory minus managed results in samples of workers
-- Documentation: https://distributed.dask.org/en/stable/worker-memory.html#using-the-dashboard-to-monitor-memory-usage
-- $min_share = 0.4: unmanaged memory relative to the limit, both minus the memory of an idle worker
-- $max_stored_share = 0.6: results that Dask keeps without spilling, relative to the memory limit
-- $min_spilled_bytes = 5e7: results of a worker on disk, from which their size is compared
-- $min_spilled_ratio = 3: their size on disk, relative to what Dask counts for them in memory
-- $min_undercounted_share = 0.2: what Dask does not count of them, relative to the unmanaged memory of the worker
-- $least_saved = 0.4: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
WITH kills AS (
    SELECT trace_id, process, worker, removed_t FROM _worker_removals WHERE kill IS NOT NULL
),
last_results AS (
    SELECT kills.trace_id, kills.process, kills.worker, max(attempt.end_t) AS end_t
    FROM kills
    INNER JOIN _workers AS process USING (trace_id, process)
    INNER JOIN _task_runs AS attempt
        ON kills.trace_id = attempt.trace_id
        AND kills.worker = attempt.worker
        AND attempt.outcome = 'memory'
        AND attempt.end_t BETWEEN process.from_t AND kills.removed_t
    GROUP BY ALL
),
-- When the last task had ended, there was little unmanaged memory.
grown AS (
    SELECT last.process
    FROM last_results AS last
    INNER JOIN _worker_memory AS memory USING (process)
    ASOF INNER JOIN raw.worker_sample AS sample
        ON last.trace_id = sample.trace_id AND last.worker = sample.worker AND last.end_t >= sample.t
    WHERE sample.metrics.memory - coalesce(sample.metrics.managed_bytes, 0)
            + coalesce(sample.metrics.spilled_memory, 0) - memory.idle_bytes
        < $min_share * (sample.memory_limit - memory.idle_bytes)
),
explained AS (
    FROM grown
    UNION
    SELECT process FROM kills ANTI JOIN last_results USING (process)
    UNION
    SELECT process
    FROM kills
    SEMI JOIN (FROM _fatal_chunks WHERE workers > 1) AS fatal USING (trace_id)
),
peaks AS (
    SELECT *, stored_bytes < $max_stored_share * limit_bytes AS would_fit
    FROM _worker_memory
    ANTI JOIN explained USING (process)
    WHERE unmanaged_bytes - idle_bytes >= $min_share * (limit_bytes - idle_bytes)
),
spent AS (
    SELECT
        trace_id,
        process,
        sum(seconds) FILTER (use = 'paused worker') AS paused_seconds,
        sum(seconds) FILTER (use = 'lost attempt') AS lost_seconds,
        sum(seconds) FILTER (use = 'disk') AS disk_seconds
    FROM _core_time
    GROUP BY ALL
),
recomputed AS (
    SELECT trace_id, sum(seconds) AS seconds
    FROM _core_time
    WHERE use = 'recomputed result'
    GROUP BY trace_id
),
-- Workers whose results on disk are larger than Dask counts, by a good part of their unmanaged memory.
undercounted AS (
    SELECT
        trace_id,
        process,
        any_value(workers.worker) AS worker,
        max(metrics.spilled_disk) AS spilled_bytes,
        max_by(metrics.spilled_memory, metrics.spilled_disk) AS counted_bytes
    FROM peaks
    INNER JOIN _workers AS workers USING (trace_id, process)
    INNER JOIN raw.worker_sample AS sample
        ON workers.trace_id = sample.trace_id
        AND workers.worker = sample.worker
        AND sample.t >= workers.from_t
        AND coalesce(sample.t <= workers.removed_t, true)
    WHERE metrics.spilled_disk >= greatest($min_spilled_bytes, $min_spilled_ratio * metrics.spilled_memory)
    GROUP BY trace_id, process
    HAVING spilled_bytes - counted_bytes >= $min_undercounted_share * any_value(unmanaged_bytes - idle_bytes)
),
-- The type of the largest results of the worker with most on disk, by Dask's count.
unknown AS (
    SELECT
        largest.trace_id,
        any_value(largest.spilled_bytes) AS spilled_bytes,
        any_value(largest.counted_bytes) AS counted_bytes,
        any_value(largest.processes) AS processes,
        max_by(attempt.typename, attempt.nbytes) AS typename
    FROM (
        SELECT *, count(*) OVER (PARTITION BY trace_id) AS processes
        FROM undercounted
        QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY spilled_bytes DESC, process) = 1
    ) AS largest
    LEFT JOIN _task_runs AS attempt
        ON largest.trace_id = attempt.trace_id
        AND largest.worker = attempt.worker
        AND attempt.outcome = 'memory'
        AND attempt.nbytes <= largest.counted_bytes
    GROUP BY largest.trace_id
),
totals AS (
    SELECT
        peaks.trace_id,
        count(*) AS processes,
        count(DISTINCT peaks.name) AS names,
        min(peaks.name) AS name,
        count(kills.process) AS kills,
        max(unmanaged_bytes) AS unmanaged_bytes,
        arg_max(limit_bytes, unmanaged_bytes) AS limit_bytes,
        coalesce(sum(paused_seconds), 0) AS paused_seconds,
        coalesce(sum(lost_seconds) FILTER (kills.process IS NOT NULL), 0) AS lost_seconds,
        coalesce(sum(disk_seconds) FILTER (would_fit), 0) AS disk_seconds
    FROM peaks
    LEFT JOIN spent USING (trace_id, process)
    LEFT JOIN kills USING (trace_id, process)
    GROUP BY peaks.trace_id
),
idle AS (
    SELECT trace_id, sum(tail_seconds) AS tail_seconds FROM _bucket_uses GROUP BY trace_id
),
costs AS (
    SELECT
        totals.*,
        paused_seconds + lost_seconds + disk_seconds
            + CASE WHEN kills > 0 THEN coalesce(recomputed.seconds, 0) ELSE 0 END AS seconds
    FROM totals
    LEFT JOIN recomputed USING (trace_id)
)
SELECT
    CASE WHEN names = 1 THEN name END AS entity,
    -- Tasks with too much data look the same.
    'medium' AS confidence,
    format(
        'Up to {} of the {} of memory of a worker is not {} results of tasks{}.{}',
        _byte_size(unmanaged_bytes), _byte_size(limit_bytes),
        if(spilled_bytes IS NULL, 'used by', 'counted as'),
        coalesce(': ' || nullif(concat_ws(
            ', ',
            CASE WHEN kills = 1 THEN '1 worker was killed' WHEN kills > 1 THEN format('{} workers were killed', kills) END,
            CASE WHEN paused_seconds >= 0.05 THEN format('pauses cost {:,.1f} core-seconds', paused_seconds) END,
            CASE WHEN disk_seconds >= 0.05 THEN format('writing results to disk cost {:,.1f} core-seconds', disk_seconds) END
        ), ''), ''),
        coalesce(
            format(
                ' Dask does not know the size of some results: on the disk of a worker, they took {}, and Dask counted {}'
                ' for them.{}',
                _byte_size(spilled_bytes), _byte_size(counted_bytes),
                coalesce(format(' The largest of them, by its count, are of type {}.', unknown.typename), '')
            ),
            ''
        )
    ) AS sentence,
    seconds AS core_seconds,
    $least_saved * seconds / greatest(cluster.peak_nthreads, 1) AS wall_seconds_min,
    -- Other workers take over the work of a paused worker, and wait for lost results.
    least(
        (2 * (paused_seconds + disk_seconds) + tail_seconds) / greatest(cluster.peak_nthreads, 1)
            + seconds - paused_seconds - disk_seconds,
        cluster.stop_t - cluster.start_t
    ) AS wall_seconds_max,
    concat_ws(
        ' ',
        CASE WHEN spilled_bytes IS NOT NULL
            THEN 'Give the class of these results a method __sizeof__ that counts what they hold, or register a function'
            ' for it (dask.sizeof.sizeof.register), on workers too: Dask then spills in time.'
        END,
        -- Other workers have other reasons.
        CASE WHEN unknown.processes IS DISTINCT FROM costs.processes
            THEN 'Look for caches and leaks in tasks and libraries, set MALLOC_TRIM_THRESHOLD_=0, or restart workers'
            ' regularly (--lifetime).'
        END
    ) AS change,
    'SELECT t, worker, memory_bytes, managed_bytes, memory_limit_bytes FROM worker_samples' AS evidence,
    costs.trace_id
FROM costs
INNER JOIN _cluster_size AS cluster USING (trace_id)
INNER JOIN idle USING (trace_id)
LEFT JOIN unknown USING (trace_id)
WHERE seconds > 0;
