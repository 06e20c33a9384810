-- Needs: _chunks
CREATE VIEW chunk_branches AS
SELECT
    key,
    attempt,
    read.branch,
    read.compressed_bytes,
    read.uncompressed_bytes,
    trace_id
FROM (SELECT key, attempt, unnest(branches) AS read, trace_id FROM _chunks);

COMMENT ON VIEW chunk_branches IS 'What chunks read of the branches of their files: one row per attempt at a chunk and branch. Empty if not measured.';
COMMENT ON COLUMN chunk_branches.key IS 'Key of the task that processes the chunk.';
COMMENT ON COLUMN chunk_branches.attempt IS 'Number of the attempt within its key.';
COMMENT ON COLUMN chunk_branches.branch IS 'Name of the branch.';
COMMENT ON COLUMN chunk_branches.compressed_bytes IS 'Size in the file of the baskets or clusters that overlap the chunk.';
COMMENT ON COLUMN chunk_branches.uncompressed_bytes IS 'Size of these in memory.';
COMMENT ON COLUMN chunk_branches.trace_id IS 'Identity of the recording.';
