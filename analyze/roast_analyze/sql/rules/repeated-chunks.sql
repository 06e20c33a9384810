-- Chunks processed several times.
-- Several runs of coffea over the same files, such as one for each systematic variation, open and read each chunk
-- again. At least the time of opening and reading is saved if one run does it all; at most also that of processing,
-- which the runs may share. Runs with other chunk sizes have other chunks, and are not compared.
-- Records: chunk
-- Source: results for the same dataset, file and entries
-- Documentation: https://coffea-hep.readthedocs.io/en/latest/notebooks/processor.html
-- $min_repeated_share = 0.5: chunks with several results, relative to all chunks
-- $min_share = 0.1: compute time of the repetitions, relative to that of all chunks
-- $least_saved = 0.7: part of the time of opening and reading that is saved at least; assumed
WITH ranges AS (
    SELECT
        trace_id,
        count(*) AS results,
        sum(compute_seconds) AS seconds,
        sum(coalesce(open_seconds, 0) + coalesce(read_seconds, 0)) AS reading_seconds
    FROM _chunks
    WHERE is_first_result AND from_checkpoint IS NOT TRUE AND filename IS NOT NULL
    GROUP BY trace_id, dataset, filename, treename, entry_start, entry_stop
),
totals AS (
    SELECT
        trace_id,
        count(*) AS ranges,
        count(*) FILTER (results > 1) AS repeated,
        median(results) FILTER (results > 1)::BIGINT AS times,
        sum(seconds) AS all_seconds,
        sum(seconds * (results - 1) / results) AS seconds,
        sum(reading_seconds * (results - 1) / results) AS reading_seconds
    FROM ranges
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    format(
        '{:,} of {:,} chunks were processed several times ({} times in the median), as by several runs over the same'
        ' files: the repetitions took {:,.1f} core-seconds, {:,.1f} of them to open and read the files.',
        repeated, ranges, times, totals.seconds, reading_seconds
    ) AS sentence,
    totals.seconds AS core_seconds,
    $least_saved * reading_seconds / cluster.nthreads AS wall_seconds_min,
    least(totals.seconds / cluster.mean_nthreads, cluster.wall_seconds) AS wall_seconds_max,
    'If the runs differ in a variation or a selection, do all of them in one run: read each chunk once, select once, and'
    ' fill a histogram with an axis for the variations.' AS change,
    'SELECT filename, entry_start, entry_stop, count(*) AS results FROM chunks WHERE outcome = ''memory'' GROUP BY ALL'
        AS evidence,
    totals.trace_id
FROM totals
INNER JOIN _chunk_threads AS cluster USING (trace_id)
WHERE repeated >= $min_repeated_share * ranges AND totals.seconds >= $min_share * all_seconds;
