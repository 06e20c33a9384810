-- Needs: _chunks, _is_failed, _relative_duration, _relative_iqr
CREATE VIEW files AS
WITH totals AS (
    SELECT
        dataset,
        filename,
        treename,
        count(*) FILTER (is_first_result) AS chunks,
        count(*) AS chunk_attempts,
        CASE
            WHEN count(*) FILTER (is_first_result) = 0 THEN 0
            ELSE sum(events) FILTER (is_first_result)
        END::BIGINT AS events,
        sum(bytes_read)::BIGINT AS bytes_read,
        sum(compute_seconds) AS compute_seconds,
        sum(events) FILTER (is_first_result)
            / nullif(sum(compute_seconds) FILTER (from_checkpoint IS NOT TRUE), 0)
            AS events_per_second,
        count(DISTINCT worker) AS workers,
        count(*) FILTER (_is_failed(outcome)) AS failed_attempts,
        sum(bytes_read) / nullif(sum(compute_seconds) FILTER (bytes_read IS NOT NULL), 0)
            AS bytes_per_second,
        sum(compute_seconds) / nullif(sum(sum(compute_seconds)) OVER (PARTITION BY trace_id), 0)
            AS compute_share,
        median(whole_seconds) FILTER (outcome = 'memory') AS median_compute_seconds,
        max(whole_seconds) FILTER (outcome = 'memory') AS max_compute_seconds,
        _relative_iqr(event_seconds) AS relative_iqr,
        arg_min(worker, (-event_seconds, worker)) FILTER (event_seconds IS NOT NULL)
            AS slowest_worker,
        sum(process_seconds) AS process_seconds,
        sum(open_seconds) AS open_seconds,
        sum(read_seconds) AS read_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(wait_seconds) AS wait_seconds,
        sum(requests)::BIGINT AS requests,
        any_value(source) AS source,
        max(file_bytes) AS file_bytes,
        sum(bytes_read) FILTER (is_first_result) / nullif(max(file_bytes), 0) AS file_read_ratio,
        max(file_branches) AS file_branches,
        max(branches_read) AS branches_read,
        max(branches_read) / nullif(max(file_branches), 0) AS branch_share,
        sum(compressed_bytes)::BIGINT AS compressed_bytes,
        sum(uncompressed_bytes)::BIGINT AS uncompressed_bytes,
        sum(unpacked_bytes) / nullif(sum(packed_bytes), 0) AS compression_ratio,
        count(*) FILTER (is_first_result AND from_checkpoint) AS checkpointed_chunks,
        trace_id
    FROM _chunks
    GROUP BY trace_id, dataset, filename, treename
)
SELECT
    totals.* EXCLUDE (trace_id),
    relative_duration.relative_duration,
    relative_duration.is_slow,
    totals.trace_id
FROM totals
LEFT JOIN _relative_duration AS relative_duration
    ON relative_duration.process IS NULL
    AND totals.trace_id = relative_duration.trace_id
    AND totals.dataset IS NOT DISTINCT FROM relative_duration.dataset
    AND totals.filename IS NOT DISTINCT FROM relative_duration.filename
    AND totals.treename IS NOT DISTINCT FROM relative_duration.treename
ORDER BY
    totals.trace_id,
    compute_seconds DESC NULLS LAST,
    totals.dataset,
    totals.filename,
    totals.treename;

COMMENT ON VIEW files IS 'Totals by file: one row per dataset, file and tree, the costliest first. Sums are over what was measured, and null if nothing was.';
COMMENT ON COLUMN files.dataset IS 'Dataset that the file belongs to.';
COMMENT ON COLUMN files.filename IS 'The file, as coffea names it.';
COMMENT ON COLUMN files.treename IS 'Tree or table within the file.';
COMMENT ON COLUMN files.chunks IS 'Chunks that were processed; one whose result was lost and computed again counts once.';
COMMENT ON COLUMN files.chunk_attempts IS 'All attempts at chunks.';
COMMENT ON COLUMN files.events IS 'Events in these chunks; those of results from a checkpoint are not known.';
COMMENT ON COLUMN files.bytes_read IS 'Bytes that all attempts read; null if not measured.';
COMMENT ON COLUMN files.compute_seconds IS 'Computing time of all attempts.';
COMMENT ON COLUMN files.events_per_second IS 'events / compute_seconds: the rate of one thread, failed and repeated attempts included, results from a checkpoint not.';
COMMENT ON COLUMN files.workers IS 'Addresses of workers that it was tried on.';
COMMENT ON COLUMN files.failed_attempts IS 'Attempts that erred, were retried, were lost with their worker, or were skipped.';
COMMENT ON COLUMN files.bytes_per_second IS 'bytes_read by the computing time of the attempts that measured it: the rate of one thread.';
COMMENT ON COLUMN files.compute_share IS 'Part of the computing time of all attempts at chunks.';
COMMENT ON COLUMN files.median_compute_seconds IS 'Median computing time of an attempt that ended well.';
COMMENT ON COLUMN files.max_compute_seconds IS 'Longest computing time of an attempt that ended well.';
COMMENT ON COLUMN files.relative_iqr IS 'How unlike its chunks are: interquartile range of their seconds per event, by the median.';
COMMENT ON COLUMN files.slowest_worker IS 'Worker of its chunk with the most seconds per event; of several the first by name.';
COMMENT ON COLUMN files.process_seconds IS 'Time in the processor, of all attempts.';
COMMENT ON COLUMN files.open_seconds IS 'Time until there were events, of all attempts.';
COMMENT ON COLUMN files.read_seconds IS 'Time of reading columns, of all attempts.';
COMMENT ON COLUMN files.cpu_seconds IS 'CPU time of the threads, of all attempts.';
COMMENT ON COLUMN files.wait_seconds IS 'Time without CPU of the threads, of all attempts.';
COMMENT ON COLUMN files.requests IS 'Requests that all attempts made.';
COMMENT ON COLUMN files.source IS 'What was read: TTree, RNTuple or Parquet.';
COMMENT ON COLUMN files.file_bytes IS 'Size of the file.';
COMMENT ON COLUMN files.file_read_ratio IS 'Bytes that its processed chunks read, as a part of its size; opening it anew for each chunk counts each time.';
COMMENT ON COLUMN files.file_branches IS 'Branches in the file.';
COMMENT ON COLUMN files.branches_read IS 'Most branches that a chunk of it read.';
COMMENT ON COLUMN files.branch_share IS 'branches_read / file_branches.';
COMMENT ON COLUMN files.compressed_bytes IS 'Size in the file of what all attempts read of branches; what several chunks needed counts for each.';
COMMENT ON COLUMN files.uncompressed_bytes IS 'Size of that when decompressed.';
COMMENT ON COLUMN files.compression_ratio IS 'Uncompressed by compressed bytes, where both are known.';
COMMENT ON COLUMN files.checkpointed_chunks IS 'Chunks whose result came from a checkpoint.';
COMMENT ON COLUMN files.relative_duration IS 'How many times as long as those of the dataset''s median file its chunks took whichever worker had them: the median over its chunks, by what dataset, size and worker make one expect. Null if it cannot be told from the worker or the dataset: fewer than two workers, or one file in the dataset.';
COMMENT ON COLUMN files.is_slow IS 'Whether relative_duration is at least 1.5, of 3 chunks at least, and 4 standard errors above 1. Chunks of a file tend to run at the same time: if everything was slow then, so is the file.';
COMMENT ON COLUMN files.trace_id IS 'Identity of the recording.';
