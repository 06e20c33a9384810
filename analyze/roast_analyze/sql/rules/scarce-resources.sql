-- Tasks that wait for a resource of the workers.
-- A worker computes at most as many tasks at a time as it has of the resources that they need. The
-- saving is the difference between the time that all tasks with a resource need at least, and the time
-- that all tasks would take if they were divided evenly among all threads, or that of the longest of
-- these.
-- Records: transition
-- Applies: EXISTS (FROM restrictions WHERE resources IS NOT NULL)
-- Explains: imbalance, tail, dependencies
-- Source: lower bounds of the makespan (Graham 1969); resources in the annotations of tasks
-- Documentation: https://distributed.dask.org/en/stable/resources.html
-- $min_share = 0.05: saving relative to the duration of the run
-- $min_idle_share = 0.3: time of idle threads meanwhile, relative to the saving on all threads
-- $least_saved = 0.4: part of the cost, on all threads, that is saved at least; assumed
-- $most_saved = 1.1: ratio of the largest saving to the cost; assumed
WITH needs AS (
    SELECT
        attempt.trace_id,
        attempt.prefix,
        attempt.whole_seconds AS seconds,
        unnest(map_entries(json_transform(restriction.resources, '"MAP(VARCHAR, DOUBLE)"')), max_depth := 2)
    FROM _task_runs AS attempt
    INNER JOIN (SELECT trace_id, key, resources FROM restrictions WHERE resources IS NOT NULL) AS restriction
        ON attempt.trace_id = restriction.trace_id AND attempt.key = restriction.key
    WHERE attempt.whole_seconds > 0
),
needed AS (
    SELECT
        trace_id,
        key AS resource,
        count(*) AS attempts,
        max_by(prefix, seconds) AS prefix,
        max(seconds) AS longest_seconds,
        sum(seconds * value) AS seconds
    FROM needs
    GROUP BY trace_id, key
),
offers AS (
    SELECT
        trace_id,
        coalesce(removed_t, stop_t) - coalesce(added_t, start_t) AS seconds,
        unnest(map_entries(json_transform(resources, '"MAP(VARCHAR, DOUBLE)"')), max_depth := 2)
    FROM workers
    INNER JOIN _cluster_size USING (trace_id)
    WHERE resources IS NOT NULL
),
offered AS (
    SELECT trace_id, key AS resource, sum(value * seconds) AS amount_seconds
    FROM offers
    GROUP BY trace_id, key
),
uses AS (
    SELECT
        trace_id,
        sum(busy_seconds) AS busy_seconds,
        sum(seconds - busy_seconds - workless_seconds) AS idle_seconds
    FROM _bucket_uses
    GROUP BY trace_id
),
found AS (
    SELECT
        needed.trace_id,
        resource,
        attempts,
        prefix,
        -- Workers join, leave and are replaced.
        amount_seconds / run_seconds AS amount,
        needed.seconds / amount AS least_seconds,
        greatest(busy_seconds / mean_nthreads, longest_seconds) AS even_seconds,
        least_seconds - even_seconds AS excess_seconds,
        idle_seconds,
        mean_nthreads,
        run_seconds
    FROM needed
    INNER JOIN offered USING (trace_id, resource)
    INNER JOIN uses USING (trace_id)
    INNER JOIN _run_size USING (trace_id)
    WHERE amount_seconds > 0
)
SELECT
    resource AS entity,
    'medium' AS confidence,
    format(
        '{:,} attempts, such as those of {}, need the resource {}, of which the workers have {:g}: they take at'
        ' least {:.1f} s, whereas evenly divided work takes {:.1f} s.', attempts, prefix, resource,
        round(amount, 1), least_seconds, even_seconds
    ) AS sentence,
    least(idle_seconds, excess_seconds * mean_nthreads) AS core_seconds,
    $least_saved * excess_seconds AS wall_seconds_min,
    $most_saved * excess_seconds AS wall_seconds_max,
    format(
        'Start workers with more of {} (dask worker --resources) if the hosts have it, or let tasks that do not'
        ' need it run without.', resource
    ) AS change,
    'SELECT prefix, resources, count(*) AS tasks FROM restrictions GROUP BY ALL' AS evidence,
    trace_id
FROM found
WHERE excess_seconds >= $min_share * run_seconds
    AND idle_seconds >= $min_idle_share * excess_seconds * mean_nthreads;
