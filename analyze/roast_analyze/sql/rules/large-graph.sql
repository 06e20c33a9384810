-- Large graphs, or graphs that are slow to build.
-- The client serializes the data, the scheduler receives and keeps it, and sends it again with each task.
-- Many graphs can be large together, such as those of calls of client.submit with the same model: their
-- cost is the dispatch time of their tasks alone, as other tasks can compute while the client sends one of
-- them. Without other tasks to compare them with, the confidence is medium. For large graphs, the saving is
-- at least the time to send the graph to the scheduler. At most, it also includes the time in which workers
-- had nothing to do before the graph arrived, the dispatch time of its tasks in core_time, and some time
-- for building the first graph. Time that the client spent outside of Dask is not counted. A graph without
-- large data can be slow to build, too: Dask searches arguments for other tasks and computes their tokens,
-- in each call. That time counts if the workers had nothing to do meanwhile. Before the first result, a
-- program also starts up: its modules are imported, and coffea prepares its own graphs. During that time,
-- only time inside functions counts, and none in runs with coffea chunks.
-- Records: graph_update
-- Explains: dispatch, before first graph, between graphs, scheduler
-- Source: distributed's warning "Sending large graph of size", from 10 MB
-- Documentation: https://docs.dask.org/en/stable/best-practices.html
-- $min_bytes = 1e7: size of the graph
-- $min_part_bytes = 1e6: size of each of many graphs that are large together
-- $min_total_bytes = 1e8: size of these graphs together
-- $min_dispatch_seconds = 0.02: time of a thread for each of their tasks, from its assignment to its start; assumed
-- $min_ratio = 3: the same, relative to that of other tasks
-- $least_saved = 0.3: part of this time, on all threads, that is saved at least; assumed
-- $min_seconds = 0.05: wait that is shown as 0.1 s
-- $min_building_seconds = 1: time that the client needs to build graphs without large data
-- $min_building_share = 0.05: the same, as a share of the run
WITH updates AS (
    SELECT
        update.trace_id,
        update.stimulus_id,
        update.client,
        update.t,
        update.sent_t,
        update.tasks,
        update.graph_bytes,
        update.t = min(update.t) OVER (PARTITION BY update.trace_id) AS is_first,
        attempt.end_t AS last_end_t
    FROM graph_updates AS update
    ASOF LEFT JOIN _task_runs AS attempt
        ON update.trace_id = attempt.trace_id AND update.t >= attempt.end_t
),
large AS (FROM updates WHERE graph_bytes >= $min_bytes),
small AS (
    FROM updates
    WHERE graph_bytes BETWEEN $min_part_bytes AND $min_bytes
        AND trace_id NOT IN (SELECT trace_id FROM large)
    QUALIFY sum(graph_bytes) OVER (PARTITION BY trace_id) >= $min_total_bytes
),
layers AS (
    SELECT trace_id, max_by(part."group", part.nbytes * part.tasks / part.examined) AS layer
    FROM (
        SELECT
            trace_id,
            stimulus_id,
            unnest(json_transform(
                value -> '$.groups',
                '[{"group": "VARCHAR", "tasks": "BIGINT", "examined": "BIGINT", "nbytes": "BIGINT"}]'
            )) AS part
        FROM raw.graph_update
    )
    SEMI JOIN (FROM large UNION ALL FROM small) AS sent USING (trace_id, stimulus_id)
    WHERE part.examined > 0
    GROUP BY trace_id
),
dispatched AS (
    SELECT trace_id, sum(seconds) AS seconds
    FROM _core_time
    SEMI JOIN (FROM raw.task SEMI JOIN large USING (trace_id, stimulus_id)) AS task
        USING (trace_id, prefix)
    WHERE use = 'dispatch'
    GROUP BY trace_id
),
-- Several graphs can be sent at the same time.
ways AS (
    SELECT
        *,
        max(t) OVER (
            PARTITION BY trace_id ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_t,
        -- The time before the first graph also includes the start of the client.
        greatest(
            coalesce(least(sent_t, CASE WHEN NOT is_first THEN last_end_t END), t), before_t
        ) AS from_t
    FROM large
),
-- Several graphs can end the same time without tasks.
windows AS (
    SELECT trace_id, client, from_t, t, true AS is_large, false AS is_start
    FROM ways
    WHERE from_t < t
    UNION ALL
    SELECT
        trace_id,
        client,
        coalesce(last_end_t, cluster.start_t) AS from_t,
        max(t),
        false,
        last_end_t IS NULL AS is_start
    FROM updates
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    WHERE trace_id NOT IN (SELECT trace_id FROM large)
    GROUP BY ALL
),
activities AS (
    SELECT
        windows.trace_id,
        windows.is_large,
        windows.is_start,
        activity.activity,
        activity."function",
        sum(least(activity.stop_t, windows.t) - greatest(activity.start_t, windows.from_t))
            AS seconds
    FROM windows
    INNER JOIN client_activity AS activity
        ON windows.trace_id = activity.trace_id
        AND windows.client = activity.client
        AND activity.start_t < windows.t
        AND activity.stop_t > windows.from_t
    GROUP BY ALL
),
outside_dask AS (
    SELECT trace_id, sum(seconds) AS seconds
    FROM activities
    WHERE is_large AND activity = 'own'
    GROUP BY trace_id
),
found AS (
    SELECT
        trace_id,
        count(*) AS graphs,
        max(graph_bytes) AS largest_bytes,
        sum(graph_bytes) AS bytes,
        coalesce(sum(greatest(t - greatest(coalesce(sent_t, t), before_t), 0)), 0) AS sent_seconds,
        sum(greatest(t - from_t, 0)) - coalesce(any_value(outside_dask.seconds), 0) AS waited_seconds
    FROM ways
    LEFT JOIN outside_dask USING (trace_id)
    GROUP BY trace_id
),
-- Dispatch of tasks with data of small graphs, beside that of others.
together AS (
    SELECT
        trace_id,
        any_value(graphs) AS graphs,
        any_value(bytes) AS bytes,
        any_value(graph_bytes) AS graph_bytes,
        sum(dispatch_seconds) FILTER (is_sent) AS seconds,
        seconds / sum(attempts) FILTER (is_sent) AS task_seconds,
        count(*) FILTER (NOT is_sent) > 0 AS is_compared
    FROM (
        SELECT
            trace_id,
            prefix,
            count(*) AS attempts,
            (trace_id, prefix) IN (
                SELECT (task.trace_id, task.prefix)
                FROM raw.task AS task
                SEMI JOIN small USING (trace_id, stimulus_id)
            ) AS is_sent
        FROM _task_runs
        SEMI JOIN small USING (trace_id)
        GROUP BY trace_id, prefix
    )
    LEFT JOIN (
        SELECT trace_id, prefix, sum(seconds) AS dispatch_seconds
        FROM _core_time
        WHERE use = 'dispatch'
        GROUP BY trace_id, prefix
    ) AS dispatch USING (trace_id, prefix)
    INNER JOIN (
        SELECT trace_id, count(*) AS graphs, sum(graph_bytes) AS bytes, median(graph_bytes) AS graph_bytes
        FROM small
        GROUP BY trace_id
    ) AS sent USING (trace_id)
    GROUP BY trace_id
    HAVING task_seconds >= greatest(
        $min_dispatch_seconds,
        $min_ratio * coalesce(sum(dispatch_seconds) FILTER (NOT is_sent) / sum(attempts) FILTER (NOT is_sent), 0)
    )
),
built AS (
    SELECT trace_id, max_by("function", seconds) AS "function", sum(seconds) AS seconds
    FROM activities
    WHERE NOT is_large
        AND trace_id NOT IN (SELECT trace_id FROM together)
        AND activity = 'dask'
        AND NOT (
            is_start
            AND ("function" = '<module>' OR trace_id IN (SELECT trace_id FROM raw.chunk))
        )
    GROUP BY trace_id
)
SELECT
    layers.layer AS entity,
    'high' AS confidence,
    format(
        '{}, with data embedded in tasks, kept the workers waiting for {:.1f} s.',
        CASE graphs
            WHEN 1 THEN 'A graph of ' || _byte_size(bytes)
            ELSE format('{} graphs of {} in total', graphs, _byte_size(bytes))
        END,
        waited_seconds
    ) AS sentence,
    waited_seconds * mean_nthreads + coalesce(dispatched.seconds, 0) AS core_seconds,
    0.6 * sent_seconds AS wall_seconds_min,
    1.3 * (waited_seconds + coalesce(dispatched.seconds, 0) / mean_nthreads) AS wall_seconds_max,
    concat(
        'Pass the data of ', coalesce(layers.layer, 'the tasks'),
        ' with client.scatter, or load it inside of the tasks, instead of storing it in the graph.'
    ) AS change,
    'SELECT t, sent_t, tasks, graph_bytes, update_seconds FROM graph_updates ORDER BY graph_bytes DESC'
        AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
LEFT JOIN layers USING (trace_id)
LEFT JOIN dispatched USING (trace_id)
WHERE waited_seconds >= $min_seconds
UNION ALL BY NAME
SELECT
    layers.layer AS entity,
    if(is_compared, 'high', 'medium') AS confidence,
    format(
        '{} graphs of {} in total ({} each, median), with data embedded in tasks: from assignment to start, threads'
        ' waited {} s for each of these tasks, {:.1f} core-seconds in all.',
        graphs, _byte_size(bytes), _byte_size(graph_bytes), _three_digits(task_seconds), together.seconds
    ) AS sentence,
    together.seconds AS core_seconds,
    $least_saved * together.seconds / mean_nthreads AS wall_seconds_min,
    together.seconds / mean_nthreads AS wall_seconds_max,
    concat(
        'Pass the data of ', coalesce(layers.layer, 'the tasks'),
        ' once with client.scatter if it is the same in each call, or load it inside of the tasks, instead of'
        ' storing it in the graph.'
    ) AS change,
    'SELECT t, tasks, graph_bytes, update_seconds FROM graph_updates ORDER BY t' AS evidence,
    trace_id
FROM together
INNER JOIN _run_size USING (trace_id)
LEFT JOIN layers USING (trace_id)
UNION ALL BY NAME
SELECT
    built."function" AS entity,
    'high' AS confidence,
    format(
        'The client needed {:.1f} s to build graphs, mostly in {}, while the workers had nothing to do.',
        built.seconds, built."function"
    ) AS sentence,
    built.seconds * mean_nthreads AS core_seconds,
    0.6 * built.seconds AS wall_seconds_min,
    1.1 * built.seconds AS wall_seconds_max,
    'Build fewer and larger tasks. If calls have large arguments, pass these once, as dask.delayed(value,'
    ' traverse=False) or with client.scatter.' AS change,
    'SELECT "function", activity, start_t, seconds, cpu_seconds FROM client_activity ORDER BY start_t'
        AS evidence,
    built.trace_id
FROM built
INNER JOIN _run_size USING (trace_id)
WHERE built.seconds >= greatest($min_building_seconds, $min_building_share * run_seconds);
