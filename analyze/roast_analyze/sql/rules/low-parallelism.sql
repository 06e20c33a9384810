-- Too little parallelism.
-- The tasks could not have started earlier, because they waited for their own dependencies or came
-- first. The cost is the idle time of the other threads while they ran, according to core_time:
-- independent tasks could use it. Rule long-tail covers tasks that were ready earlier, and tasks whose
-- only dependency was ready earlier, unless they are part of a chain or follow a merge. Chunks are left
-- out, because their number follows from their size. Tasks without dependencies are left out if no other
-- task needs them, or if their client submits them slowly. Chains that run in parallel during the whole
-- run may be all of the available parallelism: whether they can be split is uncertain, whereas fewer
-- workers certainly suffice (rule excess-workers). If a graph has slightly more independent tasks than
-- there are threads, most threads are idle in a second round.
-- Records: transition
-- Explains: dependencies, tail
-- Source: Sparklens, "critical path"; Dask best practices, "Avoid very large graphs"
-- Documentation: https://docs.dask.org/en/stable/graph_manipulation.html
-- $min_inputs = 6: dependencies of a merge
-- $min_steps = 5: number of tasks; fewer can be the end of a tree
-- $min_chains = 1.5: mean number of tasks that run in parallel during the whole run
-- $max_round_ratio = 1.5: tasks per thread, up to which a second round has few tasks
-- $min_round_share = 0.05: idle time of the second round, as a share of the core time
WITH sizes AS (
    SELECT trace_id, stimulus_id, prefix
    FROM raw.task
    INNER JOIN _run_size USING (trace_id)
    WHERE prefix IS NOT NULL
    GROUP BY trace_id, stimulus_id, prefix, peak_nthreads
    HAVING count(*) > peak_nthreads AND count(*) <= $max_round_ratio * peak_nthreads
),
graphs AS (
    SELECT
        task.trace_id,
        task.prefix,
        count(*) AS tasks,
        median(attempt.whole_seconds) AS usual_seconds,
        max(attempt.compute_stop_t) - min(attempt.compute_start_t) AS extent,
        sum(attempt.whole_seconds) AS seconds
    FROM _task_runs AS attempt
    INNER JOIN raw.task AS task ON attempt.submission = task.rowid
    SEMI JOIN sizes
        ON task.trace_id = sizes.trace_id
        AND task.stimulus_id = sizes.stimulus_id
        AND task.prefix = sizes.prefix
    WHERE attempt.outcome = 'memory' AND attempt.attempt = 1 AND attempt.role IS NULL
    GROUP BY task.trace_id, task.stimulus_id, task.prefix
),
rounds AS (
    SELECT
        trace_id,
        prefix,
        count(*) AS graphs,
        sum(tasks) AS tasks,
        max(tasks) AS most_tasks,
        any_value(peak_nthreads) AS nthreads,
        sum(peak_nthreads * extent - seconds) AS idle_seconds
    FROM graphs
    INNER JOIN _run_size USING (trace_id)
    WHERE tasks > peak_nthreads
        -- Two rounds: tasks that depend on each other would take longer.
        AND extent BETWEEN 1.5 * usual_seconds AND 2.5 * usual_seconds
    GROUP BY trace_id, prefix
    HAVING sum(peak_nthreads * extent - seconds) >= $min_round_share * any_value(run_core_seconds)
),
bound AS MATERIALIZED (
    SELECT *, dependencies >= $min_inputs AS has_many_inputs
    FROM _bound_attempts
    WHERE NOT is_single AND (dependencies > 0 OR trace_id NOT IN (SELECT trace_id FROM _slow_submissions))
),
prefixes_of AS (
    SELECT
        trace_id,
        prefix,
        count(*) AS scarce_tasks,
        any_value(role) AS role,
        sum(idle_seconds) AS idle_seconds,
        sum(seconds) AS seconds,
        coalesce(sum(idle_seconds) FILTER (has_many_inputs), 0) > 0.5 * sum(idle_seconds) AS is_merge,
        -- Of a tree, the last merge can have few inputs, although most of the time is that of others.
        if(
            is_merge,
            max_by(dependencies, idle_seconds) FILTER (has_many_inputs),
            max_by(dependencies, idle_seconds)
        ) AS inputs,
        min(dependencies) AS fewest_inputs,
        max(dependencies) AS most_inputs,
        max(seconds) AS longest_seconds,
        max_by(seconds / dependencies, idle_seconds) FILTER (has_many_inputs) AS input_seconds,
        avg((dependencies > 0)::INTEGER) AS dependent_share
    FROM bound
    WHERE prefix IS NOT NULL
        AND NOT EXISTS (
            FROM rounds
            WHERE rounds.trace_id = bound.trace_id AND rounds.prefix = bound.prefix
        )
    GROUP BY trace_id, prefix
    -- The last merges of a tree with a small fan-in are expected.
    HAVING is_merge OR inputs < 2 OR scarce_tasks >= $min_steps
),
-- Fan-in with the shortest time: the work of the tree on all threads, plus the merges of one path.
fan_ins AS (
    SELECT
        trace_id,
        prefix,
        coalesce(
            arg_min(
                fan_in,
                inputs * input_seconds * fan_in / (fan_in - 1) / mean_nthreads
                + fan_in * input_seconds * ceil(log(inputs) / log(fan_in))
            ),
            min(fan_in)
        ) AS fan_in
    FROM prefixes_of
    INNER JOIN _run_size USING (trace_id)
    CROSS JOIN (SELECT unnest([2, 4, 8, 16, 32]) AS fan_in)
    WHERE is_merge AND fan_in < inputs
    GROUP BY trace_id, prefix
)
SELECT
    prefix AS entity,
    CASE WHEN is_merge THEN 'high' WHEN is_steady THEN 'low' ELSE 'medium' END AS confidence,
    CASE
        WHEN is_merge THEN format(
            '{} of {}, with {} inputs, took {}{:.1f} s, while other threads were idle for {:,.1f} core-seconds.',
            CASE scarce_tasks WHEN 1 THEN 'A task' ELSE scarce_tasks || ' tasks' END,
            prefix, if(fewest_inputs = most_inputs, inputs::VARCHAR, format('{} to {}', fewest_inputs, most_inputs)),
            CASE WHEN scarce_tasks > 1 THEN 'up to ' ELSE '' END, longest_seconds, idle_seconds
        )
        WHEN scarce_tasks = 1 THEN format(
            'A task of {} took {:.1f} s, while other threads were idle for {:,.1f} core-seconds.',
            prefix, seconds, idle_seconds
        )
        WHEN dependent_share > 0.5 THEN format(
            '{} tasks of {} that depend on each other took {:.1f} s, while other threads were idle for'
            ' {:,.1f} core-seconds.',
            scarce_tasks, prefix, seconds, idle_seconds
        )
        ELSE format(
            'There were too few tasks of {} for all threads: other threads were idle for {:,.1f} core-seconds.',
            prefix, idle_seconds
        )
    END AS sentence,
    idle_seconds AS core_seconds,
    CASE WHEN is_merge THEN 0.5 WHEN is_steady THEN 0.0 ELSE 0.4 END * idle_seconds / mean_nthreads AS wall_seconds_min,
    1.1 * idle_seconds / mean_nthreads AS wall_seconds_max,
    CASE
        WHEN is_merge AND role = 'merge' THEN
            format('Merge fewer results at once: treereduction={} (now {}).', fan_in, inputs)
        WHEN _is_shuffle(prefix) THEN
            format(
                '{} is a part of a shuffle, join or rechunking, which exchanges all data: select rows and columns'
                ' before it, use partitions or chunks that later steps need, or avoid it.', prefix
            )
        WHEN is_merge THEN
            format(
                'Merge in a tree with a fan-in of {} instead of {} (split_every={}), if {} can combine partial'
                ' results; otherwise split it into parts that run in parallel.', fan_in, inputs, fan_in, prefix
            )
        WHEN scarce_tasks = 1 THEN format(
            'Split this task of {} into parts that run in parallel, for example with more partitions;'
            ' otherwise use fewer workers.', prefix
        )
        WHEN dependent_share > 0.5 THEN format(
            'Make the tasks of {} independent of each other, or split each into parts that run in parallel;'
            ' otherwise use fewer workers.', prefix
        )
        ELSE format('Split the tasks of {} into more and smaller ones, at least two for each thread.', prefix)
    END AS change,
    format(
        'SELECT key, worker, compute_start_t, compute_seconds FROM task_runs WHERE prefix = ''{}'''
        ' ORDER BY compute_start_t', replace(prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM (
    SELECT
        *,
        dependent_share > 0.5
        AND seconds >= $min_chains * run_seconds AS is_steady
    FROM prefixes_of
    INNER JOIN _run_size USING (trace_id)
)
LEFT JOIN fan_ins USING (trace_id, prefix)
-- A chain can consist of several prefixes: only the largest ones are reported.
QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY idle_seconds DESC) <= 3
UNION ALL BY NAME
SELECT
    prefix AS entity,
    'medium' AS confidence,
    concat(
        CASE graphs
            WHEN 1 THEN format('The {} tasks of {}', tasks, prefix)
            ELSE format('The tasks of {}, up to {} in each of {} graphs,', prefix, most_tasks, graphs)
        END,
        format(
            ' run in two rounds on {} threads. The second round leaves most of them idle: {:,.1f}'
            ' core-seconds.', nthreads, idle_seconds
        )
    ) AS sentence,
    idle_seconds AS core_seconds,
    0.4 * idle_seconds / mean_nthreads AS wall_seconds_min,
    1.1 * idle_seconds / mean_nthreads AS wall_seconds_max,
    format(
        'Split the tasks of {} into more and smaller ones, at least two for each thread, or into as many as'
        ' there are threads.', prefix
    ) AS change,
    format(
        'SELECT key, worker, compute_start_t, compute_seconds FROM task_runs WHERE prefix = ''{}'''
        ' ORDER BY compute_start_t', replace(prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM rounds
INNER JOIN _run_size USING (trace_id);
