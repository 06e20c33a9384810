-- Needs: _chunk_branches
CREATE VIEW chunk_branches AS
SELECT
    key,
    attempt,
    branch,
    compressed_bytes,
    uncompressed_bytes,
    read_seconds,
    dataset,
    filename,
    treename,
    entry_start,
    entry_stop,
    worker,
    outcome,
    run_id,
    decompress_seconds,
    trace_id
FROM _chunk_branches
ORDER BY trace_id, seq NULLS LAST, start_t, part, branch;

COMMENT ON VIEW chunk_branches IS 'Branches read by chunk attempts. One row per attempt and branch. A basket or cluster that spans several chunks is read once per chunk and counts in each, as do all row groups of a Parquet file. Empty if chunks were not measured.';
COMMENT ON COLUMN chunk_branches.key IS 'Key of the task that processes the chunk.';
COMMENT ON COLUMN chunk_branches.attempt IS 'Attempt number within the key.';
COMMENT ON COLUMN chunk_branches.branch IS 'Branch name.';
COMMENT ON COLUMN chunk_branches.compressed_bytes IS 'Size in the file of the baskets or clusters that overlap the chunk, or of all row groups.';
COMMENT ON COLUMN chunk_branches.uncompressed_bytes IS 'Size of these after decompression.';
COMMENT ON COLUMN chunk_branches.read_seconds IS 'Time to read, decompress and interpret them.';
COMMENT ON COLUMN chunk_branches.dataset IS 'Dataset of the file.';
COMMENT ON COLUMN chunk_branches.filename IS 'File name.';
COMMENT ON COLUMN chunk_branches.treename IS 'Tree or table in the file.';
COMMENT ON COLUMN chunk_branches.entry_start IS 'First entry of the chunk.';
COMMENT ON COLUMN chunk_branches.entry_stop IS 'End of the chunk: the entry after its last.';
COMMENT ON COLUMN chunk_branches.worker IS 'Worker address.';
COMMENT ON COLUMN chunk_branches.outcome IS 'Outcome of the attempt, as in chunks.';
COMMENT ON COLUMN chunk_branches.run_id IS 'Dask''s run id of the attempt, as in chunks.';
COMMENT ON COLUMN chunk_branches.decompress_seconds IS 'The part of read_seconds that decompressed. Null if nothing was compressed, for Parquet, and before trace format 2.4.';
COMMENT ON COLUMN chunk_branches.trace_id IS 'ID of the trace.';
