-- Needs: _chunks
-- Times of chunks that no task computed, as without a cluster. Each counts like a task in the state
-- `processing`.
CREATE VIEW _chunk_states AS
SELECT start_t AS from_t, stop_t AS until_t, trace_id
FROM _chunks
WHERE NOT has_task AND start_t IS NOT NULL AND stop_t IS NOT NULL;
