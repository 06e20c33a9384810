-- Needs: _chunks
CREATE VIEW files AS
SELECT
    dataset,
    filename,
    treename,
    count(*) FILTER (is_first_result) AS chunks,
    count(*) AS chunk_attempts,
    coalesce(sum(events) FILTER (is_first_result), 0)::BIGINT AS events,
    sum(bytes_read)::BIGINT AS bytes_read,
    sum(compute_seconds) AS compute_seconds,
    sum(events) FILTER (is_first_result) / nullif(sum(compute_seconds), 0) AS events_per_second,
    count(DISTINCT worker) AS workers,
    count(*) FILTER (outcome IN ('erred', 'retried', 'lost')) AS failed_attempts,
    trace_id
FROM _chunks
GROUP BY trace_id, dataset, filename, treename
ORDER BY compute_seconds DESC NULLS LAST, dataset, filename, treename;

COMMENT ON VIEW files IS 'Totals by file: one row per dataset, file and tree, the costliest first.';
COMMENT ON COLUMN files.dataset IS 'Dataset that the file belongs to.';
COMMENT ON COLUMN files.filename IS 'The file, as coffea names it.';
COMMENT ON COLUMN files.treename IS 'Tree or table within the file.';
COMMENT ON COLUMN files.chunks IS 'Chunks that were processed; one whose result was lost and computed again counts once.';
COMMENT ON COLUMN files.chunk_attempts IS 'All attempts at chunks.';
COMMENT ON COLUMN files.events IS 'Events in these chunks.';
COMMENT ON COLUMN files.bytes_read IS 'Bytes that all attempts read; null if not measured.';
COMMENT ON COLUMN files.compute_seconds IS 'Computing time of all attempts.';
COMMENT ON COLUMN files.events_per_second IS 'events / compute_seconds: the rate of one thread, failed and repeated attempts included.';
COMMENT ON COLUMN files.workers IS 'Addresses of workers that it was tried on.';
COMMENT ON COLUMN files.failed_attempts IS 'Attempts that erred, were retried or were lost with their worker.';
COMMENT ON COLUMN files.trace_id IS 'Identity of the recording.';
