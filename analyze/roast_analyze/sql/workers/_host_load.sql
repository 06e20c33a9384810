-- Needs: _loop_intervals, _workers
-- Hosts on which even the most punctual event loop is late while tasks run: their cores are taken, by
-- this run or by other programs. Beside two computing programs on two cores, loops are still punctual,
-- so that a host that is not found to be loaded can lack cores as well. One row per host with at least
-- two processes that were sampled: a single late loop can have its own cause. Workers in the process of
-- the scheduler are no processes of their own.
CREATE VIEW _host_load AS
SELECT
    trace_id,
    host,
    count(*) AS processes,
    bool_or(worker IS NULL) AS has_scheduler,
    min(interval_seconds) AS interval_seconds,
    max(cores) AS cores,
    sum(used_cores) AS used_cores,
    min(interval_seconds) >= 0.021 AS is_loaded,
    coalesce(sum(used_cores) < 0.8 * max(cores), false) AS is_used_by_others
FROM _loop_intervals
WHERE host IS NOT NULL
    AND samples >= 3
    AND trace_id NOT IN (SELECT trace_id FROM _workers WHERE worker LIKE 'inproc://%')
GROUP BY trace_id, host
HAVING count(*) >= 2;
