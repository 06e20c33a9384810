-- Needs: _host_use, _loop_intervals, _workers
-- Load of hosts while tasks ran: one row per host that was sampled, or has at least two processes that
-- were. A sampled host is loaded if for at least half of the time it had no free core, although the
-- run's own tasks did not use them all, or its control group was throttled. Without samples of the host, it is loaded if the
-- event loops of all processes are late, also those of the scheduler or of a worker that has no task:
-- a single late loop can have its own cause. Beside as many computing programs as there are cores,
-- loops are still punctual, so that a host that is not found to be loaded can lack cores as well.
-- Workers in the process of the scheduler are no processes of their own. `reason` continues a sentence
-- that begins with the host.
CREATE TABLE _host_load AS
WITH loops AS (
    SELECT
        trace_id,
        host,
        count(*) AS processes,
        bool_or(worker IS NULL) AS has_scheduler,
        min(interval_seconds) AS interval_seconds,
        max(cores) AS cores,
        sum(used_cores) AS used_cores,
        coalesce(min(interval_seconds) >= 0.021 AND min(idle_interval_seconds) >= 0.021, false) AS is_late
    FROM _loop_intervals
    WHERE host IS NOT NULL
        AND samples >= 3
        AND trace_id NOT IN (SELECT trace_id FROM _workers WHERE worker LIKE 'inproc://%')
    GROUP BY trace_id, host
    HAVING count(*) >= 2
),
sampled AS (
    SELECT
        trace_id,
        host,
        bool_or(has_scheduler) AS has_scheduler,
        max(coalesce(usable_cores, affinity_cores)) AS cores,
        sum(own_cores * work_seconds) / sum(work_seconds) FILTER (own_cores IS NOT NULL) AS used_cores,
        coalesce(sum(work_seconds) FILTER (lacks_cores), 0) / sum(work_seconds) AS lacking_share,
        coalesce(sum(work_seconds) FILTER (is_throttled), 0) / sum(work_seconds) AS throttled_share
    FROM _host_use
    GROUP BY trace_id, host
)
SELECT
    trace_id,
    host,
    loops.processes,
    coalesce(sampled.has_scheduler, loops.has_scheduler) AS has_scheduler,
    loops.interval_seconds,
    coalesce(sampled.cores, loops.cores) AS cores,
    coalesce(sampled.used_cores, loops.used_cores) AS used_cores,
    coalesce(lacking_share >= 0.5 OR throttled_share >= 0.5, is_late) AS is_loaded,
    CASE
        WHEN sampled.host IS NULL THEN format(
            'the event loops of all its processes ran late, every {:.0f} ms or less often (20 ms if idle)',
            1000 * interval_seconds
        )
        WHEN lacking_share >= throttled_share THEN format(
            'no core was free for {:.0f} % of the sampled time with tasks',
            100 * lacking_share
        )
        ELSE format(
            'its control group was throttled, since it had used up its quota, for {:.0f} % of the sampled time with tasks',
            100 * throttled_share
        )
    END AS reason,
    sampled.host IS NOT NULL AS is_sampled
FROM loops
FULL JOIN sampled USING (trace_id, host);
