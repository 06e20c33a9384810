-- Needs: _chunks, _discarded_results, _file_attempts, _is_failed, _is_kept, _relative_iqr
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
        count(*) FILTER (is_chunk) AS chunk_attempts,
        try_cast(CASE
            WHEN count(*) FILTER (is_first_result) = 0 THEN 0
            ELSE sum(events) FILTER (is_first_result)
        END AS BIGINT) AS events,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
        sum(compute_seconds) AS compute_seconds,
        sum(compute_seconds) FILTER (_is_kept(outcome, discarded.seq)) AS kept_seconds,
        sum(events) FILTER (is_first_result)
            / nullif(sum(compute_seconds) FILTER (from_checkpoint IS NOT TRUE), 0)
            AS events_per_second,
        try_cast(sum(output_bytes) AS BIGINT) AS output_bytes,
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
        try_cast(sum(requests) AS BIGINT) AS requests,
        try_cast(sum(compressed_bytes) AS BIGINT) AS compressed_bytes,
        try_cast(sum(uncompressed_bytes) AS BIGINT) AS uncompressed_bytes,
        sum(unpacked_bytes) / nullif(sum(packed_bytes), 0) AS compression_ratio,
        avg(branches_read / nullif(file_branches, 0)) FILTER (is_first_result) AS branch_share,
        count(*) FILTER (is_first_result AND from_checkpoint) AS checkpointed_chunks,
        sum(bytes_read) FILTER (is_first_result)
            / nullif(sum(events) FILTER (is_first_result AND bytes_read IS NOT NULL), 0)
            AS bytes_per_event,
        trace_id
    FROM _file_attempts
    LEFT JOIN _discarded_results AS discarded USING (seq)
    GROUP BY trace_id, dataset
)
SELECT
    totals.* EXCLUDE (branch_share, checkpointed_chunks, kept_seconds, bytes_per_event, trace_id),
    branch_share,
    shares.file_read_ratio,
    checkpointed_chunks,
    kept_seconds,
    bytes_per_event,
    totals.trace_id
FROM totals
LEFT JOIN shares
    ON totals.trace_id = shares.trace_id AND totals.dataset IS NOT DISTINCT FROM shares.dataset
ORDER BY totals.trace_id, compute_seconds DESC NULLS LAST, totals.dataset;

COMMENT ON VIEW datasets IS 'Totals by dataset. One row per dataset, highest compute time first. A dataset whose files could not be read has no chunks and no events. Sums cover measured values only, and are null if nothing was measured.';
COMMENT ON COLUMN datasets.dataset IS 'Dataset name.';
COMMENT ON COLUMN datasets.files IS 'Files of which a chunk was attempted, or whose number of entries could not be read: those in view files.';
COMMENT ON COLUMN datasets.chunks IS 'Chunks processed. A chunk that was recomputed after its result was lost counts once; a chunk whose key was submitted again counts again.';
COMMENT ON COLUMN datasets.chunk_attempts IS 'Chunk attempts.';
COMMENT ON COLUMN datasets.events IS 'Events in these chunks. Events of results from a checkpoint are unknown.';
COMMENT ON COLUMN datasets.bytes_read IS 'Bytes read by all attempts. Null if not measured.';
COMMENT ON COLUMN datasets.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN datasets.events_per_second IS 'events / compute_seconds: rate of one thread, failed and repeated attempts included, results from a checkpoint excluded.';
COMMENT ON COLUMN datasets.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN datasets.failed_attempts IS 'Attempts that erred, were retried, were lost with their worker, or were skipped, failed reads of the number of entries included.';
COMMENT ON COLUMN datasets.bytes_per_second IS 'bytes_read divided by the compute time of the attempts that measured it: rate of one thread.';
COMMENT ON COLUMN datasets.compute_share IS 'Share of the compute time of all chunk attempts.';
COMMENT ON COLUMN datasets.median_compute_seconds IS 'Median compute time of successful attempts.';
COMMENT ON COLUMN datasets.max_compute_seconds IS 'Maximum compute time of successful attempts.';
COMMENT ON COLUMN datasets.relative_iqr IS 'Interquartile range of the seconds per event of the chunks, divided by their median.';
COMMENT ON COLUMN datasets.slowest_file IS 'File of the chunk with the most seconds per event; the first by name in case of a tie.';
COMMENT ON COLUMN datasets.process_seconds IS 'Processor time of all attempts.';
COMMENT ON COLUMN datasets.open_seconds IS 'File opening time of all attempts.';
COMMENT ON COLUMN datasets.read_seconds IS 'Column read time of all attempts.';
COMMENT ON COLUMN datasets.cpu_seconds IS 'CPU time of all attempts.';
COMMENT ON COLUMN datasets.wait_seconds IS 'Time without CPU of all attempts.';
COMMENT ON COLUMN datasets.requests IS 'Requests of all attempts.';
COMMENT ON COLUMN datasets.compressed_bytes IS 'Size in the files of the branch data read by all attempts.';
COMMENT ON COLUMN datasets.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN datasets.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, where both are known.';
COMMENT ON COLUMN datasets.branch_share IS 'Share of the branches of a file that was read, averaged over the chunks.';
COMMENT ON COLUMN datasets.file_read_ratio IS 'Bytes read by processed chunks divided by the size of their files. Can exceed 1, since each chunk opens the file again.';
COMMENT ON COLUMN datasets.checkpointed_chunks IS 'Chunks whose result came from a checkpoint.';
COMMENT ON COLUMN datasets.kept_seconds IS 'Compute time of attempts whose result was kept, as in chunks.kept.';
COMMENT ON COLUMN datasets.bytes_per_event IS 'Bytes read per event, over processed chunks that measured it.';
COMMENT ON COLUMN datasets.trace_id IS 'ID of the trace.';
