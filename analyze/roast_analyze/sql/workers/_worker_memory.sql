-- Needs: _task_runs, _trace_range, _workers
-- Records: worker_sample
-- Largest amounts of memory in the samples of each process that has a limit, and the memory that a
-- process of the trace had before its first task; 0 if this is unknown.
CREATE TABLE _worker_memory AS
WITH samples AS (
    SELECT
        *,
        metrics.memory - greatest(
            coalesce(metrics.managed_bytes, 0) - coalesce(metrics.spilled_memory, 0), 0
        ) AS unmanaged_bytes
    FROM raw.worker_sample
    WHERE memory_limit > 0
),
joined AS (
    SELECT process.trace_id, process.worker, process.added_t, min(run.processing_t) AS work_t
    FROM _workers AS process
    INNER JOIN _trace_range AS range USING (trace_id)
    INNER JOIN (SELECT trace_id, min(t) AS t FROM raw.task GROUP BY trace_id) AS submitted
        ON process.trace_id = submitted.trace_id
        -- Others may have computed tasks before the recording.
        AND process.added_t > greatest(submitted.t, range.start_t)
    LEFT JOIN _task_runs AS run
        ON process.trace_id = run.trace_id
        AND process.worker = run.worker
        AND run.processing_t >= process.added_t
    GROUP BY ALL
),
idle AS (
    SELECT sample.trace_id, min(sample.unmanaged_bytes) AS idle_bytes
    FROM samples AS sample
    ASOF INNER JOIN joined
        ON sample.trace_id = joined.trace_id
        AND sample.worker = joined.worker
        AND sample.t >= joined.added_t
    -- The memory is that of the last heartbeat.
    WHERE sample.last_seen < coalesce(joined.work_t, 'infinity'::DOUBLE)
    GROUP BY sample.trace_id
)
SELECT
    sample.trace_id,
    process.process,
    any_value(coalesce(process.name, process.worker)) AS name,
    max(sample.memory_limit) AS limit_bytes,
    -- Results, in memory and spilled.
    max(sample.metrics.managed_bytes) AS stored_bytes,
    max(sample.metrics.spilled_memory) AS spilled_bytes,
    max(sample.unmanaged_bytes) AS unmanaged_bytes,
    coalesce(any_value(idle.idle_bytes), 0) AS idle_bytes
FROM samples AS sample
ASOF INNER JOIN _workers AS process
    ON sample.trace_id = process.trace_id
    AND sample.worker = process.worker
    AND sample.t >= process.from_t
LEFT JOIN idle ON sample.trace_id = idle.trace_id
GROUP BY sample.trace_id, process.process;
