-- Long merges of chunk results.
-- Merging small histograms takes less than 1 % of the compute time. A merge of large results takes long,
-- since it reads, adds and writes each bin of each of them. coffea compresses results with LZ4, unless
-- compression=None: each merge decompresses its inputs and compresses its result, and sizes in the trace
-- are those of compressed results. The time in which other threads are idle during the last merges
-- belongs to rule low-parallelism. How much smaller the results can be is not known from a trace.
-- Records: transition
-- Applies: EXISTS (FROM _task_runs WHERE role = 'merge')
-- Explains: dependencies, tail, transfer
-- Source: compute time of coffea's merges, see view task_roles
-- Documentation: https://coffea-hep.readthedocs.io/en/latest/api/coffea.processor.DaskExecutor.html
-- $min_share = 0.1: share of merges in the compute time of all tasks
-- $usual_share = 0.02: the same with small results, which is not saved
-- $small_fan_in = 10: inputs of a merge, below which merges are merged again several times
-- $least_saved = 0.5: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
WITH totals AS (
    SELECT
        trace_id,
        coalesce(sum(compute_seconds), 0) AS all_seconds,
        sum(compute_seconds) FILTER (role = 'merge') AS seconds,
        count(*) FILTER (role = 'merge') AS merges,
        avg(compute_seconds) FILTER (role = 'chunk' AND outcome = 'memory') AS chunk_seconds,
        avg(nbytes) FILTER (role = 'chunk' AND outcome = 'memory') AS chunk_bytes,
        -- Compressed results have no other type.
        bool_and(typename = 'bytes') FILTER (role = 'chunk' AND outcome = 'memory') AS is_compressed,
        greatest(
            max(end_t) FILTER (role = 'merge') - max(end_t) FILTER (role = 'chunk'), 0
        ) AS last_seconds
    FROM _task_runs
    GROUP BY trace_id
    HAVING seconds >= $min_share * all_seconds
),
merges AS (
    SELECT trace_id, key, task.dependencies
    FROM _tasks AS task
    SEMI JOIN (FROM _coffea_roles WHERE role = 'merge') AS merges USING (trace_id, key)
),
merged_again AS (
    SELECT DISTINCT trace_id
    FROM (SELECT trace_id, unnest(dependencies) AS key FROM merges)
    SEMI JOIN merges USING (trace_id, key)
),
fan_ins AS (
    SELECT trace_id, max(len(dependencies)) AS fan_in
    FROM merges
    SEMI JOIN merged_again USING (trace_id)
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'medium' AS confidence,
    concat(
        format(
            '{} of chunk results took {:,.1f} s, {:.0f} % of the compute time of all tasks{}.',
            CASE merges WHEN 1 THEN 'One merge' ELSE merges || ' merges' END,
            seconds, 100 * seconds / all_seconds,
            coalesce(
                format(
                    ': {} s each, beside {} s of a chunk',
                    _three_digits(seconds / merges), _three_digits(chunk_seconds)
                ),
                ''
            )
        ),
        format(' A chunk result has {} on average', _byte_size(chunk_bytes)),
        CASE
            WHEN is_compressed
                THEN ', compressed by coffea: in memory it is larger, and each merge decompresses it'
        END,
        CASE WHEN chunk_bytes IS NOT NULL THEN '.' END
    ) AS sentence,
    seconds - $usual_share * all_seconds AS core_seconds,
    $least_saved * core_seconds / cluster.peak_nthreads AS wall_seconds_min,
    -- The last merges do not run on all threads.
    core_seconds / cluster.mean_nthreads + last_seconds AS wall_seconds_max,
    concat(
        'Return smaller results from the processor (fewer bins, categories or systematic variations per'
        ' histogram), or use fewer and larger chunks.',
        CASE
            WHEN fan_in < $small_fan_in
                THEN format(' With a larger treereduction (now {}), fewer results are merged again.', fan_in)
        END
    ) AS change,
    'SELECT role, tasks, compute_seconds, compute_share, mean_compute_seconds, output_bytes FROM task_roles'
        AS evidence,
    trace_id
FROM totals
INNER JOIN _run_size AS cluster USING (trace_id)
LEFT JOIN fan_ins USING (trace_id);
