-- Needs: nothing
-- File that a coffea task reads, its number of entries included. Tasks that read several files
-- (dask-awkward) have none.
CREATE TABLE _task_files AS
SELECT trace_id, key, any_value(chunk.filename) AS filename
FROM raw.chunk AS chunk
GROUP BY trace_id, key
HAVING count(DISTINCT chunk.filename) = 1;
