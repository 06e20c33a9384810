-- Needs: _chunk_cost_models, _chunks
-- Records: chunk
-- Durations of chunks relative to those expected from their datasets and numbers of events.
CREATE TABLE _chunk_ratios AS
SELECT
    chunk.trace_id,
    chunk.dataset,
    chunk.filename,
    chunk.treename,
    chunk.process,
    chunk.begin_t,
    chunk.whole_seconds,
    chunk.whole_seconds / CASE
        WHEN cost.is_known THEN cost.fixed_seconds + cost.event_seconds * chunk.events
        ELSE chunk.events * median(chunk.event_seconds) OVER same_dataset
    END AS ratio
FROM _chunks AS chunk
LEFT JOIN _chunk_cost_models AS cost
    ON chunk.trace_id = cost.trace_id
    AND chunk.dataset IS NOT DISTINCT FROM cost.dataset
WHERE chunk.event_seconds > 0 AND chunk.process IS NOT NULL
WINDOW same_dataset AS (PARTITION BY chunk.trace_id, chunk.dataset);
