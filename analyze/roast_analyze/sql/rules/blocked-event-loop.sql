-- Event loops of workers are blocked.
-- While its event loop is blocked, a worker neither starts tasks nor reports results, sends data
-- or heartbeats. Threads that compute go on. The cost is therefore at most the time in which
-- threads of the worker waited for a task that was assigned to it.
-- Source: stalls of event loops, and core time of uses dispatch and transfer
-- Documentation: https://distributed.dask.org/en/stable/worker.html
-- $min_share = 0.02: stalls of a worker against the time of the run
-- $entity_share = 0.6: share of the cost that makes one worker the entity
WITH stalled AS (
    SELECT trace_id, server_id, sum(stop_t - start_t) AS seconds, count(*) AS stalls
    FROM raw.stall
    WHERE worker IS NOT NULL
    GROUP BY ALL
),
waited AS (
    SELECT trace_id, process, sum(seconds) AS seconds
    FROM _core_time
    WHERE use IN ('dispatch', 'transfer')
    GROUP BY ALL
),
by_worker AS (
    SELECT
        workers.trace_id,
        workers.name,
        stalled.stalls,
        stalled.seconds AS stalled_seconds,
        least(stalled.seconds * coalesce(workers.nthreads, 1), waited.seconds) AS seconds
    FROM stalled
    INNER JOIN _workers AS workers USING (trace_id, server_id)
    INNER JOIN waited USING (trace_id, process)
    INNER JOIN _cluster_size AS run USING (trace_id)
    WHERE stalled.seconds >= $min_share * (run.stop_t - run.start_t)
),
totals AS (
    SELECT
        trace_id,
        count(*) AS blocked_workers,
        arg_max(name, seconds) AS worst,
        max(seconds) AS worst_seconds,
        max(stalled_seconds) AS longest_seconds,
        sum(stalled_seconds) AS stalled_seconds,
        sum(stalls)::BIGINT AS stalls,
        sum(seconds) AS seconds
    FROM by_worker
    GROUP BY trace_id
)
SELECT
    CASE WHEN worst_seconds >= $entity_share * seconds THEN worst END AS entity,
    'high' AS confidence,
    CASE
        WHEN worst_seconds >= $entity_share * seconds THEN format('The event loop of worker {} was', worst)
        ELSE format('The event loops of {} workers were', blocked_workers)
    END || format(
        ' blocked {} times, {:.1f} s in all; their free threads waited for {:.1f} s.', stalls,
        stalled_seconds, seconds
    ) AS sentence,
    seconds AS core_seconds,
    0.6 * seconds / greatest(run.peak_nthreads, 1) AS wall_seconds_min,
    -- The last results can wait for one worker, and others for its results.
    least(longest_seconds, 1.5 * worst_seconds, run.stop_t - run.start_t) AS wall_seconds_max,
    'Look for plugins, async tasks and callbacks on workers that compute or wait synchronously: move this'
    ' to tasks or threads.' AS change,
    'SELECT worker, start_t, seconds FROM stalls WHERE process = ''worker'' ORDER BY seconds DESC' AS evidence,
    totals.trace_id
FROM totals
INNER JOIN _cluster_size AS run USING (trace_id);
