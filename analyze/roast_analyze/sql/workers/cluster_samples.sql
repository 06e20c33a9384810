-- Needs: worker_samples
CREATE VIEW cluster_samples AS
SELECT
    t,
    count(*) AS workers,
    try_cast(sum(nthreads) AS BIGINT) AS nthreads,
    sum(cpu_percent) AS cpu_percent,
    try_cast(sum(memory_bytes) AS BIGINT) AS memory_bytes,
    try_cast(sum(memory_limit_bytes) AS BIGINT) AS memory_limit_bytes,
    try_cast(sum(managed_bytes) AS BIGINT) AS managed_bytes,
    try_cast(sum(spilled_bytes) AS BIGINT) AS spilled_bytes,
    try_cast(sum(processing) AS BIGINT) AS processing,
    try_cast(sum(executing) AS BIGINT) AS executing,
    try_cast(sum(ready) AS BIGINT) AS ready,
    sum(occupancy_seconds) AS occupancy_seconds,
    try_cast(sum(stored_bytes) AS BIGINT) AS stored_bytes,
    trace_id
FROM worker_samples
GROUP BY trace_id, t
ORDER BY trace_id, t;

COMMENT ON VIEW cluster_samples IS 'Load and memory of the whole cluster over time. One row per sampling tick, summed over workers.';
COMMENT ON COLUMN cluster_samples.t IS 'Sampling tick, in seconds since the epoch.';
COMMENT ON COLUMN cluster_samples.workers IS 'Number of workers.';
COMMENT ON COLUMN cluster_samples.nthreads IS 'Number of threads.';
COMMENT ON COLUMN cluster_samples.cpu_percent IS 'CPU use. 100 is one core.';
COMMENT ON COLUMN cluster_samples.memory_bytes IS 'Memory of the worker processes.';
COMMENT ON COLUMN cluster_samples.memory_limit_bytes IS 'Memory limit, without workers that have none.';
COMMENT ON COLUMN cluster_samples.managed_bytes IS 'Results held in memory, without spilled ones.';
COMMENT ON COLUMN cluster_samples.spilled_bytes IS 'Results spilled, by size on disk.';
COMMENT ON COLUMN cluster_samples.processing IS 'Tasks assigned to workers.';
COMMENT ON COLUMN cluster_samples.executing IS 'Tasks computing.';
COMMENT ON COLUMN cluster_samples.ready IS 'Tasks waiting for a thread.';
COMMENT ON COLUMN cluster_samples.occupancy_seconds IS 'Dask''s estimate of the remaining work assigned to workers.';
COMMENT ON COLUMN cluster_samples.stored_bytes IS 'Results held by workers, as counted by the scheduler.';
COMMENT ON COLUMN cluster_samples.trace_id IS 'ID of the trace.';
