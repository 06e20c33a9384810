-- Needs: _workers
-- Workers that went away, why, and whether Dask expected it. Its own word in the event
-- `remove-worker` decides; without one, a broken connection counts as unexpected.
CREATE TABLE _worker_removals AS
WITH said AS (
    SELECT
        trace_id,
        coalesce(worker, payload ->> '$.worker') AS worker,
        payload ->> '$.stimulus_id' AS stimulus_id,
        (payload ->> '$.expected') = 'true' AS expected,
        json_array_length(payload, '$."processing-tasks"') AS processing_tasks,
        json_array_length(payload, '$."lost-computed-tasks"') AS lost_results,
        json_array_length(payload, '$."lost-scattered-tasks"') AS lost_data
    FROM raw.event
    -- In brackets, because DuckDB 1 binds = more tightly.
    WHERE topic = 'all' AND (payload ->> '$.action') = 'remove-worker'
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, coalesce(worker, payload ->> '$.worker'), payload ->> '$.stimulus_id'
        ORDER BY rowid
    ) = 1
)
SELECT
    workers.process,
    workers.worker,
    workers.removed_t,
    regexp_replace(workers.removal_stimulus_id, '-[0-9.]+$', '') AS reason,
    coalesce(
        said.expected, NOT starts_with(workers.removal_stimulus_id, 'handle-worker-cleanup'), true
    ) AS expected,
    said.processing_tasks,
    said.lost_results,
    said.lost_data,
    workers.trace_id
FROM _workers AS workers
LEFT JOIN said
    ON workers.trace_id = said.trace_id
    AND workers.worker = said.worker
    AND workers.removal_stimulus_id = said.stimulus_id
WHERE workers.removed_t IS NOT NULL;
