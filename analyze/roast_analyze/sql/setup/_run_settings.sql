-- Needs: _jobs, _trace_range
-- What a run contains, from which advice is chosen: one row per trace.
CREATE TABLE _run_settings AS
SELECT
    trace_id,
    trace_id IN (SELECT trace_id FROM raw.chunk) AS has_chunks,
    trace_id IN (SELECT trace_id FROM _jobs) AS has_jobs,
    -- Without a scheduler, chunks are processed by an executor of coffea that has no tasks of Dask.
    trace_id IN (
        SELECT trace_id FROM raw.task
        UNION ALL
        SELECT trace_id FROM raw.transition
        UNION ALL
        SELECT trace_id FROM raw.worker_added WHERE worker NOT LIKE 'pid:%'
    ) AS has_scheduler,
    trace_id IN (
        SELECT trace_id FROM raw.environment WHERE section = 'cluster' AND name = 'adapts to minimum'
    ) AS is_adaptive
FROM _trace_range;
