-- Needs: _chunks
CREATE VIEW datasets AS
SELECT
    dataset,
    count(DISTINCT filename) AS files,
    count(*) FILTER (is_first_result) AS chunks,
    count(*) AS chunk_attempts,
    coalesce(sum(events) FILTER (is_first_result), 0)::BIGINT AS events,
    sum(bytes_read)::BIGINT AS bytes_read,
    sum(compute_seconds) AS compute_seconds,
    sum(events) FILTER (is_first_result) / nullif(sum(compute_seconds), 0) AS events_per_second,
    sum(output_bytes)::BIGINT AS output_bytes,
    count(*) FILTER (outcome IN ('erred', 'retried', 'lost')) AS failed_attempts,
    trace_id
FROM _chunks
GROUP BY trace_id, dataset
ORDER BY compute_seconds DESC NULLS LAST, dataset;

COMMENT ON VIEW datasets IS 'Totals by dataset: one row per dataset, the costliest first.';
COMMENT ON COLUMN datasets.dataset IS 'Name of the dataset.';
COMMENT ON COLUMN datasets.files IS 'Files of which a chunk was tried.';
COMMENT ON COLUMN datasets.chunks IS 'Chunks that were processed; one whose result was lost and computed again counts once.';
COMMENT ON COLUMN datasets.chunk_attempts IS 'All attempts at chunks.';
COMMENT ON COLUMN datasets.events IS 'Events in these chunks.';
COMMENT ON COLUMN datasets.bytes_read IS 'Bytes that all attempts read; null if not measured.';
COMMENT ON COLUMN datasets.compute_seconds IS 'Computing time of all attempts.';
COMMENT ON COLUMN datasets.events_per_second IS 'events / compute_seconds: the rate of one thread, failed and repeated attempts included.';
COMMENT ON COLUMN datasets.output_bytes IS 'Size of all results.';
COMMENT ON COLUMN datasets.failed_attempts IS 'Attempts that erred, were retried or were lost with their worker.';
COMMENT ON COLUMN datasets.trace_id IS 'Identity of the recording.';
