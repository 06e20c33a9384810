-- Needs: _chunks
-- Number of times that the pieces of files are read: baskets of a TTree, clusters of an RNTuple, row
-- groups of a Parquet file. Three lower bounds: the bytes read by the chunks of a file divided by the
-- size of the file; branches of a TTree that contain a number of objects, such as nJet, which have 4
-- bytes per event, or 8 if a file would have too few events otherwise; and chunks of a file that read exactly as many bytes of a branch, compressed and
-- uncompressed: these are the same pieces. The first 1000 chunks are examined. One row per format.
CREATE VIEW _basket_reads AS
WITH examined AS (
    SELECT
        trace_id,
        measured.source AS source,
        filename,
        entry_start,
        entry_stop,
        coalesce(measured.events, entry_stop - entry_start) AS events,
        measured.branches AS branches
    FROM raw.chunk
    WHERE measured.source IS NOT NULL AND exception IS NULL
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY rowid) <= 1000
),
counters AS (
    SELECT
        trace_id,
        source,
        CASE WHEN max(counter.uncompressed_bytes / file_events) > 4.2 THEN 8 ELSE 4 END AS width,
        sum(counter.uncompressed_bytes) / width / sum(events) AS ratio,
        -- With shorter counters, the ratio would be too small.
        min(counter.uncompressed_bytes / events) >= width AS is_counter
    FROM (
        SELECT
            trace_id,
            source,
            events,
            max(entry_stop) OVER (PARTITION BY trace_id, filename) AS file_events,
            list_filter(branches, lambda read: regexp_matches(read.branch, '^n[A-Z]'))[1] AS counter
        FROM examined
        WHERE source = 'TTree'
    )
    WHERE counter.uncompressed_bytes > 0 AND events > 0
    GROUP BY trace_id, source
),
pieces AS (
    SELECT
        trace_id,
        source,
        read.compressed_bytes AS nbytes,
        -- A file that is read in several runs is read with the same entries.
        count(DISTINCT entry_start) AS reads
    FROM (SELECT * EXCLUDE (branches), unnest(branches) AS read FROM examined)
    WHERE read.compressed_bytes > 0
    GROUP BY trace_id, source, filename, read.branch, read.compressed_bytes, read.uncompressed_bytes
),
repetitions AS (
    SELECT trace_id, source, sum(nbytes * reads) / sum(nbytes) AS ratio
    FROM pieces
    GROUP BY trace_id, source
),
files AS (
    SELECT
        trace_id,
        source,
        filename,
        max(file_bytes) AS file_bytes,
        sum(compressed_bytes) AS nbytes,
        count(*) AS chunks,
        sum(events) AS events,
        max(entry_stop) AS file_events,
        sum(read_seconds) AS read_seconds,
        sum(open_seconds) AS open_seconds
    FROM _chunks
    WHERE is_first_result AND source IS NOT NULL
    GROUP BY ALL
)
SELECT
    trace_id,
    source,
    greatest(
        -- Reading a file in several runs is not a repetition.
        sum(files.nbytes) / nullif(sum(files.file_bytes * files.events / files.file_events), 0),
        any_value(counters.ratio) FILTER (counters.is_counter),
        any_value(repetitions.ratio)
    ) AS ratio,
    sum(files.nbytes) AS nbytes,
    sum(chunks) AS chunks,
    sum(events) AS events,
    max(file_events) AS file_events,
    sum(read_seconds) AS read_seconds,
    sum(open_seconds) AS open_seconds
FROM files
LEFT JOIN counters USING (trace_id, source)
LEFT JOIN repetitions USING (trace_id, source)
GROUP BY trace_id, source;
