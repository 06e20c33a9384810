-- Needs: _workers
-- Records: worker_sample
-- Largest amounts of memory in the samples of each process that has a limit.
CREATE TABLE _worker_memory AS
SELECT
    sample.trace_id,
    process.process,
    any_value(coalesce(process.name, process.worker)) AS name,
    max(sample.memory_limit) AS limit_bytes,
    -- Results, in memory and spilled.
    max(sample.metrics.managed_bytes) AS stored_bytes,
    max(sample.metrics.spilled_memory) AS spilled_bytes,
    max(
        sample.metrics.memory - greatest(
            coalesce(sample.metrics.managed_bytes, 0) - coalesce(sample.metrics.spilled_memory, 0), 0
        )
    ) AS unmanaged_bytes
FROM raw.worker_sample AS sample
ASOF INNER JOIN _workers AS process
    ON sample.trace_id = process.trace_id
    AND sample.worker = process.worker
    AND sample.t >= process.from_t
WHERE sample.memory_limit > 0
GROUP BY sample.trace_id, process.process;
