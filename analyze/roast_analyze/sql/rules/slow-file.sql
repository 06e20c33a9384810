-- File with slow chunks.
-- Its chunks take longer than those of other files of the dataset, after the effects of chunk size
-- and worker are removed (column is_slow of view files). If reading explains the difference, the
-- storage of the file is the cause; if neither reading nor CPU time explains it, the processor waits.
-- In a file with few chunks, each chunk, or the input of each,
-- must be much slower than most chunks of other files, on at least two workers. First chunks of
-- workers are compared only with each other.
-- Records: chunk
-- Applies: (SELECT count(DISTINCT (filename, treename)) FROM _chunks WHERE is_first_result AND events > 0) > 1
-- Explains: tail, dependencies
-- Source: Tukey's median polish of chunk durations, see view files
-- Documentation: https://uproot.readthedocs.io/en/latest/basic.html
-- $min_ratio = 1.5: time per event relative to other files, once the first chunks of workers are left out
-- $min_chunks = 5: chunks that are compared in this way
-- $few_ratio = 3: time per event of each chunk of a file with fewer, relative to the upper quartile of other files
-- $min_read_share = 0.5: share of the excess time that reading explains if storage is the cause
-- $min_wait_share = 0.5: share of the excess time that is neither reading nor CPU time if the processor waits
-- $least_saved = 0.5: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.2: ratio of the largest saving to the cost; calibrated as well
WITH io AS (
    SELECT
        trace_id,
        dataset,
        filename,
        treename,
        sum(coalesce(open_seconds, 0) + coalesce(read_seconds, 0)) / sum(events) AS event_seconds,
        -- Null unless CPU time and reading are known of all chunks.
        CASE WHEN count(*) = count(cpu_seconds + read_seconds) THEN sum(cpu_seconds) / sum(events) END
            AS cpu_event_seconds,
        sum(bytes_read)
            / nullif(sum(coalesce(open_seconds, 0) + coalesce(read_seconds, 0)), 0) AS rate,
        max(compute_seconds) AS longest_seconds,
        count(*) AS chunks,
        count(*) FILTER (NOT is_warming_up) AS warm_chunks,
        -- The first chunks of a worker also pay for imports.
        median(compute_seconds / events) FILTER (NOT is_warming_up) AS warm_event_seconds
    FROM _chunks
    WHERE is_first_result AND events > 0
    GROUP BY ALL
),
compared AS (
    SELECT
        io.*,
        event_seconds - median(event_seconds) OVER same AS excess_event_seconds,
        cpu_event_seconds - median(cpu_event_seconds) OVER same AS excess_cpu_event_seconds,
        median(rate) OVER same AS usual_rate,
        warm_event_seconds / median(warm_event_seconds) OVER same AS ratio
    FROM io
    WINDOW same AS (PARTITION BY io.trace_id, io.dataset)
),
candidates AS (
    SELECT io.trace_id, io.dataset, io.filename, io.treename
    FROM io
    INNER JOIN files AS file
        ON file.trace_id = io.trace_id
        AND file.dataset IS NOT DISTINCT FROM io.dataset
        AND file.filename IS NOT DISTINCT FROM io.filename
        AND file.treename IS NOT DISTINCT FROM io.treename
    WHERE io.chunks >= 2
        AND io.warm_chunks < $min_chunks
        AND file.workers > 1
        AND file.relative_duration >= $min_ratio
),
durations AS (
    SELECT
        trace_id,
        dataset,
        filename,
        treename,
        seq,
        local_id,
        is_warming_up,
        compute_seconds / events AS event_seconds,
        (coalesce(open_seconds, 0) + coalesce(read_seconds, 0)) / events AS input_event_seconds
    FROM _chunks
    WHERE is_first_result AND events > 0
),
few AS (
    SELECT
        chunk.trace_id,
        chunk.dataset,
        chunk.filename,
        chunk.treename,
        any_value(chunk.event_seconds) / quantile_cont(other.event_seconds, 0.75) AS ratio,
        any_value(chunk.input_event_seconds)
            / nullif(quantile_cont(other.input_event_seconds, 0.75), 0) AS input_ratio
    FROM durations AS chunk
    SEMI JOIN candidates
        ON chunk.trace_id = candidates.trace_id
        AND chunk.dataset IS NOT DISTINCT FROM candidates.dataset
        AND chunk.filename = candidates.filename
        AND chunk.treename IS NOT DISTINCT FROM candidates.treename
    INNER JOIN durations AS other
        ON chunk.trace_id = other.trace_id
        AND chunk.dataset IS NOT DISTINCT FROM other.dataset
        AND chunk.is_warming_up = other.is_warming_up
        AND chunk.filename <> other.filename
    GROUP BY
        chunk.trace_id, chunk.dataset, chunk.filename, chunk.treename, chunk.seq, chunk.local_id
    HAVING count(*) > 1
),
few_slow AS (
    SELECT
        trace_id,
        dataset,
        filename,
        treename,
        min(ratio) AS ratio,
        min(input_ratio) AS input_ratio
    FROM few
    GROUP BY ALL
    HAVING count(*) > 1
        AND (ratio >= $few_ratio OR (ratio >= $min_ratio AND input_ratio >= $few_ratio))
),
slow AS (
    SELECT
        file.* EXCLUDE (relative_duration),
        coalesce(file.relative_duration, io.ratio) AS relative_duration,
        file.compute_seconds * (1 - 1 / coalesce(file.relative_duration, io.ratio))
            AS excess_seconds,
        io.rate,
        io.usual_rate,
        io.longest_seconds,
        coalesce(io.excess_event_seconds * file.events > $min_read_share * excess_seconds, false)
            AS is_read_slowly,
        excess_seconds - file.events
            * (greatest(io.excess_event_seconds, 0) + greatest(io.excess_cpu_event_seconds, 0))
            AS excess_wait_seconds,
        io.excess_cpu_event_seconds IS NOT NULL
            AND excess_wait_seconds >= $min_wait_share * excess_seconds AS is_waiting
    FROM files AS file
    INNER JOIN compared AS io
        ON file.trace_id = io.trace_id
        AND file.dataset IS NOT DISTINCT FROM io.dataset
        AND file.filename IS NOT DISTINCT FROM io.filename
        AND file.treename IS NOT DISTINCT FROM io.treename
    LEFT JOIN few_slow AS few
        ON file.trace_id = few.trace_id
        AND file.dataset IS NOT DISTINCT FROM few.dataset
        AND file.filename IS NOT DISTINCT FROM few.filename
        AND file.treename IS NOT DISTINCT FROM few.treename
    WHERE (file.is_slow AND io.ratio >= $min_ratio AND io.warm_chunks >= $min_chunks)
        OR few.filename IS NOT NULL
)
SELECT
    slow.filename AS entity,
    CASE WHEN is_read_slowly THEN 'high' ELSE 'medium' END AS confidence,
    format(
        'Chunks of {} take {:.1f} times as long as those of other files of {}{}. ',
        parse_filename(slow.filename), relative_duration, coalesce(slow.dataset, 'the dataset'),
        CASE WHEN slow.workers > 1 THEN format(', on {} workers', slow.workers) ELSE '' END
    ) || CASE
        WHEN is_read_slowly
            THEN coalesce(
                format(
                    'The file is read at {}/s per thread, others at {}/s.', _byte_size(rate), _byte_size(usual_rate)
                ),
                'Opening and reading the file take longer.'
            )
        WHEN is_waiting THEN format(
            'Neither reading nor CPU time explains this: for {:.1f} s, the threads waited in the processor.',
            excess_wait_seconds
        )
        ELSE 'Reading does not explain this: the events of the file cost more.'
    END AS sentence,
    excess_seconds AS core_seconds,
    $least_saved * excess_seconds / cluster.nthreads AS wall_seconds_min,
    -- Its chunks can be the last ones of the cluster.
    least(
        $most_saved * excess_seconds / cluster.mean_nthreads + longest_seconds * (1 - 1 / relative_duration),
        excess_seconds,
        cluster.wall_seconds
    ) AS wall_seconds_max,
    CASE
        WHEN is_read_slowly
            THEN 'Read another copy of ' || slow.filename || ', or copy it to faster storage.'
        WHEN is_waiting
            THEN format(
                'Find out what the processor waits for in {}: a lock, a remote call, a sleep, or threads of its'
                ' own.', slow.filename
            )
        ELSE 'Find out why its events cost more. If the cost is inherent, submit this file first, so that its'
            ' chunks do not run last; this saves less.'
    END AS change,
    format(
        'SELECT filename, relative_duration, bytes_per_second, open_seconds, read_seconds, cpu_seconds FROM files'
        ' WHERE dataset IS NOT DISTINCT FROM {} ORDER BY relative_duration DESC',
        coalesce('''' || replace(slow.dataset, '''', '''''') || '''', 'NULL')
    ) AS evidence,
    slow.trace_id
FROM slow
INNER JOIN _chunk_threads AS cluster USING (trace_id);
