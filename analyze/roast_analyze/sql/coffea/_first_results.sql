-- Needs: _chunks
-- First results of chunks, to which cost models are fitted. Chunks cut off by a time range are excluded.
CREATE VIEW _first_results AS
SELECT trace_id, dataset, process, events, compute_seconds AS seconds, is_warming_up
FROM _chunks
WHERE is_first_result
    AND chunks_in_task = 1
    AND events > 0
    AND compute_seconds > 0
    AND compute_seconds = whole_seconds;
