-- Needs: nothing
CREATE VIEW worker_samples AS
SELECT
    t,
    worker,
    metrics.cpu AS cpu_percent,
    metrics.memory AS memory_bytes,
    nullif(memory_limit, 0) AS memory_limit_bytes,
    -- Dask counts spilled results as managed, by their size in memory.
    CASE
        WHEN metrics.managed_bytes IS NOT NULL
        THEN greatest(metrics.managed_bytes - coalesce(metrics.spilled_memory, 0), 0)
    END AS managed_bytes,
    metrics.spilled_disk AS spilled_bytes,
    nthreads,
    processing,
    executing,
    metrics.ready,
    occupancy AS occupancy_seconds,
    nbytes AS stored_bytes,
    last_seen AS last_seen_t,
    metrics.event_loop_interval AS event_loop_interval_seconds,
    metrics.num_fds,
    metrics.incoming_bytes,
    metrics.outgoing_bytes,
    metrics.host_net_read_bps,
    metrics.host_net_write_bps,
    metrics.host_disk_read_bps,
    metrics.host_disk_write_bps,
    server_id,
    trace_id
FROM raw.worker_sample
ORDER BY trace_id, rowid;

COMMENT ON VIEW worker_samples IS 'Load and memory of each worker over time. One row per worker and sampling tick.';
COMMENT ON COLUMN worker_samples.t IS 'Sampling tick, in seconds since the epoch; the same for all workers.';
COMMENT ON COLUMN worker_samples.worker IS 'Worker address.';
COMMENT ON COLUMN worker_samples.cpu_percent IS 'CPU use of the process. 100 is one core.';
COMMENT ON COLUMN worker_samples.memory_bytes IS 'Process memory.';
COMMENT ON COLUMN worker_samples.memory_limit_bytes IS 'Memory limit. Null if there is none.';
COMMENT ON COLUMN worker_samples.managed_bytes IS 'Results held in memory, without spilled ones.';
COMMENT ON COLUMN worker_samples.spilled_bytes IS 'Results spilled, by size on disk.';
COMMENT ON COLUMN worker_samples.nthreads IS 'Number of threads that compute.';
COMMENT ON COLUMN worker_samples.processing IS 'Tasks assigned by the scheduler.';
COMMENT ON COLUMN worker_samples.executing IS 'Tasks computing.';
COMMENT ON COLUMN worker_samples.ready IS 'Tasks waiting for a thread.';
COMMENT ON COLUMN worker_samples.occupancy_seconds IS 'Dask''s estimate of the remaining work assigned to workers.';
COMMENT ON COLUMN worker_samples.stored_bytes IS 'Results held by the worker, as counted by the scheduler.';
COMMENT ON COLUMN worker_samples.last_seen_t IS 'Last heartbeat, in seconds since the epoch: the time at which the values were current.';
COMMENT ON COLUMN worker_samples.event_loop_interval_seconds IS 'Mean interval of the event loop. 0.02 is idle; more means a blocked loop.';
COMMENT ON COLUMN worker_samples.num_fds IS 'Open file descriptors.';
COMMENT ON COLUMN worker_samples.incoming_bytes IS 'Bytes of incoming transfers in progress.';
COMMENT ON COLUMN worker_samples.outgoing_bytes IS 'Bytes of outgoing transfers in progress.';
COMMENT ON COLUMN worker_samples.host_net_read_bps IS 'Incoming network traffic of the host, in bytes per second.';
COMMENT ON COLUMN worker_samples.host_net_write_bps IS 'Outgoing network traffic of the host, in bytes per second.';
COMMENT ON COLUMN worker_samples.host_disk_read_bps IS 'Disk reads of the host, in bytes per second.';
COMMENT ON COLUMN worker_samples.host_disk_write_bps IS 'Disk writes of the host, in bytes per second.';
COMMENT ON COLUMN worker_samples.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN worker_samples.trace_id IS 'ID of the trace.';
