-- Needs: nothing
-- Samples of hosts, with what each counter grew by since the previous sample of the same process.
-- Each use is in cores, each pressure a share of time. Counters have a resolution of 10 ms for each
-- core, so that they are not compared over less than 0.2 s. A counter that went back, as after a
-- change of the control group, is unknown.
CREATE VIEW _host_intervals AS
WITH counted AS (
    SELECT
        rowid AS seq,
        t,
        host,
        worker,
        server_id,
        trace_id,
        metrics.cores,
        least(metrics.usable_cores, metrics.cgroup_cores) AS usable_cores,
        coalesce(metrics.usable_cores, metrics.cores) AS affinity_cores,
        metrics.cgroup_cores,
        metrics.load_average,
        metrics.clock_seconds,
        metrics.host_busy_seconds AS busy_seconds,
        metrics.host_steal_seconds AS steal_seconds,
        metrics.host_iowait_seconds AS iowait_seconds,
        coalesce(metrics.usable_busy_seconds, metrics.host_busy_seconds) AS usable_busy_seconds,
        coalesce(
            metrics.usable_idle_seconds,
            metrics.host_idle_seconds + coalesce(metrics.host_iowait_seconds, 0)
        ) AS free_seconds,
        metrics.cgroup_busy_seconds,
        metrics.cgroup_periods,
        metrics.cgroup_throttled_periods,
        metrics.cgroup_throttled_seconds,
        metrics.cpu_pressure_seconds,
        metrics.cgroup_pressure_seconds,
        metrics.io_pressure_seconds,
        metrics.io_full_pressure_seconds,
        metrics.threads_busy_seconds,
        metrics.threads_waiting_seconds,
        metrics.native_threads,
        metrics.native_busy_seconds,
        metrics.native_waiting_seconds
    FROM raw.host_sample
),
grown AS (
    SELECT
        counted.*,
        CASE WHEN clock_seconds - lag(clock_seconds) OVER samples >= 0.2
            THEN clock_seconds - lag(clock_seconds) OVER samples
        END AS seconds,
        busy_seconds - lag(busy_seconds) OVER samples AS busy,
        steal_seconds - lag(steal_seconds) OVER samples AS steal,
        iowait_seconds - lag(iowait_seconds) OVER samples AS iowait,
        usable_busy_seconds - lag(usable_busy_seconds) OVER samples AS usable_busy,
        free_seconds - lag(free_seconds) OVER samples AS free,
        cgroup_busy_seconds - lag(cgroup_busy_seconds) OVER samples AS cgroup_busy,
        cgroup_periods - lag(cgroup_periods) OVER samples AS periods,
        cgroup_throttled_periods - lag(cgroup_throttled_periods) OVER samples AS throttled_periods,
        cgroup_throttled_seconds - lag(cgroup_throttled_seconds) OVER samples AS throttled,
        cpu_pressure_seconds - lag(cpu_pressure_seconds) OVER samples AS cpu_pressure,
        cgroup_pressure_seconds - lag(cgroup_pressure_seconds) OVER samples AS cgroup_pressure,
        io_pressure_seconds - lag(io_pressure_seconds) OVER samples AS io_pressure,
        io_full_pressure_seconds - lag(io_full_pressure_seconds) OVER samples AS io_full_pressure,
        -- A worker starts its threads for tasks with the first ones.
        CASE
            WHEN lag(clock_seconds) OVER samples IS NOT NULL AND max(threads_busy_seconds) OVER earlier IS NULL
                THEN threads_busy_seconds
            ELSE threads_busy_seconds - lag(threads_busy_seconds) OVER samples
        END AS threads_busy,
        CASE
            WHEN lag(clock_seconds) OVER samples IS NOT NULL AND max(threads_waiting_seconds) OVER earlier IS NULL
                THEN threads_waiting_seconds
            ELSE threads_waiting_seconds - lag(threads_waiting_seconds) OVER samples
        END AS threads_waiting,
        native_busy_seconds - lag(native_busy_seconds) OVER samples AS native_busy,
        native_waiting_seconds - lag(native_waiting_seconds) OVER samples AS native_waiting
    FROM counted
    -- Counters of the usable cores begin anew with other cores.
    WINDOW
        samples AS (PARTITION BY trace_id, host, server_id, affinity_cores ORDER BY seq),
        earlier AS (
            PARTITION BY trace_id, host, server_id, affinity_cores ORDER BY seq
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
)
SELECT
    seq,
    t,
    host,
    worker,
    server_id,
    trace_id,
    cores,
    usable_cores,
    affinity_cores,
    cgroup_cores,
    load_average,
    seconds,
    if(busy >= 0, busy / seconds, NULL) AS busy_cores,
    if(steal >= 0, steal / seconds, NULL) AS steal_cores,
    -- The kernel's counter of waiting for I/O can go back by a few ticks.
    if(iowait >= -0.5, greatest(iowait, 0) / seconds, NULL) AS iowait_cores,
    if(usable_busy >= 0, usable_busy / seconds, NULL) AS usable_busy_cores,
    if(free >= -0.5, greatest(free, 0) / seconds, NULL) AS free_cores,
    if(cgroup_busy >= 0, cgroup_busy / seconds, NULL) AS cgroup_busy_cores,
    CASE WHEN cgroup_cores IS NOT NULL AND throttled_periods >= 0 AND seconds IS NOT NULL
        THEN throttled_periods / nullif(periods, 0)
    END AS throttled_share,
    if(throttled >= 0 AND seconds IS NOT NULL, throttled, NULL) AS throttled_seconds,
    if(cpu_pressure >= 0, cpu_pressure / seconds, NULL) AS cpu_pressure_share,
    if(cgroup_pressure >= 0, cgroup_pressure / seconds, NULL) AS cgroup_pressure_share,
    if(io_pressure >= 0, io_pressure / seconds, NULL) AS io_pressure_share,
    if(io_full_pressure >= 0, io_full_pressure / seconds, NULL) AS io_full_pressure_share,
    if(threads_waiting >= 0, threads_waiting / seconds, NULL) AS waiting_threads,
    -- Share of the time in which threads for tasks could have used a core.
    CASE WHEN threads_waiting >= 0 AND threads_busy >= 0 AND seconds IS NOT NULL
        THEN threads_waiting / nullif(threads_waiting + threads_busy, 0)
    END AS waiting_share,
    -- Those of threads that have ended are no longer counted.
    native_threads,
    if(native_busy >= 0, native_busy / seconds, NULL) AS native_cores,
    if(native_waiting >= 0, native_waiting / seconds, NULL) AS native_waiting_threads
FROM grown;
