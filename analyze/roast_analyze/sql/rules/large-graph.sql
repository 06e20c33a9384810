-- Large graphs, or graphs that are slow to build.
-- The client serializes the data, the scheduler receives and keeps it, and sends it again with each
-- task. The saving is at least the time to send the graph to the scheduler. At most, it also
-- includes the time in which workers had nothing to do before the graph arrived, the dispatch time
-- of its tasks in core_time, and some time for building the first graph. Time that the client spent
-- outside of Dask is not counted. A graph without large data can be slow to build, too: Dask searches
-- arguments for other tasks and computes their tokens, in each call. That time counts if the workers
-- had nothing to do meanwhile.
-- Records: graph_update
-- Source: distributed's warning "Sending large graph of size", from 10 MB
-- Documentation: https://docs.dask.org/en/stable/best-practices.html
-- $min_bytes = 1e7: size of the graph
-- $min_seconds = 0.05: wait that is shown as 0.1 s
-- $min_building_seconds = 0.5: time that the client needs to build graphs without large data
-- $min_building_share = 0.05: the same, as a share of the run
WITH large AS (
    SELECT
        update.trace_id,
        update.stimulus_id,
        update.client,
        update.t,
        update.sent_t,
        update.tasks,
        update.graph_bytes,
        update.t = submitted.t AS is_first,
        max(run.end_t) AS last_end_t
    FROM (SELECT * FROM graph_updates WHERE graph_bytes >= $min_bytes) AS update
    INNER JOIN (SELECT trace_id, min(t) AS t FROM graph_updates GROUP BY trace_id) AS submitted
        USING (trace_id)
    LEFT JOIN _task_runs AS run ON update.trace_id = run.trace_id AND run.end_t <= update.t
    GROUP BY ALL
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
    SEMI JOIN large USING (trace_id, stimulus_id)
    WHERE part.examined > 0
    GROUP BY trace_id
),
dispatched AS (
    SELECT trace_id, sum(seconds) AS seconds
    FROM core_time
    WHERE use = 'dispatch' AND prefix IN (
        SELECT task.prefix FROM raw.task AS task SEMI JOIN large USING (trace_id, stimulus_id)
    )
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
outside_dask AS (
    SELECT
        ways.trace_id,
        sum(least(activity.stop_t, ways.t) - greatest(activity.start_t, ways.from_t)) AS seconds
    FROM ways
    INNER JOIN client_activity AS activity
        ON ways.trace_id = activity.trace_id
        AND ways.client = activity.client
        AND activity.activity = 'own'
        AND activity.start_t < ways.t
        AND activity.stop_t > ways.from_t
    WHERE ways.from_t < ways.t
    GROUP BY ways.trace_id
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
-- Times without tasks before graphs are sent; several graphs can end the same one.
before_graphs AS (
    SELECT trace_id, client, from_t, max(t) AS t, sum(tasks) AS tasks
    FROM (
        SELECT
            update.trace_id,
            update.client,
            update.t,
            update.tasks,
            coalesce(max(attempt.end_t), any_value(run.start_t)) AS from_t
        FROM graph_updates AS update
        INNER JOIN _cluster_size AS run USING (trace_id)
        LEFT JOIN _task_runs AS attempt
            ON update.trace_id = attempt.trace_id AND attempt.end_t <= update.t
        GROUP BY update.trace_id, update.stimulus_id, update.client, update.t, update.tasks
    )
    WHERE trace_id NOT IN (SELECT trace_id FROM large)
    GROUP BY ALL
),
built AS (
    SELECT
        trace_id,
        max_by("function", activity_seconds) AS "function",
        sum(activity_seconds) AS seconds
    FROM (
        SELECT
            before.trace_id,
            activity."function",
            sum(least(activity.stop_t, before.t) - greatest(activity.start_t, before.from_t))
                AS activity_seconds
        FROM before_graphs AS before
        INNER JOIN client_activity AS activity
            ON before.trace_id = activity.trace_id
            AND before.client = activity.client
            AND activity.activity = 'dask'
            AND activity.start_t < before.t
            AND activity.stop_t > before.from_t
        GROUP BY before.trace_id, activity."function"
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
    built."function" AS entity,
    'high' AS confidence,
    format(
        'The client needed {:.1f} s to build graphs, mostly in {}, while the workers had nothing to do.',
        built.seconds, built."function"
    ) AS sentence,
    built.seconds * mean_nthreads AS core_seconds,
    0.6 * built.seconds AS wall_seconds_min,
    1.1 * built.seconds AS wall_seconds_max,
    'Pass large arguments once, as dask.delayed(value, traverse=False) or with client.scatter, instead of to'
    ' each call; or build fewer and larger tasks.' AS change,
    'SELECT "function", activity, start_t, seconds, cpu_seconds FROM client_activity ORDER BY start_t'
        AS evidence,
    built.trace_id
FROM built
INNER JOIN _run_size USING (trace_id)
WHERE built.seconds >= greatest($min_building_seconds, $min_building_share * run_seconds);
