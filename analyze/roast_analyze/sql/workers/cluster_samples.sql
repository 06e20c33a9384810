-- Needs: worker_samples
CREATE VIEW cluster_samples AS
SELECT
    t,
    count(*) AS workers,
    sum(nthreads)::BIGINT AS nthreads,
    sum(cpu_percent) AS cpu_percent,
    sum(memory_bytes)::BIGINT AS memory_bytes,
    sum(memory_limit_bytes)::BIGINT AS memory_limit_bytes,
    sum(managed_bytes)::BIGINT AS managed_bytes,
    sum(spilled_bytes)::BIGINT AS spilled_bytes,
    sum(processing)::BIGINT AS processing,
    sum(executing)::BIGINT AS executing,
    sum(ready)::BIGINT AS ready,
    sum(occupancy_seconds) AS occupancy_seconds,
    sum(stored_bytes)::BIGINT AS stored_bytes,
    trace_id
FROM worker_samples
GROUP BY trace_id, t
ORDER BY trace_id, t;

COMMENT ON VIEW cluster_samples IS 'The workers summed up over time: one row per tick.';
COMMENT ON COLUMN cluster_samples.t IS 'The tick, in seconds since the epoch.';
COMMENT ON COLUMN cluster_samples.workers IS 'Workers at the tick.';
COMMENT ON COLUMN cluster_samples.nthreads IS 'Their threads.';
COMMENT ON COLUMN cluster_samples.cpu_percent IS 'Their CPU use; 100 is one core.';
COMMENT ON COLUMN cluster_samples.memory_bytes IS 'Memory of their processes.';
COMMENT ON COLUMN cluster_samples.memory_limit_bytes IS 'Memory they may use; workers without a limit are not in it.';
COMMENT ON COLUMN cluster_samples.managed_bytes IS 'Results they hold in memory.';
COMMENT ON COLUMN cluster_samples.spilled_bytes IS 'Results they have spilled, as they lie on disk.';
COMMENT ON COLUMN cluster_samples.processing IS 'Tasks that the scheduler has assigned to them.';
COMMENT ON COLUMN cluster_samples.executing IS 'Tasks that they are computing.';
COMMENT ON COLUMN cluster_samples.ready IS 'Tasks that wait for a thread.';
COMMENT ON COLUMN cluster_samples.occupancy_seconds IS 'Work that Dask expects to be queued there.';
COMMENT ON COLUMN cluster_samples.stored_bytes IS 'Results they hold, as the scheduler counts them.';
COMMENT ON COLUMN cluster_samples.trace_id IS 'Identity of the recording.';
