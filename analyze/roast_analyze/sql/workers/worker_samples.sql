-- Needs: nothing
CREATE VIEW worker_samples AS
SELECT
    t,
    worker,
    metrics.cpu AS cpu_percent,
    metrics.memory AS memory_bytes,
    nullif(memory_limit, 0) AS memory_limit_bytes,
    metrics.managed_bytes,
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

COMMENT ON VIEW worker_samples IS 'What the scheduler knew of the workers over time: one row per worker and tick.';
COMMENT ON COLUMN worker_samples.t IS 'The tick, in seconds since the epoch; the same for all workers.';
COMMENT ON COLUMN worker_samples.worker IS 'Address of the worker.';
COMMENT ON COLUMN worker_samples.cpu_percent IS 'CPU use of the process; 100 is one core.';
COMMENT ON COLUMN worker_samples.memory_bytes IS 'Memory of the process.';
COMMENT ON COLUMN worker_samples.memory_limit_bytes IS 'Memory it may use; null if there is no limit.';
COMMENT ON COLUMN worker_samples.managed_bytes IS 'Results it holds in memory.';
COMMENT ON COLUMN worker_samples.spilled_bytes IS 'Results it has spilled, as they lie on disk.';
COMMENT ON COLUMN worker_samples.nthreads IS 'Threads that compute.';
COMMENT ON COLUMN worker_samples.processing IS 'Tasks that the scheduler has assigned to it.';
COMMENT ON COLUMN worker_samples.executing IS 'Tasks that it is computing.';
COMMENT ON COLUMN worker_samples.ready IS 'Tasks that wait for a thread.';
COMMENT ON COLUMN worker_samples.occupancy_seconds IS 'Work that Dask expects to be queued there.';
COMMENT ON COLUMN worker_samples.stored_bytes IS 'Results it holds, as the scheduler counts them.';
COMMENT ON COLUMN worker_samples.last_seen_t IS 'Its last heartbeat, in seconds since the epoch: the age of what the row says.';
COMMENT ON COLUMN worker_samples.event_loop_interval_seconds IS 'Mean interval of its event loop; 0.02 is idle, more is a blocked loop.';
COMMENT ON COLUMN worker_samples.num_fds IS 'Open file descriptors.';
COMMENT ON COLUMN worker_samples.incoming_bytes IS 'Size of the transfers coming in.';
COMMENT ON COLUMN worker_samples.outgoing_bytes IS 'Size of the transfers going out.';
COMMENT ON COLUMN worker_samples.host_net_read_bps IS 'Network traffic into its host, in bytes per second.';
COMMENT ON COLUMN worker_samples.host_net_write_bps IS 'Network traffic out of its host, in bytes per second.';
COMMENT ON COLUMN worker_samples.host_disk_read_bps IS 'Disk reads of its host, in bytes per second.';
COMMENT ON COLUMN worker_samples.host_disk_write_bps IS 'Disk writes of its host, in bytes per second.';
COMMENT ON COLUMN worker_samples.server_id IS 'Identity of the worker process.';
COMMENT ON COLUMN worker_samples.trace_id IS 'Identity of the recording.';
