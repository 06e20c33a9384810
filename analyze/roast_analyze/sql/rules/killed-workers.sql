-- Workers killed because of memory, or lost.
-- The compute time of a killed worker is lost: its running attempts, and results that had to be
-- computed again. Until the nanny has started another worker, its threads are missing, and other
-- workers wait. Only kills by nannies are recorded with a reason: a worker that the kernel or the batch
-- system killed, or that crashed, is lost for an unknown reason.
-- Source: departures of workers, and core time of lost and recomputed attempts
-- Documentation: https://distributed.dask.org/en/stable/killed.html
-- $memory_factor = 1.5: recommended memory relative to the limit at which a worker was killed
WITH removed AS (
    SELECT
        trace_id,
        process,
        workers.name,
        workers.nthreads,
        workers.memory_limit_bytes,
        workers.removed_t,
        removal.kill
    FROM _worker_removals AS removal
    INNER JOIN _workers AS workers USING (trace_id, process)
    WHERE NOT removal.expected OR removal.kill IS NOT NULL
),
replaced AS (
    SELECT
        removed.*,
        successor.added_t - removed.removed_t AS missing_seconds
    FROM removed
    ASOF LEFT JOIN (FROM _workers WHERE added_t IS NOT NULL) AS successor
        ON removed.trace_id = successor.trace_id
        AND removed.name = successor.name
        AND removed.removed_t <= successor.added_t
),
deaths AS (
    SELECT
        trace_id,
        count(*) AS deaths,
        count(kill) AS kills,
        min(name) AS name,
        count(DISTINCT name) AS names,
        max(memory_limit_bytes) AS limit_bytes,
        coalesce(sum(nthreads * missing_seconds), 0) AS missing_seconds
    FROM replaced
    GROUP BY trace_id
),
lost AS (
    SELECT
        trace_id,
        coalesce(sum(seconds) FILTER (use = 'lost attempt'), 0) AS lost_seconds,
        coalesce(sum(seconds) FILTER (use = 'recomputed result'), 0) AS recomputed_seconds
    FROM _core_time
    GROUP BY trace_id
),
costs AS (
    SELECT
        deaths.*,
        coalesce(lost_seconds, 0) AS lost_seconds,
        coalesce(recomputed_seconds, 0) AS recomputed_seconds,
        missing_seconds + coalesce(lost_seconds + recomputed_seconds, 0) AS seconds
    FROM deaths
    LEFT JOIN lost USING (trace_id)
)
SELECT
    CASE WHEN names = 1 THEN name END AS entity,
    'high' AS confidence,
    CASE
        WHEN kills = 1 THEN 'One worker was killed because of memory'
        WHEN kills > 1 THEN format('{} workers were killed because of memory', kills)
        ELSE ''
    END || CASE WHEN kills > 0 AND deaths > kills THEN ', and ' ELSE '' END || CASE
        WHEN deaths - kills = 1
            THEN CASE WHEN kills = 0 THEN 'One' ELSE 'one' END || ' worker was lost for an unknown reason'
        WHEN deaths > kills THEN format('{} workers were lost for an unknown reason', deaths - kills)
        ELSE ''
    END || format(
        ': {:.1f} s of computing were lost and {:.1f} s repeated, and threads were missing for {:.1f} s.',
        lost_seconds, recomputed_seconds, missing_seconds
    ) AS sentence,
    seconds AS core_seconds,
    0.6 * seconds / greatest(run.peak_nthreads, 1) AS wall_seconds_min,
    -- Other workers wait for lost results.
    least(seconds, run.stop_t - run.start_t) AS wall_seconds_max,
    CASE
        WHEN kills > 0 AND limit_bytes IS NOT NULL
            THEN format(
                'Give each worker about {} (now {}), or fewer threads or smaller chunks to each.',
                _byte_size($memory_factor * limit_bytes), _byte_size(limit_bytes)
            )
        ELSE 'Look for the cause in the logs of the workers and of the batch system.'
    END AS change,
    'SELECT t, what, worker, key, detail FROM failures WHERE what IN (''worker lost'', ''attempt lost'')'
        AS evidence,
    costs.trace_id
FROM costs
INNER JOIN _cluster_size AS run USING (trace_id);
