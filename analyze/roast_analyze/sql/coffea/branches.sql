-- Needs: _chunk_branches
CREATE VIEW branches AS
SELECT
    dataset,
    branch,
    count(*) AS chunk_attempts,
    count(DISTINCT filename) AS files,
    try_cast(sum(compressed_bytes) AS BIGINT) AS compressed_bytes,
    try_cast(sum(uncompressed_bytes) AS BIGINT) AS uncompressed_bytes,
    sum(uncompressed_bytes) FILTER (compressed_bytes IS NOT NULL)
        / nullif(sum(compressed_bytes) FILTER (uncompressed_bytes IS NOT NULL), 0)
        AS compression_ratio,
    sum(read_seconds) AS read_seconds,
    sum(compressed_bytes) / sum(sum(compressed_bytes)) OVER whole AS byte_share,
    sum(read_seconds) / nullif(sum(sum(read_seconds)) OVER whole, 0) AS read_share,
    sum(decompress_seconds) AS decompress_seconds,
    trace_id
FROM _chunk_branches
GROUP BY trace_id, dataset, branch
WINDOW whole AS (PARTITION BY trace_id)
ORDER BY
    trace_id,
    read_seconds DESC NULLS LAST,
    compressed_bytes DESC NULLS LAST,
    dataset,
    branch;

COMMENT ON VIEW branches IS 'Read cost of each branch. One row per dataset and branch, highest read time first. All chunk attempts count. Empty if chunks were not measured.';
COMMENT ON COLUMN branches.dataset IS 'Dataset of the files.';
COMMENT ON COLUMN branches.branch IS 'Branch name.';
COMMENT ON COLUMN branches.chunk_attempts IS 'Chunk attempts that read the branch.';
COMMENT ON COLUMN branches.files IS 'Files that the branch was read from.';
COMMENT ON COLUMN branches.compressed_bytes IS 'Bytes read from the files. Data needed by several chunks counts once per chunk.';
COMMENT ON COLUMN branches.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN branches.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, where both are known.';
COMMENT ON COLUMN branches.read_seconds IS 'Time to read, decompress and interpret the branch.';
COMMENT ON COLUMN branches.byte_share IS 'Share of the compressed bytes of all branches of all datasets.';
COMMENT ON COLUMN branches.read_share IS 'Share of the read time of all branches of all datasets.';
COMMENT ON COLUMN branches.decompress_seconds IS 'The part of read_seconds that decompressed. Null if nothing was compressed, for Parquet, and before trace format 2.4.';
COMMENT ON COLUMN branches.trace_id IS 'ID of the trace.';
