-- Work in methods of actors.
-- Calls of methods of actors are no tasks: no record counts them, and only the profiler shows that they compute. A worker
-- computes them one at a time, in a thread beside those of its tasks. The time is the sampled one: calls that the
-- profiler missed, coroutines, and methods called within a task of the same worker are not in it. Meanwhile, threads
-- are idle if they have no task.
-- Records: profile
-- Applies: EXISTS (FROM raw.profile WHERE worker IS NOT NULL AND contains(prefix, '.'))
-- Explains: after last result, between graphs, tail, dependencies
-- Source: samples of methods of actors, and idle time of view core_time
-- Documentation: https://distributed.dask.org/en/stable/actors.html
-- $min_share = 0.1: sampled time, relative to the wall time of the run
-- $min_idle_share = 0.1: idle time meanwhile, as a share of the core time, that has an advice
-- $entity_share = 0.6: share of the sampled time that makes one method the entity
WITH calls AS (
    SELECT trace_id, process, worker, method, sum(until_t - from_t) AS seconds
    FROM _actor_calls
    WHERE from_t < until_t
    GROUP BY ALL
),
methods AS (
    SELECT trace_id, method, sum(seconds) AS seconds, count(DISTINCT worker) AS workers
    FROM calls
    GROUP BY trace_id, method
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY sum(seconds) DESC, method) = 1
),
sums AS (
    SELECT
        calls.trace_id,
        sum(calls.seconds) AS seconds,
        count(DISTINCT calls.method) AS methods,
        count(DISTINCT calls.worker) AS workers,
        any_value(calls.worker) AS worker,
        any_value(size.stop_t - size.start_t) AS run_seconds,
        any_value(size.core_seconds) AS core_seconds
    FROM calls
    INNER JOIN _cluster_size AS size USING (trace_id)
    GROUP BY calls.trace_id
    HAVING sum(calls.seconds) >= $min_share * any_value(size.stop_t - size.start_t)
),
-- In a bucket, threads are idle for as long as actors compute, at most.
buckets AS (
    SELECT
        trace_id,
        t,
        width,
        sum(least(until_t, t + width) - greatest(from_t, t)) AS seconds
    FROM (
        SELECT
            trace_id,
            width,
            from_t,
            until_t,
            unnest(list_transform(
                range(
                    greatest(floor((from_t - whole.start_t) / width), 0)::BIGINT,
                    least(ceil((until_t - whole.start_t) / width), buckets)::BIGINT
                ),
                lambda number: whole.start_t + number * width
            )) AS t
        FROM _actor_calls
        INNER JOIN _core_time_buckets AS whole USING (trace_id)
        WHERE from_t < until_t AND from_t < whole.start_t + extent AND until_t > whole.start_t
    )
    GROUP BY ALL
),
idle AS (
    SELECT buckets.trace_id, sum(core.seconds * least(buckets.seconds / buckets.width, 1)) AS seconds
    FROM buckets
    INNER JOIN (
        SELECT trace_id, t, sum(seconds) AS seconds
        FROM core_time
        WHERE use IN ('after last result', 'between graphs', 'tail', 'dependencies')
        GROUP BY ALL
    ) AS core ON buckets.trace_id = core.trace_id AND abs(buckets.t - core.t) < buckets.width / 2
    GROUP BY buckets.trace_id
)
SELECT
    if(methods.seconds >= $entity_share * sums.seconds, methods.method, NULL) AS entity,
    'medium' AS confidence,
    format(
        'In {:.1f} sampled {} {:.1f} s{}, {} ran {}, which {} no task{}.',
        sums.seconds,
        if(sums.workers = 1, 'seconds of the', 'worker-seconds, in a run of'),
        run_seconds,
        if(sums.workers = 1, ' of the run', ''),
        if(sums.workers = 1, 'worker ' || coalesce(names.shown, sums.worker), sums.workers || ' workers'),
        if(
            sums.methods = 1, format('method {} of an actor', methods.method),
            format('methods of actors, {} for {:.1f} s', methods.method, methods.seconds)
        ),
        if(sums.methods = 1, 'is', 'are'),
        if(
            coalesce(idle.seconds, 0) >= 0.05,
            format('. Meanwhile, threads without a task were idle for {:,.1f} core-seconds', idle.seconds), ''
        )
    ) AS sentence,
    idle.seconds AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    if(
        coalesce(idle.seconds, 0) >= $min_idle_share * sums.core_seconds,
        'A worker computes the methods of its actors one at a time. If calls do not depend on each other, divide the state'
        ' among actors on several workers and call them before waiting for results, or compute in tasks instead.',
        'A worker computes the methods of its actors one at a time: times of tasks do not contain them.'
    ) AS change,
    format(
        'SELECT worker, prefix, sum(seconds) AS seconds FROM profile_stacks WHERE prefix = ''{}'' GROUP BY ALL',
        replace(methods.method, '''', '''''')
    ) AS evidence,
    sums.trace_id
FROM sums
INNER JOIN methods USING (trace_id)
LEFT JOIN idle USING (trace_id)
LEFT JOIN _worker_names AS names ON sums.trace_id = names.trace_id AND sums.worker = names.worker;
