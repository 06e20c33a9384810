-- More workers than the work can use.
-- With fewer threads, periods in which the run used more than these take longer. The recommended number
-- of workers is the smallest one with which the run hardly takes longer. Times without a graph are not
-- counted; threads whose use is unknown count as used. Workers that tasks may not use belong to rules
-- restricted-tasks and unplaceable-tasks. A worker computes methods of actors one at a time, whatever threads it
-- has: how many workers a run with much of them needs is not known (rule actor-methods).
-- Explains: tail, dependencies, imbalance
-- Source: Sparklens, "ideal number of executors"; Amdahl's law
-- Documentation: https://docs.dask.org/en/stable/adaptive.html
-- $max_slowdown = 1.05: duration with fewer workers relative to the run
-- $max_share = 0.75: recommended relative to present number of threads
-- $max_restricted_share = 0.05: saving without restrictions of tasks, relative to the run
-- $long_share = 0.5: compute time of one task, relative to the run, from which it is named
-- $max_actor_share = 0.05: sampled time of methods of actors, relative to the wall time of the run
WITH buckets AS (
    SELECT
        trace_id,
        t,
        busy_seconds + assigned_seconds + unknown_seconds AS used_seconds,
        seconds - workless_seconds AS active_seconds
    FROM _bucket_uses
),
times AS (
    SELECT
        trace_id,
        -- Duration of the part of the bucket with a graph, if all threads are present.
        active_seconds / peak_nthreads AS duration_seconds,
        used_seconds / active_seconds * peak_nthreads AS used_threads,
        peak_nthreads
    FROM buckets
    INNER JOIN _run_size USING (trace_id)
    WHERE active_seconds > 0
),
sizes AS (
    SELECT
        trace_id,
        peak_nthreads,
        greatest(1, peak_nthreads / peak_workers) AS worker_threads,
        unnest(
            list_distinct(list_transform(
                range(1, 41), lambda part: greatest(1, ceil(peak_workers * part / 40))::BIGINT
            ))
        ) AS n_workers
    FROM _cluster_size
    WHERE peak_workers > 1
),
durations AS (
    SELECT
        sizes.trace_id,
        sizes.n_workers,
        any_value(sizes.n_workers * sizes.worker_threads / sizes.peak_nthreads) AS share,
        sum(duration_seconds * greatest(1, used_threads / (n_workers * worker_threads))) AS seconds,
        sum(duration_seconds) AS now_seconds,
        sum(duration_seconds * used_threads) / sum(duration_seconds) AS used_threads
    FROM sizes
    INNER JOIN times USING (trace_id)
    GROUP BY sizes.trace_id, sizes.n_workers
),
enough AS (
    SELECT trace_id, min(n_workers) AS n_workers, min_by(share, n_workers) AS share, any_value(used_threads) AS used_threads
    FROM durations
    WHERE seconds <= $max_slowdown * now_seconds
    GROUP BY trace_id
    HAVING min_by(share, n_workers) <= $max_share
)
SELECT
    NULL::VARCHAR AS entity,
    'medium' AS confidence,
    format(
        'The work used {:.1f} of {} threads on average; with {} the run would hardly take longer.{}', used_threads, peak_nthreads,
        CASE
            WHEN threads.least = threads.most THEN format('{} of the {} workers', enough.n_workers, peak_workers)
            ELSE format('{:.0f} of them', share * peak_nthreads)
        END,
        coalesce(
            format(' One task of {} took {:.1f} s of the {:.1f} s of the run.', longest.prefix, longest.seconds, run_seconds),
            ''
        )
    ) AS sentence,
    (1 - share) * core_seconds AS core_seconds,
    0.0::DOUBLE AS wall_seconds_min,
    0.0::DOUBLE AS wall_seconds_max,
    coalesce(
        format(
            'Split the longest task of {} into parts that run in parallel, for example with more partitions, if it can be'
            ' split. ', longest.prefix
        ),
        ''
    ) || CASE
        WHEN NOT settings.has_scheduler
            THEN format('Use {} workers of the executor (now {})', enough.n_workers, peak_workers)
        WHEN threads.least = threads.most THEN format('Use n_workers={} (now {})', enough.n_workers, peak_workers)
        ELSE format(
            'Use workers with {:.0f} threads in all (now {}, on {} workers with {} to {} each)', share * peak_nthreads,
            peak_nthreads, peak_workers, threads.least, threads.most
        )
    END || CASE
        WHEN settings.has_scheduler THEN ', or have more independent tasks in flight at a time.'
        ELSE ', or process more chunks at a time.'
    END AS change,
    'SELECT t, category, sum(seconds) AS seconds FROM core_time GROUP BY ALL ORDER BY ALL' AS evidence,
    trace_id
FROM enough
INNER JOIN _cluster_size USING (trace_id)
INNER JOIN _run_settings AS settings USING (trace_id)
INNER JOIN (
    SELECT trace_id, min(nthreads) AS least, max(nthreads) AS most FROM _worker_presence GROUP BY trace_id
) AS threads USING (trace_id)
INNER JOIN (SELECT trace_id, run_seconds FROM _run_size) AS run USING (trace_id)
LEFT JOIN (
    SELECT trace_id, max_by(prefix, compute_seconds) AS prefix, max(compute_seconds) AS seconds
    FROM _task_runs
    WHERE prefix IS NOT NULL
    GROUP BY trace_id
) AS longest ON enough.trace_id = longest.trace_id AND longest.seconds >= $long_share * run_seconds
WHERE trace_id NOT IN (
    SELECT trace_id
    FROM _restricted_work
    WHERE excess_seconds > $max_restricted_share * run_seconds
)
    AND trace_id NOT IN (SELECT trace_id FROM _unplaceable_tasks)
    AND trace_id NOT IN (
        SELECT trace_id
        FROM _actor_calls AS calls
        INNER JOIN _cluster_size AS size USING (trace_id)
        GROUP BY trace_id
        HAVING sum(calls.until_t - calls.from_t) > $max_actor_share * any_value(size.stop_t - size.start_t)
    );
