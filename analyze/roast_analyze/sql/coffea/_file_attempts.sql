-- Needs: _chunks, _unread_files
-- Chunk attempts, and files whose number of entries could not be read: these have no chunks.
CREATE VIEW _file_attempts AS
SELECT *, true AS is_chunk FROM _chunks
UNION ALL BY NAME
SELECT
    trace_id,
    dataset,
    filename,
    treename,
    worker,
    CASE WHEN is_skipped THEN 'skipped' ELSE 'erred' END AS outcome,
    false AS is_first_result,
    false AS is_chunk
FROM _unread_files;
