-- Threads without work.
-- The reason is the largest idle or assigned use in core_time, apart from the time before the first
-- graph and after the last one. The prefix is that of tasks that computed during more than half of
-- this time. Waits for an assigned task to begin are left out while tasks of the worker had seceded, which
-- can have rejoined its threads. The cause is not known, unless one task took much longer than the others of the prefix. It is
-- reported only for runs in which no other finding is more than minor.
-- Source: view core_time
-- Documentation: https://distributed.dask.org/en/stable/efficiency.html
-- $min_share = 0.25: share of the core time
-- $min_ratio = 5: duration of the longest task of this prefix, relative to the median, that is stated
-- $longest_share = 0.5: duration of the longest task relative to the idle time of a thread that is stated
WITH reasons (use, reason, change) AS (
    VALUES
    ('transfer', 'waiting for a transfer', 'Move less data between workers.'),
    (
        'dispatch', 'waiting for an assigned task to begin',
        'Look at the event loops of the workers and of the scheduler (view stalls) and at their CPU use.'
    ),
    ('paused worker', 'paused workers', 'Give the workers more memory.'),
    (
        'scheduler', 'waiting for the scheduler',
        'Look at the event loop of the scheduler (views stalls and scheduler_samples).'
    ),
    (
        'imbalance', 'ready tasks were queued on other workers',
        'Look for restrictions to some workers (view restrictions) and for one that has most of the tasks.'
    ),
    ('dependencies', 'waiting for dependencies', 'Split the tasks that others wait for, or use fewer workers.'),
    (
        'tail', 'fewer tasks left than threads',
        'If some tasks take much longer than others, split them; otherwise use fewer workers.'
    ),
    ('between graphs', 'no graph was submitted', 'Submit the next graph earlier.')
),
waits AS (
    SELECT trace_id, t, use, sum(seconds) AS seconds
    FROM core_time
    WHERE category <> 'busy' AND use IN (SELECT use FROM reasons)
        -- Between the programs of two clients, none submits a graph.
        AND (
            use <> 'between graphs'
            OR (trace_id, t) IN (SELECT (trace_id, t) FROM _bucket_uses WHERE between_seconds > 0)
        )
        -- A task that had seceded can have rejoined the threads, which is not recorded.
        AND NOT (
            use = 'dispatch' AND EXISTS (
                SELECT 1
                FROM _seceded_times AS seceded
                INNER JOIN _core_time_buckets AS bucket USING (trace_id)
                WHERE seceded.trace_id = core_time.trace_id
                    AND seceded.worker = core_time.worker
                    AND seceded.start_t < core_time.t + bucket.width
                    AND seceded.stop_t > core_time.t
            )
        )
    GROUP BY ALL
),
largest AS (
    SELECT trace_id, use, sum(seconds) AS seconds
    FROM waits
    GROUP BY trace_id, use
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY sum(seconds) DESC, use) = 1
),
busy AS (
    SELECT trace_id, t, prefix, sum(seconds) AS seconds
    FROM core_time
    WHERE category = 'busy' AND prefix IS NOT NULL
    GROUP BY ALL
),
-- Part of the idle time during which tasks of a prefix computed on at least one thread.
computing AS (
    SELECT trace_id, prefix, sum(waits.seconds * least(busy.seconds / width, 1)) AS idle_seconds
    FROM busy
    INNER JOIN waits USING (trace_id, t)
    INNER JOIN _core_time_buckets USING (trace_id)
    SEMI JOIN largest ON waits.trace_id = largest.trace_id AND waits.use = largest.use
    GROUP BY trace_id, prefix
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY idle_seconds DESC, prefix) = 1
),
-- One task that takes much longer than the others of the prefix.
longest AS (
    SELECT
        trace_id,
        prefix,
        max(compute_seconds) AS longest_seconds,
        median(compute_seconds) AS median_seconds
    FROM _task_runs
    SEMI JOIN computing USING (trace_id, prefix)
    GROUP BY trace_id, prefix
    HAVING longest_seconds >= $min_ratio * median_seconds
)
SELECT
    computing.prefix AS entity,
    'low' AS confidence,
    concat(
        format(
            'Threads computed nothing for {:,.1f} core-seconds: {}', largest.seconds, reason
        ),
        format(', mostly while {} computed', computing.prefix),
        format(
            ', of which one task took {:.1f} s and the median {:.2g} s', longest.longest_seconds, longest.median_seconds
        ),
        '.',
        CASE WHEN longest.prefix IS NULL THEN ' The cause is not known.' END
    ) AS sentence,
    largest.seconds AS core_seconds,
    0.0::DOUBLE AS wall_seconds_min,
    largest.seconds / mean_nthreads AS wall_seconds_max,
    CASE
        WHEN longest.prefix IS NULL THEN change
        ELSE format(
            'Split the longest tasks of {}: divide their input evenly, such as by repartition() or another key of a shuffle.',
            longest.prefix
        )
    END AS change,
    'SELECT t, use, prefix, sum(seconds) AS seconds FROM core_time GROUP BY ALL ORDER BY t, seconds DESC' AS evidence,
    largest.trace_id
FROM largest
INNER JOIN reasons USING (use)
INNER JOIN _run_size USING (trace_id)
LEFT JOIN computing
    ON largest.trace_id = computing.trace_id AND idle_seconds > largest.seconds / 2
LEFT JOIN longest
    ON computing.trace_id = longest.trace_id
    AND computing.prefix = longest.prefix
    AND longest_seconds >= $longest_share * largest.seconds / greatest(peak_nthreads - 1, 1)
WHERE largest.seconds >= $min_share * run_core_seconds;
