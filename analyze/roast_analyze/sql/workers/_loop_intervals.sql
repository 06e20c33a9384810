-- Needs: _process_hosts, _task_runs
-- Median interval of the event loop of each process while tasks were in progress. A tick runs every
-- 20 ms; Dask skips ticks whose time has passed, so that the interval grows only if a loop waits for
-- longer: for a core, for the GIL, or for a callback. The thread of the loop rarely needs a core, so
-- that two computing programs on two cores do not delay it.
CREATE TABLE _loop_intervals AS
WITH work AS (
    SELECT trace_id, min(processing_t) AS start_t, max(coalesce(end_t, processing_t)) AS stop_t
    FROM _task_runs
    GROUP BY trace_id
),
samples AS (
    SELECT
        trace_id,
        t,
        worker,
        -- Threads of a process can delay each other and its loop.
        coalesce(executing, 0) AS tasks,
        metrics.event_loop_interval AS interval_seconds,
        metrics.cpu / 100 AS used_cores
    FROM raw.worker_sample
    UNION ALL
    -- The scheduler's own work can delay its loop, like a task.
    SELECT
        trace_id,
        t,
        NULL,
        if(metrics.cpu >= 50, 1, 0),
        metrics.event_loop_interval,
        metrics.cpu / 100
    FROM raw.scheduler_sample
)
SELECT
    samples.trace_id,
    samples.worker,
    any_value(hosts.host) AS host,
    any_value(hosts.cores) AS cores,
    count(*) AS samples,
    median(interval_seconds) AS interval_seconds,
    median(interval_seconds) FILTER (tasks > 1) AS threads_interval_seconds,
    median(interval_seconds) FILTER (tasks <= 1) AS other_interval_seconds,
    median(interval_seconds) FILTER (tasks = 0) AS idle_interval_seconds,
    avg(used_cores) AS used_cores
FROM samples
LEFT JOIN work ON samples.trace_id = work.trace_id
LEFT JOIN _process_hosts AS hosts
    ON samples.trace_id = hosts.trace_id
    AND samples.worker IS NOT DISTINCT FROM hosts.worker
WHERE interval_seconds > 0 AND coalesce(samples.t BETWEEN work.start_t AND work.stop_t, true)
GROUP BY samples.trace_id, samples.worker;
