-- Needs: _loop_intervals, _workers
-- Load of hosts while tasks ran: one row per host with at least two processes that were sampled. A host
-- is loaded if the event loops of all of them are late, also those of the scheduler or of a worker that
-- has no task: a single late loop can have its own cause. Beside as many computing programs as there are
-- cores, loops are still punctual, so that a host that is not found to be loaded can lack cores as well.
-- Workers in the process of the scheduler are no processes of their own.
CREATE TABLE _host_load AS
SELECT
    trace_id,
    host,
    count(*) AS processes,
    bool_or(worker IS NULL) AS has_scheduler,
    min(interval_seconds) AS interval_seconds,
    max(cores) AS cores,
    sum(used_cores) AS used_cores,
    coalesce(min(interval_seconds) >= 0.021 AND min(idle_interval_seconds) >= 0.021, false) AS is_loaded
FROM _loop_intervals
WHERE host IS NOT NULL
    AND samples >= 3
    AND trace_id NOT IN (SELECT trace_id FROM _workers WHERE worker LIKE 'inproc://%')
GROUP BY trace_id, host
HAVING count(*) >= 2;
