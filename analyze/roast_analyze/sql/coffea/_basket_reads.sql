-- Needs: _chunks
-- Number of times that the baskets of TTrees are read. It is at least the bytes read by the chunks
-- of a file divided by the size of the file. Branches that contain a number of objects, such as nJet,
-- determine it more precisely: they have 4 bytes per event. The first 1000 chunks are examined.
CREATE VIEW _basket_reads AS
WITH counters AS (
    SELECT
        trace_id,
        sum(counter.uncompressed_bytes) / 4 / sum(events) AS ratio,
        -- With shorter counters, the ratio would be too small.
        min(counter.uncompressed_bytes / events) >= 4 AS is_counter
    FROM (
        SELECT
            chunk.trace_id,
            coalesce(chunk.measured.events, chunk.entry_stop - chunk.entry_start) AS events,
            list_filter(
                chunk.measured.branches, lambda read: regexp_matches(read.branch, '^n[A-Z]')
            )[1] AS counter
        FROM raw.chunk AS chunk
        -- Sorting the branches of all chunks would take longer than the rest.
        SEMI JOIN (
            SELECT rowid AS first_chunk
            FROM raw.chunk
            WHERE measured.source = 'TTree' AND exception IS NULL
            QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY rowid) <= 1000
        ) ON chunk.rowid = first_chunk
    )
    WHERE counter.uncompressed_bytes > 0 AND events > 0
    GROUP BY trace_id
),
files AS (
    SELECT
        trace_id,
        filename,
        max(file_bytes) AS file_bytes,
        sum(compressed_bytes) AS nbytes,
        sum(bytes_read) AS bytes_read,
        count(*) AS chunks,
        sum(events) AS events,
        max(entry_stop) AS file_events,
        sum(read_seconds) AS read_seconds,
        sum(open_seconds) AS open_seconds
    FROM _chunks
    WHERE is_first_result AND source = 'TTree'
    GROUP BY ALL
)
SELECT
    trace_id,
    greatest(
        -- Reading a file in several runs is not a repetition.
        sum(files.nbytes) / nullif(sum(files.file_bytes * files.events / files.file_events), 0),
        any_value(counters.ratio) FILTER (counters.is_counter)
    ) AS ratio,
    sum(files.nbytes) AS nbytes,
    sum(chunks) AS chunks,
    sum(events) AS events,
    max(file_events) AS file_events,
    sum(read_seconds) AS read_seconds,
    sum(open_seconds) AS open_seconds
FROM files
LEFT JOIN counters USING (trace_id)
GROUP BY trace_id;
