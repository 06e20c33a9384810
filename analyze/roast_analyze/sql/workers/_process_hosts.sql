-- Needs: _processes, _workers
-- Host of each worker and, without a worker, of the scheduler: the name by its own account, or else
-- the address that Dask knows; and the cores that it may use.
CREATE TABLE _process_hosts AS
WITH machines AS (
    SELECT
        trace_id,
        if(role = 'worker', worker, NULL) AS worker,
        process.machine.host AS host,
        least(cgroup_cores, process.machine.usable_cores) AS cores
    FROM _processes
    WHERE role = 'scheduler' OR role = 'worker' AND worker IS NOT NULL
)
SELECT
    trace_id,
    worker,
    coalesce(max(machines.host), max(_workers.host)) AS host,
    max(machines.cores) AS cores
FROM machines
FULL JOIN _workers USING (trace_id, worker)
GROUP BY trace_id, worker;
