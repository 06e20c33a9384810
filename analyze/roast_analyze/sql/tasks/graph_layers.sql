-- Needs: _client_graphs
CREATE VIEW graph_layers AS
SELECT
    stimulus_id,
    stage,
    layer,
    layer_type,
    tasks,
    fused,
    client,
    t,
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
    FROM (SELECT * EXCLUDE (told), unnest(told.layers) AS layer FROM _client_graphs)
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
ORDER BY trace_id, t, stage, layer;

COMMENT ON VIEW graph_layers IS 'Graphs by layer, before and after the scheduler optimised them and made tasks: one row per graph, stage and layer.';
COMMENT ON COLUMN graph_layers.stimulus_id IS 'Graph, as in graph_updates; null if what was sent could not be found again on the scheduler.';
COMMENT ON COLUMN graph_layers.stage IS 'sent: as the client that records sent it, before low-level optimisation (an expression: after its own); scheduled: as its new tasks entered.';
COMMENT ON COLUMN graph_layers.layer IS 'Name of the layer; of scheduled tasks their task group, which often has the name of the layer.';
COMMENT ON COLUMN graph_layers.layer_type IS 'Class of the layer or the expression; of scheduled tasks their key prefix.';
COMMENT ON COLUMN graph_layers.tasks IS 'Tasks of the layer; of an expression its partitions. Null if they would have to be made to be counted.';
COMMENT ON COLUMN graph_layers.fused IS 'Classes of the expressions that Dask has fused into this one.';
COMMENT ON COLUMN graph_layers.client IS 'Client that sent it.';
COMMENT ON COLUMN graph_layers.t IS 'When it was sent, or entered, in seconds since the epoch.';
COMMENT ON COLUMN graph_layers.trace_id IS 'Identity of the recording.';
