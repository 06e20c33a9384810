-- Branches that may be unneeded.
-- coffea reads a branch when the processor uses it, except for branches that the fileset lists to
-- preload. Reading a preloaded branch is unnecessary if none of its columns is used. A processor that
-- uses all branches of wide files, in a loop over all fields for example, may not need all of them.
-- How many it needs is not recorded.
-- Records: chunk
-- Source: branches that were read against columns that were used, in the records of chunks
-- Documentation: https://coffea-hep.readthedocs.io/en/latest/notebooks/processor.html
-- $max_chunks = 1000: chunks whose branches are compared
-- $min_share = 0.05: share of the bytes of branches that is not used
-- $min_branches = 100: branches of wide files
-- $all_share = 0.95: share of these branches that counts as all
-- $min_read_share = 0.05: time of reading relative to that of chunks, if all are used
WITH reads AS (
    SELECT
        chunk.trace_id,
        list_transform(chunk.measured.columns, lambda name: regexp_replace(name, '-[a-z]+$', ''))
            AS used,
        unnest(chunk.measured.branches, max_depth := 2)
    FROM raw.chunk AS chunk
    SEMI JOIN (
        SELECT rowid AS first_chunk
        FROM raw.chunk
        WHERE measured.columns IS NOT NULL
            -- dask-awkward does not record which columns are used.
            AND measured.until = 'processed'
            AND exception IS NULL
        QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY rowid) <= $max_chunks
    ) ON chunk.rowid = first_chunk
),
branches AS (
    SELECT
        trace_id,
        branch,
        -- A column has the name of its branch; that of offsets has the name of the counter.
        bool_or(read_seconds IS NOT NULL OR list_contains(used, branch)) AS is_used,
        sum(compressed_bytes) AS nbytes
    FROM reads
    GROUP BY ALL
),
shares AS (
    SELECT
        trace_id,
        count(*) AS branches,
        count(*) FILTER (NOT is_used) AS unused_branches,
        sum(nbytes) FILTER (NOT is_used) / sum(nbytes) AS share,
        sum(nbytes) FILTER (NOT is_used) AS sampled_bytes,
        list_sort(list(branch) FILTER (is_used)) AS used,
        arg_max(branch, nbytes) FILTER (NOT is_used) AS largest
    FROM branches
    GROUP BY trace_id
    HAVING share >= $min_share
),
totals AS (
    SELECT
        trace_id,
        sum(compressed_bytes) AS nbytes,
        -- Preloading is part of opening, which also reads metadata: divided by bytes.
        sum(open_seconds * least(compressed_bytes / nullif(bytes_read, 0), 1)) AS seconds
    FROM _chunks
    GROUP BY trace_id
),
complete AS (
    SELECT
        trace_id,
        max(branches_read) AS branches_read,
        max(file_branches) AS file_branches,
        sum(compressed_bytes) AS nbytes,
        sum(read_seconds) AS read_seconds
    FROM _chunks
    WHERE branches_read >= greatest($min_branches, $all_share * file_branches)
        AND NOT _is_preloaded(read_seconds / branches_read)
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    format(
        '{} of {} branches that are read are never used, such as {}: {} of {}.',
        unused_branches, branches, largest, _byte_size(share * nbytes),
        _byte_size(nbytes)
    ) AS sentence,
    share * totals.seconds AS core_seconds,
    0.7 * core_seconds / cluster.nthreads AS wall_seconds_min,
    least(1.2 * core_seconds / cluster.mean_nthreads, cluster.wall_seconds) AS wall_seconds_max,
    coalesce(
        format(
            'Preload only the branches that the processor uses: {}{}.',
            array_to_string(used[:10], ', '),
            CASE WHEN len(used) > 10 THEN format(' and {} more', len(used) - 10) ELSE '' END
        ),
        'Do not preload branches: the processor uses none of them.'
    ) AS change,
    'SELECT branch, sum(compressed_bytes) AS bytes, max(read_seconds) IS NOT NULL AS is_used'
    ' FROM chunk_branches GROUP BY branch ORDER BY is_used, bytes DESC' AS evidence,
    shares.trace_id
FROM shares
INNER JOIN totals USING (trace_id)
INNER JOIN _chunk_threads AS cluster USING (trace_id)
WHERE totals.seconds > 0
UNION ALL
SELECT
    NULL::VARCHAR AS entity,
    'low' AS confidence,
    format(
        'The processor reads {} of {} branches: {} in {:.1f} core-seconds. It is not recorded whether it'
        ' needs all of them.',
        branches_read, file_branches, _byte_size(nbytes), read_seconds
    ) AS sentence,
    read_seconds AS core_seconds,
    0.0::DOUBLE AS wall_seconds_min,
    least(1.2 * read_seconds / cluster.mean_nthreads, cluster.wall_seconds) AS wall_seconds_max,
    'Use only the branches that the result depends on: a loop over all fields, or a copy of the events,'
    ' reads every branch.' AS change,
    'SELECT branch, compressed_bytes, read_seconds FROM branches ORDER BY read_seconds DESC' AS evidence,
    complete.trace_id
FROM complete
INNER JOIN _chunk_threads AS cluster USING (trace_id)
WHERE read_seconds >= $min_read_share * cluster.seconds;
