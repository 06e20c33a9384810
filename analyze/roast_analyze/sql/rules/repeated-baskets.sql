-- Baskets read more than once.
-- A basket that spans several chunks is read, decompressed and discarded for each of them, and so is a
-- cluster of an RNTuple. Of Parquet files, coffea reads all row groups for each chunk.
-- Records: chunk
-- Source: sizes of the baskets, clusters or row groups that chunks read
-- Documentation: https://uproot.readthedocs.io/en/latest/basic.html#reading-many-baskets
-- $min_ratio = 2.5: how often baskets are read; up to 2 is usual, since chunks do not end with baskets
-- $min_share = 0.02: time of the repetitions, as a share of the thread time of the run
-- $least_saved = 0.7: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.3: ratio of the largest saving to the cost; calibrated as well
SELECT
    NULL::VARCHAR AS entity,
    'medium' AS confidence,
    format(
        '{} are read {} {:.1f} times, since they span several chunks of {:,} events: {} instead of {}.',
        CASE source WHEN 'RNTuple' THEN 'Clusters' WHEN 'Parquet' THEN 'Row groups' ELSE 'Baskets' END,
        CASE source WHEN 'TTree' THEN 'about' ELSE 'at least' END, ratio, (events / chunks)::BIGINT,
        _byte_size(nbytes), _byte_size(nbytes / ratio)
    ) AS sentence,
    totals.read_seconds * (1 - 1 / ratio) AS core_seconds,
    $least_saved * core_seconds / cluster.nthreads AS wall_seconds_min,
    -- Fewer chunks also open fewer files.
    least(
        $most_saved * (totals.read_seconds + totals.open_seconds) * (1 - 1 / ratio) / cluster.mean_nthreads,
        cluster.wall_seconds
    ) AS wall_seconds_max,
    format(
        'Use chunks of {:,} events or more (now {:,}){}.',
        least(_round_two_digits(events / chunks * ratio, 0), file_events)::BIGINT,
        (events / chunks)::BIGINT,
        CASE source
            WHEN 'RNTuple' THEN ', or files with smaller clusters'
            WHEN 'Parquet' THEN ''
            ELSE ', or files with smaller baskets'
        END
    ) AS change,
    'SELECT filename, chunks, events, compressed_bytes, file_bytes, read_seconds FROM files' AS evidence,
    totals.trace_id
FROM _basket_reads AS totals
INNER JOIN _chunk_threads AS cluster USING (trace_id)
WHERE ratio >= $min_ratio
    AND totals.read_seconds * (1 - 1 / ratio) >= $min_share * cluster.mean_nthreads * cluster.wall_seconds
QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY totals.read_seconds DESC, source) = 1;
