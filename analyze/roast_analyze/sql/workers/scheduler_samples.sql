-- Needs: nothing
CREATE VIEW scheduler_samples AS
SELECT
    t,
    metrics.cpu AS cpu_percent,
    -- The last sample can be taken in another thread, after the event loop has ended.
    if(loop_percent >= 0, loop_percent, NULL) AS loop_cpu_percent,
    metrics.event_loop_interval AS event_loop_interval_seconds,
    metrics.memory AS memory_bytes,
    metrics.num_fds,
    metrics.host_net_read_bps,
    metrics.host_net_write_bps,
    metrics.host_disk_read_bps,
    metrics.host_disk_write_bps,
    server_id,
    trace_id
FROM (
    SELECT
        *,
        rowid AS seq,
        100 * (metrics.loop_cpu_seconds - lag(metrics.loop_cpu_seconds) OVER samples)
            / nullif(t - lag(t) OVER samples, 0) AS loop_percent
    FROM raw.scheduler_sample
    WINDOW samples AS (PARTITION BY trace_id, server_id ORDER BY rowid)
)
ORDER BY trace_id, seq;

COMMENT ON VIEW scheduler_samples IS 'Load of the scheduler over time. One row per sampling tick. In a LocalCluster the process is also the client''s. Empty before trace format 2.4.';
COMMENT ON COLUMN scheduler_samples.t IS 'Sampling tick, in seconds since the epoch.';
COMMENT ON COLUMN scheduler_samples.cpu_percent IS 'CPU use of the process. 100 is one core.';
COMMENT ON COLUMN scheduler_samples.loop_cpu_percent IS 'CPU use of the thread of the event loop since the previous sample. At 100 the scheduler is saturated.';
COMMENT ON COLUMN scheduler_samples.event_loop_interval_seconds IS 'Mean interval of the event loop. 0.02 is idle; more means a busy or blocked loop.';
COMMENT ON COLUMN scheduler_samples.memory_bytes IS 'Process memory.';
COMMENT ON COLUMN scheduler_samples.num_fds IS 'Open file descriptors.';
COMMENT ON COLUMN scheduler_samples.host_net_read_bps IS 'Incoming network traffic of the host, in bytes per second.';
COMMENT ON COLUMN scheduler_samples.host_net_write_bps IS 'Outgoing network traffic of the host, in bytes per second.';
COMMENT ON COLUMN scheduler_samples.host_disk_read_bps IS 'Disk reads of the host, in bytes per second.';
COMMENT ON COLUMN scheduler_samples.host_disk_write_bps IS 'Disk writes of the host, in bytes per second.';
COMMENT ON COLUMN scheduler_samples.server_id IS 'ID of the scheduler process.';
COMMENT ON COLUMN scheduler_samples.trace_id IS 'ID of the trace.';
