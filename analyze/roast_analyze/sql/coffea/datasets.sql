-- Needs: _chunks, _is_failed, _relative_iqr
CREATE VIEW datasets AS
WITH files AS (
    SELECT
        trace_id,
        dataset,
        filename,
        max(file_bytes) AS file_bytes,
        sum(bytes_read) FILTER (is_first_result) AS bytes_read
    FROM _chunks
    GROUP BY trace_id, dataset, filename, treename
),
shares AS (
    SELECT
        trace_id,
        dataset,
        sum(bytes_read) FILTER (file_bytes IS NOT NULL)
            / nullif(sum(file_bytes) FILTER (bytes_read IS NOT NULL), 0) AS file_read_ratio
    FROM files
    GROUP BY trace_id, dataset
),
totals AS (
    SELECT
        dataset,
        count(DISTINCT filename) AS files,
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
        sum(output_bytes)::BIGINT AS output_bytes,
        count(*) FILTER (_is_failed(outcome)) AS failed_attempts,
        sum(bytes_read) / nullif(sum(compute_seconds) FILTER (bytes_read IS NOT NULL), 0)
            AS bytes_per_second,
        sum(compute_seconds) / nullif(sum(sum(compute_seconds)) OVER (PARTITION BY trace_id), 0)
            AS compute_share,
        median(whole_seconds) FILTER (outcome = 'memory') AS median_compute_seconds,
        max(whole_seconds) FILTER (outcome = 'memory') AS max_compute_seconds,
        _relative_iqr(event_seconds) AS relative_iqr,
        arg_min(filename, (-event_seconds, filename)) FILTER (event_seconds IS NOT NULL)
            AS slowest_file,
        sum(process_seconds) AS process_seconds,
        sum(open_seconds) AS open_seconds,
        sum(read_seconds) AS read_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(wait_seconds) AS wait_seconds,
        sum(requests)::BIGINT AS requests,
        sum(compressed_bytes)::BIGINT AS compressed_bytes,
        sum(uncompressed_bytes)::BIGINT AS uncompressed_bytes,
        sum(unpacked_bytes) / nullif(sum(packed_bytes), 0) AS compression_ratio,
        avg(branches_read / nullif(file_branches, 0)) FILTER (is_first_result) AS branch_share,
        count(*) FILTER (is_first_result AND from_checkpoint) AS checkpointed_chunks,
        trace_id
    FROM _chunks
    GROUP BY trace_id, dataset
)
SELECT
    totals.* EXCLUDE (branch_share, checkpointed_chunks, trace_id),
    branch_share,
    shares.file_read_ratio,
    checkpointed_chunks,
    totals.trace_id
FROM totals
LEFT JOIN shares
    ON totals.trace_id = shares.trace_id AND totals.dataset IS NOT DISTINCT FROM shares.dataset
ORDER BY totals.trace_id, compute_seconds DESC NULLS LAST, totals.dataset;

COMMENT ON VIEW datasets IS 'Totals by dataset: one row per dataset, the costliest first. Sums are over what was measured, and null if nothing was.';
COMMENT ON COLUMN datasets.dataset IS 'Name of the dataset.';
COMMENT ON COLUMN datasets.files IS 'Files of which a chunk was tried.';
COMMENT ON COLUMN datasets.chunks IS 'Chunks that were processed; one whose result was lost and computed again counts once, one whose key entered the graph anew counts again.';
COMMENT ON COLUMN datasets.chunk_attempts IS 'All attempts at chunks.';
COMMENT ON COLUMN datasets.events IS 'Events in these chunks; those of results from a checkpoint are not known.';
COMMENT ON COLUMN datasets.bytes_read IS 'Bytes that all attempts read; null if not measured.';
COMMENT ON COLUMN datasets.compute_seconds IS 'Computing time of all attempts.';
COMMENT ON COLUMN datasets.events_per_second IS 'events / compute_seconds: the rate of one thread, failed and repeated attempts included, results from a checkpoint not.';
COMMENT ON COLUMN datasets.output_bytes IS 'Size of all results.';
COMMENT ON COLUMN datasets.failed_attempts IS 'Attempts that erred, were retried, were lost with their worker, or were skipped.';
COMMENT ON COLUMN datasets.bytes_per_second IS 'bytes_read by the computing time of the attempts that measured it: the rate of one thread.';
COMMENT ON COLUMN datasets.compute_share IS 'Part of the computing time of all attempts at chunks.';
COMMENT ON COLUMN datasets.median_compute_seconds IS 'Median computing time of an attempt that ended well.';
COMMENT ON COLUMN datasets.max_compute_seconds IS 'Longest computing time of an attempt that ended well.';
COMMENT ON COLUMN datasets.relative_iqr IS 'How unlike the chunks are: interquartile range of their seconds per event, by the median.';
COMMENT ON COLUMN datasets.slowest_file IS 'File of the chunk with the most seconds per event; of several the first by name.';
COMMENT ON COLUMN datasets.process_seconds IS 'Time in the processor, of all attempts.';
COMMENT ON COLUMN datasets.open_seconds IS 'Time until there were events, of all attempts.';
COMMENT ON COLUMN datasets.read_seconds IS 'Time of reading columns, of all attempts.';
COMMENT ON COLUMN datasets.cpu_seconds IS 'CPU time of the threads, of all attempts.';
COMMENT ON COLUMN datasets.wait_seconds IS 'Time without CPU of the threads, of all attempts.';
COMMENT ON COLUMN datasets.requests IS 'Requests that all attempts made.';
COMMENT ON COLUMN datasets.compressed_bytes IS 'Size in the files of what all attempts read of branches.';
COMMENT ON COLUMN datasets.uncompressed_bytes IS 'Size of that when decompressed.';
COMMENT ON COLUMN datasets.compression_ratio IS 'Uncompressed by compressed bytes, where both are known.';
COMMENT ON COLUMN datasets.branch_share IS 'Part of the branches of a file that was read, in the mean over the chunks.';
COMMENT ON COLUMN datasets.file_read_ratio IS 'Bytes that processed chunks read, as a part of the size of their files; opening a file anew for each chunk counts each time.';
COMMENT ON COLUMN datasets.checkpointed_chunks IS 'Chunks whose result came from a checkpoint.';
COMMENT ON COLUMN datasets.trace_id IS 'Identity of the recording.';
