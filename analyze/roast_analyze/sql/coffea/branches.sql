-- Needs: chunk_branches
CREATE VIEW branches AS
SELECT
    dataset,
    branch,
    count(*) AS chunk_attempts,
    count(DISTINCT filename) AS files,
    sum(compressed_bytes)::BIGINT AS compressed_bytes,
    sum(uncompressed_bytes)::BIGINT AS uncompressed_bytes,
    sum(uncompressed_bytes) FILTER (compressed_bytes IS NOT NULL)
        / nullif(sum(compressed_bytes) FILTER (uncompressed_bytes IS NOT NULL), 0)
        AS compression_ratio,
    sum(read_seconds) AS read_seconds,
    sum(compressed_bytes) / sum(sum(compressed_bytes)) OVER whole AS byte_share,
    sum(read_seconds) / nullif(sum(sum(read_seconds)) OVER whole, 0) AS read_share,
    trace_id
FROM chunk_branches
GROUP BY trace_id, dataset, branch
WINDOW whole AS (PARTITION BY trace_id)
ORDER BY
    trace_id,
    read_seconds DESC NULLS LAST,
    compressed_bytes DESC NULLS LAST,
    dataset,
    branch;

COMMENT ON VIEW branches IS 'What branches cost: one row per dataset and branch, the costliest first. All attempts at chunks count. Empty if chunks were not measured.';
COMMENT ON COLUMN branches.dataset IS 'Dataset that the files belong to.';
COMMENT ON COLUMN branches.branch IS 'Name of the branch.';
COMMENT ON COLUMN branches.chunk_attempts IS 'Attempts at chunks that read it.';
COMMENT ON COLUMN branches.files IS 'Files that it was read from.';
COMMENT ON COLUMN branches.compressed_bytes IS 'Size in the files of what was read of it; what several chunks needed counts for each.';
COMMENT ON COLUMN branches.uncompressed_bytes IS 'Size of that when decompressed.';
COMMENT ON COLUMN branches.compression_ratio IS 'Uncompressed by compressed bytes, where both are known.';
COMMENT ON COLUMN branches.read_seconds IS 'Time to read, decompress and interpret it.';
COMMENT ON COLUMN branches.byte_share IS 'Part of the compressed bytes of all branches of all datasets.';
COMMENT ON COLUMN branches.read_share IS 'Part of the reading time of all branches of all datasets.';
COMMENT ON COLUMN branches.trace_id IS 'Identity of the recording.';
