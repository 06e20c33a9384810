-- Blocked event loops of workers.
-- While its event loop is blocked, a worker does not start tasks, report results, or send data and
-- heartbeats; threads that compute continue. The cost of a stall is therefore the time in which threads
-- were free while tasks of the worker waited to begin, or their results waited to be reported. Stalls
-- that overlap with stalls of the scheduler count only in the upper end of the saving: the machine was
-- overloaded, or the scheduler was busy with work that such stalls had delayed. Stalls of a worker that
-- writes results to disk belong to rule spilling.
-- Records: stall
-- Source: stalls of event loops, and phases of attempts during them
-- Documentation: https://distributed.dask.org/en/stable/worker.html
-- $min_share = 0.1: stalls of a worker relative to the time of the run
-- $min_stalls = 3: stalls of a worker; imports and the first graph block it once
-- $max_stalls = 200: longest stalls of a worker that are examined
-- $max_computing_share = 0.5: share of the stalls in which threads compute
-- $entity_share = 0.6: share of the cost that makes one worker the entity
WITH stalls AS (
    SELECT
        stall.trace_id,
        stall.rowid AS stall,
        workers.process,
        workers.worker,
        workers.name,
        coalesce(workers.nthreads, 1) AS nthreads,
        stall.start_t,
        stall.stop_t,
        stall.stop_t - stall.start_t AS seconds
    FROM raw.stall AS stall
    INNER JOIN _workers AS workers USING (trace_id, server_id)
    INNER JOIN _cluster_size AS run USING (trace_id)
    WHERE stall.worker IS NOT NULL
        AND stall.rowid NOT IN (SELECT spill.stall FROM _spill_stalls AS spill)
        AND NOT EXISTS (
            FROM raw.stall AS other
            WHERE other.worker IS NULL
                AND other.trace_id = stall.trace_id
                AND other.start_t < stall.stop_t
                AND other.stop_t > stall.start_t
        )
    WINDOW same AS (PARTITION BY stall.trace_id, process)
    QUALIFY count(*) OVER same >= $min_stalls
        AND sum(stall.stop_t - stall.start_t) OVER same >= $min_share * (run.stop_t - run.start_t)
        AND row_number() OVER (same ORDER BY stall.stop_t - stall.start_t DESC) <= $max_stalls
),
attempts AS (
    SELECT
        stall,
        -- An attempt that fetches its inputs may wait for them, and for the disk.
        coalesce(transfer_seconds, 0) = 0 AND coalesce(disk_seconds, 0) = 0 AS is_local,
        CASE WHEN is_local THEN least(compute_start_t, stop_t) - greatest(processing_t, start_t) END
            AS before_seconds,
        least(compute_stop_t, stop_t) - greatest(compute_start_t, start_t) AS compute_seconds,
        CASE WHEN is_local THEN least(end_t, stop_t) - greatest(compute_stop_t, start_t) END
            AS after_seconds
    FROM stalls
    INNER JOIN _task_runs AS run
        ON stalls.trace_id = run.trace_id
        AND stalls.worker = run.worker
        AND run.processing_t < stalls.stop_t
        AND run.end_t > stalls.start_t
),
waits AS (
    SELECT
        stall,
        sum(greatest(before_seconds, 0) + greatest(after_seconds, 0)) AS wait_seconds,
        sum(greatest(compute_seconds, 0)) AS compute_seconds
    FROM attempts
    GROUP BY stall
),
by_worker AS (
    SELECT
        trace_id,
        any_value(name) AS name,
        count(*) AS stalls,
        sum(seconds) AS stalled_seconds,
        coalesce(sum(least(waits.compute_seconds, seconds)), 0) AS computing_seconds,
        coalesce(
            sum(greatest(least(wait_seconds, nthreads * seconds - waits.compute_seconds), 0)), 0
        ) AS seconds
    FROM stalls
    LEFT JOIN waits USING (stall)
    GROUP BY trace_id, process
),
longest AS (
    SELECT stall.trace_id, workers.process, sum(stall.stop_t - stall.start_t) AS seconds
    FROM raw.stall AS stall
    INNER JOIN _workers AS workers USING (trace_id, server_id)
    SEMI JOIN stalls ON stalls.process = workers.process
    WHERE stall.worker IS NOT NULL
        AND stall.rowid NOT IN (SELECT spill.stall FROM _spill_stalls AS spill)
    GROUP BY ALL
),
totals AS (
    SELECT
        trace_id,
        -- A worker and its replacement count once.
        count(DISTINCT name) AS blocked_workers,
        arg_max(name, seconds) AS worst,
        max(seconds) AS worst_seconds,
        (SELECT max(longest.seconds) FROM longest WHERE longest.trace_id = by_worker.trace_id)
            AS longest_seconds,
        sum(stalled_seconds) AS stalled_seconds,
        sum(computing_seconds) AS computing_seconds,
        sum(stalls)::BIGINT AS stalls,
        sum(seconds) AS seconds
    FROM by_worker
    GROUP BY trace_id
)
SELECT
    CASE WHEN worst_seconds >= $entity_share * seconds THEN worst END AS entity,
    -- Tasks that compute may hold the GIL: see rule gil.
    CASE WHEN computing_seconds < $max_computing_share * stalled_seconds THEN 'high' ELSE 'low' END
        AS confidence,
    CASE
        WHEN worst_seconds >= $entity_share * seconds THEN format('The event loop of worker {} was', worst)
        WHEN blocked_workers = 1 THEN 'The event loop of 1 worker was'
        ELSE format('The event loops of {} workers were', blocked_workers)
    END || format(
        ' blocked {} times, {:.1f} s in all. Meanwhile, free threads waited for {:,.1f} core-seconds.', stalls,
        stalled_seconds, seconds
    ) AS sentence,
    seconds AS core_seconds,
    0.6 * seconds / greatest(run.peak_nthreads, 1) AS wall_seconds_min,
    -- The last results can depend on one worker, and other workers on its results.
    least(longest_seconds, 1.5 * worst_seconds, run.stop_t - run.start_t) AS wall_seconds_max,
    'Look for plugins, async tasks and callbacks on workers that compute or wait synchronously: move that'
    ' work to tasks or threads.' AS change,
    'SELECT worker, start_t, seconds FROM stalls WHERE process = ''worker'' ORDER BY seconds DESC' AS evidence,
    totals.trace_id
FROM totals
INNER JOIN _cluster_size AS run USING (trace_id)
WHERE seconds > 0;
