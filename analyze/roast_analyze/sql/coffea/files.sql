-- Needs: _file_attempts, _is_failed, _relative_duration, _relative_iqr
CREATE VIEW files AS
WITH totals AS (
    SELECT
        dataset,
        filename,
        treename,
        count(*) FILTER (is_first_result) AS chunks,
        count(*) FILTER (is_chunk) AS chunk_attempts,
        try_cast(CASE
            WHEN count(*) FILTER (is_first_result) = 0 THEN 0
            ELSE sum(events) FILTER (is_first_result)
        END AS BIGINT) AS events,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
        sum(compute_seconds) AS compute_seconds,
        sum(events) FILTER (is_first_result)
            / nullif(
                sum(compute_seconds) FILTER (is_first_result AND from_checkpoint IS NOT TRUE), 0
            )
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
        try_cast(sum(requests) AS BIGINT) AS requests,
        any_value(source) AS source,
        max(file_bytes) AS file_bytes,
        sum(bytes_read) FILTER (is_first_result) / nullif(max(file_bytes), 0) AS file_read_ratio,
        max(file_branches) AS file_branches,
        max(branches_read) AS branches_read,
        max(branches_read) / nullif(max(file_branches), 0) AS branch_share,
        try_cast(sum(compressed_bytes) AS BIGINT) AS compressed_bytes,
        try_cast(sum(uncompressed_bytes) AS BIGINT) AS uncompressed_bytes,
        sum(unpacked_bytes) / nullif(sum(packed_bytes), 0) AS compression_ratio,
        count(*) FILTER (is_first_result AND from_checkpoint) AS checkpointed_chunks,
        sum(bytes_read) FILTER (is_first_result)
            / nullif(sum(events) FILTER (is_first_result AND bytes_read IS NOT NULL), 0)
            AS bytes_per_event,
        trace_id
    FROM _file_attempts
    GROUP BY trace_id, dataset, filename, treename
)
SELECT
    totals.* EXCLUDE (bytes_per_event, trace_id),
    relative_duration.relative_duration,
    relative_duration.relative_duration_error,
    relative_duration.is_slow,
    totals.bytes_per_event,
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

COMMENT ON VIEW files IS 'Totals by file. One row per dataset, file and tree, highest compute time first. A file that coffea skipped because its number of entries could not be read has no chunks and no events. Sums cover measured values only, and are null if nothing was measured.';
COMMENT ON COLUMN files.dataset IS 'Dataset of the file.';
COMMENT ON COLUMN files.filename IS 'File name, as coffea gives it.';
COMMENT ON COLUMN files.treename IS 'Tree or table in the file.';
COMMENT ON COLUMN files.chunks IS 'Chunks processed. A chunk that was recomputed after its result was lost counts once.';
COMMENT ON COLUMN files.chunk_attempts IS 'Chunk attempts.';
COMMENT ON COLUMN files.events IS 'Events in these chunks. Events of results from a checkpoint are unknown.';
COMMENT ON COLUMN files.bytes_read IS 'Bytes read by all attempts. Null if not measured.';
COMMENT ON COLUMN files.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN files.events_per_second IS 'Rate of one thread: events / compute time of the attempts that computed them. Failed and repeated attempts are excluded, and so are results from a checkpoint.';
COMMENT ON COLUMN files.workers IS 'Number of workers that attempted the file.';
COMMENT ON COLUMN files.failed_attempts IS 'Attempts that erred, were retried, were lost with their worker, or were skipped, failed reads of the number of entries included.';
COMMENT ON COLUMN files.bytes_per_second IS 'bytes_read divided by the compute time of the attempts that measured it: rate of one thread.';
COMMENT ON COLUMN files.compute_share IS 'Share of the compute time of all chunk attempts.';
COMMENT ON COLUMN files.median_compute_seconds IS 'Median compute time of successful attempts.';
COMMENT ON COLUMN files.max_compute_seconds IS 'Maximum compute time of successful attempts.';
COMMENT ON COLUMN files.relative_iqr IS 'Interquartile range of the seconds per event of its chunks, divided by their median.';
COMMENT ON COLUMN files.slowest_worker IS 'Worker of the chunk with the most seconds per event; the first by name in case of a tie.';
COMMENT ON COLUMN files.process_seconds IS 'Processor time of all attempts.';
COMMENT ON COLUMN files.open_seconds IS 'File opening time of all attempts.';
COMMENT ON COLUMN files.read_seconds IS 'Column read time of all attempts.';
COMMENT ON COLUMN files.cpu_seconds IS 'CPU time of all attempts.';
COMMENT ON COLUMN files.wait_seconds IS 'Time without CPU of all attempts.';
COMMENT ON COLUMN files.requests IS 'Requests of all attempts.';
COMMENT ON COLUMN files.source IS 'File format: TTree, RNTuple or Parquet.';
COMMENT ON COLUMN files.file_bytes IS 'File size.';
COMMENT ON COLUMN files.file_read_ratio IS 'Bytes read by processed chunks divided by the file size. Can exceed 1, since each chunk opens the file again.';
COMMENT ON COLUMN files.file_branches IS 'Branches in the file.';
COMMENT ON COLUMN files.branches_read IS 'Maximum number of branches read by a chunk.';
COMMENT ON COLUMN files.branch_share IS 'branches_read / file_branches.';
COMMENT ON COLUMN files.compressed_bytes IS 'Size in the file of the branch data read by all attempts. Data needed by several chunks counts once per chunk.';
COMMENT ON COLUMN files.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN files.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, where both are known.';
COMMENT ON COLUMN files.checkpointed_chunks IS 'Chunks whose result came from a checkpoint.';
COMMENT ON COLUMN files.relative_duration IS 'Duration of its chunks relative to the median file of the dataset: the median over its chunks of measured time divided by the time expected from dataset, size and worker. Null if the file cannot be separated from its worker, the only one of several that read it, or is the only one of its dataset.';
COMMENT ON COLUMN files.relative_duration_error IS 'Standard error of relative_duration, from the scatter of chunks.';
COMMENT ON COLUMN files.is_slow IS 'True if relative_duration, from at least 5 chunks, is at least 1.5, 4 standard errors above 1, and above 1 by 4 times the spread of the faster half of all files. Of two files, or if no other file was read at the same time, at least 2.5 is required; of a file that was read alone at the start of the run, at least 5.';
COMMENT ON COLUMN files.bytes_per_event IS 'Bytes read per event, over processed chunks that measured it.';
COMMENT ON COLUMN files.trace_id IS 'ID of the trace.';
