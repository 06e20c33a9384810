-- Needs: _client_graphs
CREATE VIEW graph_layers AS
WITH task_sizes AS (
    SELECT
        trace_id,
        stimulus_id,
        'scheduled' AS stage,
        examined."group" AS layer,
        max(examined.nbytes / nullif(examined.examined, 0)) AS task_bytes
    FROM (
        SELECT
            trace_id,
            stimulus_id,
            unnest(
                json_transform(
                    value -> '$.groups',
                    '[{"group": "VARCHAR", "examined": "BIGINT", "nbytes": "BIGINT"}]'
                )
            ) AS examined
        FROM raw.graph_update
    )
    GROUP BY ALL
)
SELECT
    stimulus_id,
    stage,
    layer,
    layer_type,
    tasks,
    fused,
    client,
    t,
    try_cast(task_bytes * tasks::HUGEINT AS BIGINT) AS task_bytes,
    trace_id
FROM (
    SELECT
        trace_id,
        stimulus_id,
        'sent' AS stage,
        layer.name AS layer,
        layer.type AS layer_type,
        layer.tasks AS tasks,
        layer.fused AS fused,
        client,
        t
    FROM (SELECT * EXCLUDE (description), unnest(description.layers) AS layer FROM _client_graphs)
    UNION ALL BY NAME
    SELECT
        trace_id,
        stimulus_id,
        'scheduled' AS stage,
        "group" AS layer,
        any_value(prefix) AS layer_type,
        count(*) AS tasks,
        any_value(client) AS client,
        min(t) AS t
    FROM raw.task
    WHERE stimulus_id IS NOT NULL
    GROUP BY trace_id, stimulus_id, "group"
)
LEFT JOIN task_sizes USING (trace_id, stimulus_id, stage, layer)
ORDER BY trace_id, t, stage, layer;

COMMENT ON VIEW graph_layers IS 'Layers of submitted graphs, before and after optimization. One row per graph, stage and layer.';
COMMENT ON COLUMN graph_layers.stimulus_id IS 'Graph, as in graph_updates. Null if the submitted graph could not be matched on the scheduler.';
COMMENT ON COLUMN graph_layers.stage IS 'sent: as submitted by the recording client, before low-level optimization (for an expression, after its own optimization). scheduled: as its new tasks entered the scheduler.';
COMMENT ON COLUMN graph_layers.layer IS 'Layer name. For scheduled tasks the task group, which often has the same name.';
COMMENT ON COLUMN graph_layers.layer_type IS 'Class of the layer or expression. For scheduled tasks the key prefix.';
COMMENT ON COLUMN graph_layers.tasks IS 'Tasks of the layer. For an expression, its partitions. Null if counting would require materializing the layer.';
COMMENT ON COLUMN graph_layers.fused IS 'Classes of the expressions fused into this one.';
COMMENT ON COLUMN graph_layers.client IS 'Client that submitted the graph.';
COMMENT ON COLUMN graph_layers.t IS 'Submission, in seconds since the epoch.';
COMMENT ON COLUMN graph_layers.task_bytes IS 'Size of the arguments of scheduled tasks and of the data that their functions hold, as measured by Dask''s sizeof for the first ten tasks of the group. Data that several tasks share counts for each. Null for graphs below 1 MiB, for groups of a graph after the first 100, and before trace format 2.4.';
COMMENT ON COLUMN graph_layers.trace_id IS 'ID of the trace.';
