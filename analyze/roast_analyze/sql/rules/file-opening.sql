-- Long time to open files.
-- Every chunk opens its file, and a task for each file reads its number of entries. This takes
-- several requests, whatever the size, and dominates with many small files, small chunks or a
-- distant server. The rule does not apply if branches are preloaded, because preloading is part of
-- opening. The time before a file is opened counts with it, in which each chunk unpickles the processor. The samples of
-- coffea's function around it are stated beside it if they are many.
-- Records: chunk
-- Source: recorded opening times of chunks, and tasks that read metadata
-- Documentation: https://uproot.readthedocs.io/en/latest/basic.html#opening-a-file
-- $min_share = 0.25: opening relative to the compute time of chunks and metadata tasks
-- $good_share = 0.05: share that larger files or chunks can reach
-- $min_counting_share = 0.25: counting entries, relative to opening, from which keeping them is advised
-- $min_unpickling_share = 0.15: samples of coffea's function, relative to opening, from which they are stated
-- $small_file_chunks = 2: chunks of a file with few of them
-- $least_saved = 0.7: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.6: ratio of the largest saving to the cost; calibrated as well
WITH chunk AS (
    SELECT
        trace_id,
        count(*) AS chunks,
        count(DISTINCT filename) AS files,
        count(DISTINCT dataset) AS datasets,
        sum(events) AS events,
        sum(compute_seconds) AS seconds,
        coalesce(bool_and(source IN ('TTree', 'RNTuple')), true) AS is_root,
        avg(open_seconds) FILTER (NOT is_warming_up) AS open_seconds
    FROM _chunks
    WHERE is_first_result AND from_checkpoint IS NOT TRUE
    GROUP BY trace_id
    HAVING NOT _is_preloaded(median(read_seconds / nullif(branches_read, 0)))
),
metadata AS (
    -- The first task of each worker also pays for imports.
    SELECT
        trace_id,
        count(DISTINCT key) AS files,
        count(*) * quantile_cont(compute_seconds, 0.25) AS seconds
    FROM _task_runs
    SEMI JOIN (FROM _coffea_keys WHERE role = 'file metadata') AS keys USING (trace_id, key)
    -- Of a file that could not be read, the time is that of a failure, such as a timeout.
    ANTI JOIN _unread_files AS unread USING (trace_id, key)
    WHERE outcome = 'memory'
    GROUP BY trace_id
),
-- Innermost in coffea's function around the processor, or interrupted or called there.
unpickling AS (
    SELECT trace_id, sum(seconds) AS seconds
    FROM _busy_time
    WHERE dataset IS NOT NULL AND contains(detail, '_work_function (coffea/')
    GROUP BY trace_id
),
totals AS (
    SELECT
        chunk.*,
        coalesce(metadata.seconds, 0) AS metadata_seconds,
        metadata.files AS counted_files,
        chunk.chunks * chunk.open_seconds AS all_open_seconds,
        all_open_seconds + metadata_seconds AS opening_seconds,
        opening_seconds / (chunk.seconds + metadata_seconds) AS share,
        -- With files or chunks larger by this factor, opening takes $good_share.
        share / (1 - share) / $good_share AS factor,
        chunk.chunks <= $small_file_chunks * chunk.files AS is_small_files
    FROM chunk
    LEFT JOIN metadata USING (trace_id)
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    format(
        'Opening {}, for {}{}{}, takes {:.1f} s, {:.0f} % of the compute time of chunks{}: {:.2g} s for each chunk.',
        _counted(files, 'file'), _counted(chunks, 'chunk'),
        -- A run that stops early counts the entries of all files.
        CASE WHEN metadata_seconds > 0
            THEN format(', and {} to count {} entries', _counted(counted_files, 'file'), if(counted_files = 1, 'its', 'their'))
            ELSE '' END,
        if(unpickling.seconds IS NULL, '', ', and what precedes it in coffea''s function'),
        opening_seconds, 100 * share,
        CASE WHEN metadata_seconds > 0 THEN ' and of counting together' ELSE '' END, totals.open_seconds
    )
    || coalesce(
        format(
            ' In {:.1f} sampled seconds, tasks were in coffea''s own function, which unpickles the processor before it opens'
            ' the file.',
            unpickling.seconds
        ),
        ''
    ) AS sentence,
    (CASE WHEN is_small_files THEN opening_seconds ELSE all_open_seconds END) * (1 - 1 / factor)
        AS core_seconds,
    $least_saved * core_seconds / cluster.nthreads AS wall_seconds_min,
    -- Reading a chunk also begins with requests that do not depend on its size.
    least($most_saved * core_seconds / cluster.mean_nthreads, cluster.wall_seconds) AS wall_seconds_max,
    CASE
        WHEN metadata_seconds >= $min_counting_share * opening_seconds
            THEN 'Keep what was counted for later runs: the result of coffea.dataset_tools.preprocess, or a metadata_cache'
            ' of Runner. '
        ELSE ''
    END
    || CASE
        WHEN unpickling.seconds IS NOT NULL
            THEN 'If the processor contains large tables, load them once in each worker instead. '
        ELSE ''
    END
    || CASE
        WHEN is_small_files AND files > datasets
            THEN format(
                'Merge the files{} into about {} of {:,} events (now {} of {:,}).',
                CASE WHEN is_root THEN ', with hadd for example,' ELSE '' END,
                -- At least one of each dataset.
                greatest(round(files / factor), datasets, 1)::BIGINT,
                _round_two_digits(events / greatest(round(files / factor), datasets, 1), 0)::BIGINT,
                files, (events / files)::BIGINT
            )
        WHEN is_small_files THEN 'Read the files from a place near the workers.'
        ELSE format(
            'Use chunks of about {:,} events (now {:,}), up to whole files.',
            least(_round_two_digits(events / chunks * factor, 0), events / files)::BIGINT,
            (events / chunks)::BIGINT
        )
    END AS change,
    'SELECT filename, chunks, events, open_seconds, compute_seconds FROM files' AS evidence,
    totals.trace_id
FROM totals
INNER JOIN _chunk_threads AS cluster USING (trace_id)
LEFT JOIN unpickling
    ON totals.trace_id = unpickling.trace_id
    AND unpickling.seconds >= $min_unpickling_share * opening_seconds
WHERE share >= $min_share AND factor > 1;
