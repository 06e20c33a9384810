-- Needs: _host_intervals
CREATE VIEW host_samples AS
SELECT
    t,
    host,
    worker,
    cores,
    usable_cores,
    load_average,
    seconds,
    100 * busy_cores AS cpu_percent,
    100 * free_cores AS free_percent,
    100 * steal_cores AS steal_percent,
    100 * cgroup_busy_cores AS cgroup_cpu_percent,
    100 * throttled_share AS throttled_percent,
    throttled_seconds,
    100 * cpu_pressure_share AS cpu_pressure_percent,
    100 * waiting_share AS waiting_percent,
    100 * cgroup_pressure_share AS cgroup_pressure_percent,
    100 * io_pressure_share AS io_pressure_percent,
    100 * io_full_pressure_share AS io_full_pressure_percent,
    100 * iowait_cores AS iowait_percent,
    native_threads,
    100 * native_cores AS native_cpu_percent,
    100 * native_waiting_threads AS native_waiting_percent,
    server_id,
    trace_id
FROM _host_intervals
ORDER BY trace_id, seq;

COMMENT ON VIEW host_samples IS 'Load of each host over time, as read by one of its processes. One row per host and sampling tick; rates are those since the previous sample of the same process. Empty before trace format 2.7.';
COMMENT ON COLUMN host_samples.t IS 'Time of the sample, in seconds since the epoch.';
COMMENT ON COLUMN host_samples.host IS 'Host name.';
COMMENT ON COLUMN host_samples.worker IS 'Worker that took the sample. Null if the scheduler did.';
COMMENT ON COLUMN host_samples.cores IS 'Cores of the host.';
COMMENT ON COLUMN host_samples.usable_cores IS 'Cores that the worker may use, by its affinity and the quota of its control group.';
COMMENT ON COLUMN host_samples.load_average IS 'Threads that run or are ready to, over the last minute.';
COMMENT ON COLUMN host_samples.seconds IS 'Time since the previous sample. Null, as all rates are, for the first one, and if it is less than 0.2 s.';
COMMENT ON COLUMN host_samples.cpu_percent IS 'CPU use of everything on the host. 100 is one core.';
COMMENT ON COLUMN host_samples.free_percent IS 'Cores that were idle, of those that the affinity of the worker allows. 100 is one core.';
COMMENT ON COLUMN host_samples.steal_percent IS 'Cores of a virtual machine that others used. 100 is one core.';
COMMENT ON COLUMN host_samples.cgroup_cpu_percent IS 'CPU use of the control group. 100 is one core.';
COMMENT ON COLUMN host_samples.throttled_percent IS 'Share of the periods of the quota in which the control group had used it up. Null without a quota.';
COMMENT ON COLUMN host_samples.throttled_seconds IS 'Time that the control group was throttled for, summed over cores.';
COMMENT ON COLUMN host_samples.cpu_pressure_percent IS 'Share of time in which a thread of the host waited for a core.';
COMMENT ON COLUMN host_samples.waiting_percent IS 'Share of the time in which the threads for tasks of the worker that took the sample could have used a core, and waited for one. Their time counts from 0 if the previous samples of the process are from before its first task.';
COMMENT ON COLUMN host_samples.cgroup_pressure_percent IS 'Share of time in which a thread of the control group waited for a core.';
COMMENT ON COLUMN host_samples.io_pressure_percent IS 'Share of time in which a thread of the host waited for I/O.';
COMMENT ON COLUMN host_samples.io_full_pressure_percent IS 'Share of time in which all threads of the host waited for I/O.';
COMMENT ON COLUMN host_samples.iowait_percent IS 'Cores that were idle while I/O was awaited. 100 is one core.';
COMMENT ON COLUMN host_samples.native_threads IS 'Threads of the worker that its libraries started, as for BLAS. Null before trace format 2.8.';
COMMENT ON COLUMN host_samples.native_cpu_percent IS 'CPU use of these threads. 100 is one core.';
COMMENT ON COLUMN host_samples.native_waiting_percent IS 'How many of these threads were ready and waited for a core. 100 is one thread.';
COMMENT ON COLUMN host_samples.server_id IS 'ID of the process that took the sample.';
COMMENT ON COLUMN host_samples.trace_id IS 'ID of the trace.';
