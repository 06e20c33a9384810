-- Needs: _coffea_keys, _tasks
-- Records: chunk
-- Roles of tasks in a coffea run. Prefixes are ambiguous: chunks have the name of the processor
-- or `automatic_retries`, as file metadata does, and merges of either are `reduce`. Therefore
-- the graph is followed from the keys of chunks and files.
CREATE TABLE _coffea_roles AS
WITH RECURSIVE edges AS (
    SELECT trace_id, key, unnest(dependencies) AS dependency
    FROM _tasks
    WHERE prefix = 'reduce' AND EXISTS (FROM _coffea_keys)
),
merged AS (
    SELECT trace_id, key, role FROM _coffea_keys
    UNION
    SELECT edges.trace_id, edges.key, merged.role
    FROM merged
    INNER JOIN edges
        ON merged.trace_id = edges.trace_id AND merged.key = edges.dependency
),
merges AS (
    SELECT
        trace_id,
        key,
        CASE WHEN bool_or(role = 'chunk') THEN 'merge' ELSE 'file metadata' END AS role
    FROM merged
    ANTI JOIN _coffea_keys USING (trace_id, key)
    GROUP BY trace_id, key
),
inputs AS (
    SELECT DISTINCT task.trace_id, unnest(task.dependencies) AS key
    FROM _tasks AS task
    -- dask-awkward does not broadcast a processor.
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk' AND NOT goes_on) AS chunks
        USING (trace_id, key)
),
broadcasts AS (
    SELECT trace_id, key, 'processor broadcast' AS role
    FROM _tasks AS task
    SEMI JOIN inputs USING (trace_id, key)
    ANTI JOIN _coffea_keys USING (trace_id, key)
    WHERE coalesce(len(task.dependencies), 0) = 0
)
SELECT trace_id, key, role FROM _coffea_keys
UNION ALL
FROM merges
UNION ALL
FROM broadcasts;
