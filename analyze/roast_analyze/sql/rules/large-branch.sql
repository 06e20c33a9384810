-- A branch that is most of what is read.
-- One of several branches has most of the bytes and takes much of the time of the chunks. Whether the result
-- needs all of it is not recorded. Reading is lazy: samples of the profiler show which own function the reading
-- begins in, of this and of the other branches.
-- Records: chunk
-- Applies: EXISTS (FROM raw.chunk WHERE len(measured.branches) >= $min_branches)
-- Source: bytes and seconds of each branch, in the records of chunks
-- Documentation: https://coffea-hep.readthedocs.io/en/latest/notebooks/nanoevents.html
-- $min_branches = 2: branches that are read
-- $min_ratio = 5: ratio to the bytes of the next branch
-- $min_byte_share = 0.5: share of the bytes that are read
-- $min_time_share = 0.1: time of reading the branch, as a share of that of the chunks
-- $reader_share = 0.5: share of the sampled reading from which a function is named
WITH columns AS (
    SELECT
        trace_id,
        branch,
        sum(compressed_bytes) AS nbytes,
        sum(read_seconds) AS read_seconds,
        sum(sum(compressed_bytes)) OVER (PARTITION BY trace_id) AS all_bytes,
        sum(sum(read_seconds)) OVER (PARTITION BY trace_id) AS all_seconds,
        count(*) OVER (PARTITION BY trace_id) AS branches,
        lead(sum(compressed_bytes)) OVER (PARTITION BY trace_id ORDER BY sum(compressed_bytes) DESC) AS next_bytes
    FROM branches
    GROUP BY trace_id, branch
),
found AS (
    SELECT columns.*
    FROM columns
    INNER JOIN _chunk_threads AS chunks USING (trace_id)
    WHERE branches >= $min_branches
        AND nbytes >= greatest($min_byte_share * all_bytes, $min_ratio * next_bytes)
        AND read_seconds >= $min_time_share * chunks.seconds
),
reading AS (
    SELECT
        trace_id,
        list_filter(
            frames,
            lambda frame: NOT regexp_matches(frame.filename, '(site|dist)-packages|[/\\]lib[/\\]python3|roast_recorder|^<')
        )[-1] AS reader,
        sum(seconds) AS seconds
    FROM profile_stacks
    SEMI JOIN found USING (trace_id)
    WHERE profiler = 'dask' AND list_bool_or(
        list_transform(frames, lambda frame: regexp_matches(frame.filename, '[/\\]uproot[/\\](source|models|behaviors)[/\\]'))
    )
    GROUP BY ALL
),
readers AS (
    SELECT trace_id, reader
    FROM reading
    QUALIFY seconds >= $reader_share * sum(seconds) OVER (PARTITION BY trace_id) AND reader IS NOT NULL
)
SELECT
    branch AS entity,
    'low' AS confidence,
    format(
        'Branch {} is {} of {} that were read from {} branches ({:.0f} %), and {:,.1f} of {:,.1f} core-seconds of'
        ' reading.{}',
        branch, _byte_size(nbytes), _byte_size(all_bytes), branches, 100 * nbytes / all_bytes, read_seconds, all_seconds,
        coalesce(format(' Most of the sampled reading begins in {}.', _frame_place(reader)), '')
    ) AS sentence,
    read_seconds AS core_seconds,
    0.0::DOUBLE AS wall_seconds_min,
    least(1.2 * read_seconds / chunks.mean_nthreads, chunks.wall_seconds) AS wall_seconds_max,
    format(
        'If the result needs {} in few chunks or not at all, read it only there: reading begins where the processor'
        ' first uses it. Otherwise keep it in smaller types, or with a faster compression, in a skim.',
        branch
    ) AS change,
    'SELECT branch, sum(compressed_bytes) AS bytes, sum(read_seconds) AS read_seconds FROM branches'
    ' GROUP BY branch ORDER BY bytes DESC' AS evidence,
    found.trace_id
FROM found
INNER JOIN _chunk_threads AS chunks USING (trace_id)
LEFT JOIN readers USING (trace_id);
