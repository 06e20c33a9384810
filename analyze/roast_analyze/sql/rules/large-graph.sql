-- Large graphs with embedded data.
-- The client serializes the data, the scheduler receives and keeps it, and sends it again with each
-- task. The saving is at least the time to send the graph to the scheduler. At most, it also
-- includes the time in which workers had nothing to do before the graph arrived, the dispatch time
-- of its tasks in core_time, and some time for building the first graph.
-- Records: graph_update
-- Source: distributed's warning "Sending large graph of size", from 10 MB
-- Documentation: https://docs.dask.org/en/stable/best-practices.html
-- $min_bytes = 1e7: size of the graph
WITH large AS (
    SELECT
        update.trace_id,
        update.stimulus_id,
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
        -- The time before the first graph also includes the start of the client.
        coalesce(least(sent_t, CASE WHEN NOT is_first THEN last_end_t END), t) AS from_t,
        max(t) OVER (
            PARTITION BY trace_id ORDER BY t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_t
    FROM large
),
found AS (
    SELECT
        trace_id,
        count(*) AS graphs,
        max(graph_bytes) AS largest_bytes,
        sum(graph_bytes) AS bytes,
        coalesce(sum(greatest(t - greatest(coalesce(sent_t, t), before_t), 0)), 0) AS sent_seconds,
        sum(greatest(t - greatest(from_t, before_t), 0)) AS waited_seconds
    FROM ways
    GROUP BY trace_id
)
SELECT
    layers.layer AS entity,
    'high' AS confidence,
    format(
        '{} of {} in total, with data embedded in their tasks, kept the workers waiting for {:.1f} s.',
        CASE graphs WHEN 1 THEN 'A graph' ELSE graphs || ' graphs' END,
        _byte_size(bytes), waited_seconds
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
LEFT JOIN dispatched USING (trace_id);
