-- Needs: _host_intervals, _process_hosts, _task_runs
-- Records: host_sample
-- Who used the cores of each host, between two samples of it, while tasks were in progress. Processes
-- of the run are its workers and its scheduler, in a LocalCluster with the client; what they start is
-- counted among others. Their CPU use is that of the last heartbeats. If it is not known, neither is
-- that of others.
CREATE TABLE _host_use AS
WITH work AS (
    SELECT trace_id, min(processing_t) AS start_t, max(coalesce(end_t, processing_t)) AS stop_t
    FROM _task_runs
    GROUP BY trace_id
),
intervals AS (
    SELECT
        intervals.* EXCLUDE (host),
        intervals.host AS sampled_host,
        coalesce(hosts.host, intervals.host) AS host,
        -- Of the interval, with tasks in progress.
        least(t, coalesce(stop_t, t)) - greatest(t - seconds, coalesce(start_t, t - seconds))
            AS work_seconds
    FROM _host_intervals AS intervals
    LEFT JOIN work ON intervals.trace_id = work.trace_id
    LEFT JOIN _process_hosts AS hosts
        ON intervals.trace_id = hosts.trace_id
        AND intervals.worker IS NOT DISTINCT FROM hosts.worker
    WHERE seconds IS NOT NULL AND work_seconds > 0
),
worker_use AS (
    SELECT
        intervals.trace_id,
        intervals.seq,
        -- Workers within the scheduler's process report its use, each.
        sum(if(sample.worker LIKE 'inproc://%', 0, metrics.cpu)) / 100 / count(DISTINCT sample.t) AS cores,
        count(*) > 0 AND count(metrics.cpu) >= 0.9 * count(*) AS is_known,
        sum(coalesce(executing, 0)) / count(DISTINCT sample.t) AS executing,
        -- Workers within one process have common threads.
        sum(if(sample.worker = intervals.worker OR sample.worker LIKE 'inproc://%', executing, 0))
            / count(DISTINCT sample.t) AS sampler_executing
    FROM raw.worker_sample AS sample
    INNER JOIN _process_hosts AS hosts USING (trace_id, worker)
    ASOF INNER JOIN intervals
        ON hosts.trace_id = intervals.trace_id
        AND hosts.host = intervals.host
        AND sample.t <= intervals.t
    WHERE sample.t > intervals.t - intervals.seconds
    GROUP BY ALL
),
scheduler_use AS (
    SELECT intervals.trace_id, intervals.seq, avg(sample.metrics.cpu) / 100 AS cores
    FROM intervals
    INNER JOIN raw.scheduler_sample AS sample
        ON intervals.trace_id = sample.trace_id
        AND sample.t <= intervals.t
        AND sample.t > intervals.t - intervals.seconds
    GROUP BY ALL
),
used AS (
    SELECT
        intervals.*,
        coalesce(worker_use.executing, 0) AS executing,
        worker_use.sampler_executing,
        -- Threads of the host that waited for a core, if those of other workers waited as much as
        -- those of the one that took the sample.
        waiting_threads * worker_use.executing / nullif(sampler_executing, 0) AS all_waiting_threads,
        -- A scheduler whose host is not known can be on this one.
        coalesce(scheduler.host, intervals.host) = intervals.host AS has_scheduler,
        CASE
            WHEN worker_use.is_known IS FALSE OR has_scheduler AND scheduler_use.cores IS NULL THEN NULL
            ELSE coalesce(worker_use.cores, 0) + if(has_scheduler, scheduler_use.cores, 0)
        END AS own_cores
    FROM intervals
    LEFT JOIN worker_use USING (trace_id, seq)
    LEFT JOIN scheduler_use USING (trace_id, seq)
    LEFT JOIN _process_hosts AS scheduler
        ON intervals.trace_id = scheduler.trace_id AND scheduler.worker IS NULL
)
SELECT
    *,
    greatest(usable_busy_cores - own_cores, 0) AS other_cores,
    -- Less than half a core, and a tenth of them.
    coalesce(free_cores < least(0.5, 0.1 * affinity_cores), false) AS is_full,
    -- Other processes used cores, or tasks waited for a noticeable part of the time in which they could
    -- have used one. Where the system does not count it: more threads computed than there are cores.
    is_full AND (
        coalesce(other_cores >= greatest(0.25, 0.1 * affinity_cores), false)
        OR coalesce(waiting_share >= 0.2, executing > 1.2 * affinity_cores)
    ) AS lacks_cores,
    -- Threads could have used more than the quota: a run that uses all of it is not held up.
    coalesce(
        throttled_share >= 0.25
        AND least(throttled_seconds / seconds, executing - coalesce(cgroup_busy_cores, own_cores))
            >= greatest(0.25, 0.1 * cgroup_cores),
        false
    ) AS is_throttled
FROM used;
