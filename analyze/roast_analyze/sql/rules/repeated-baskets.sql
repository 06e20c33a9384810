-- Baskets read more than once.
-- A basket that spans several chunks is read, decompressed and discarded for each of them. The
-- number of times that baskets are read is at least the bytes read by the chunks of a file divided
-- by the size of the file. Branches with the number of objects, such as nJet, determine it more
-- precisely: they have 4 bytes per event.
-- Records: chunk
-- Source: uncompressed sizes of the baskets that chunks read
-- Documentation: https://uproot.readthedocs.io/en/latest/basic.html#reading-many-baskets
-- $min_ratio = 2.5: how often baskets are read; up to 2 is usual, since chunks do not end with baskets
-- $max_chunks = 1000: chunks whose branches are examined
-- $counter_bytes = 4: size of the number of objects of an event
WITH counters AS (
    SELECT
        trace_id,
        sum(counter.uncompressed_bytes) / $counter_bytes / sum(events) AS ratio,
        -- With shorter counters, the ratio would be too small.
        min(counter.uncompressed_bytes / events) >= $counter_bytes AS is_counter
    FROM (
        SELECT
            chunk.trace_id,
            coalesce(chunk.measured.events, chunk.entry_stop - chunk.entry_start) AS events,
            list_filter(
                chunk.measured.branches, lambda read: regexp_matches(read.branch, '^n[A-Z]')
            )[1] AS counter
        FROM raw.chunk AS chunk
        WHERE chunk.measured.source = 'TTree' AND chunk.exception IS NULL
        QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY chunk.rowid) <= $max_chunks
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
),
totals AS (
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
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'medium' AS confidence,
    format(
        'Baskets are read about {:.1f} times, since they span several chunks of {:,} events: {:.1f} MB'
        ' instead of {:.1f} MB.', ratio, (events / chunks)::BIGINT, nbytes / 1e6, nbytes / ratio / 1e6
    ) AS sentence,
    totals.read_seconds * (1 - 1 / ratio) AS core_seconds,
    0.7 * core_seconds / run.nthreads AS wall_seconds_min,
    -- Fewer chunks also open fewer files.
    least(
        1.3 * (totals.read_seconds + totals.open_seconds) * (1 - 1 / ratio) / run.mean_nthreads,
        run.wall_seconds
    ) AS wall_seconds_max,
    format(
        'Use chunks of {:,} events or more (now {:,}), or files with smaller baskets.',
        least(_round_two_digits(events / chunks * ratio, 0), file_events)::BIGINT,
        (events / chunks)::BIGINT
    ) AS change,
    'SELECT filename, chunks, events, compressed_bytes, file_bytes, read_seconds FROM files' AS evidence,
    totals.trace_id
FROM totals
INNER JOIN _chunk_threads AS run USING (trace_id)
WHERE ratio >= $min_ratio AND totals.read_seconds > 0;
