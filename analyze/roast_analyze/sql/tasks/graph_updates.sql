-- Needs: _client_graphs
-- Dask logs an event per graph under two topics. Before distributed 2024.4 there is none, and
-- the graph is derived from its tasks. Some durations in the event are negative.
CREATE VIEW graph_updates AS
WITH events AS (
    SELECT
        trace_id,
        payload ->> '$.stimulus_id' AS stimulus_id,
        min(rowid) AS seq,
        min(t) AS t,
        max(topic) FILTER (topic <> 'scheduler') AS client,
        any_value(payload ->> '$.status') AS status,
        any_value(payload -> '$.metrics') AS metrics
    FROM raw.event
    WHERE payload ->> '$.action' = 'update-graph'
    GROUP BY ALL
),
entered AS (
    SELECT
        trace_id,
        stimulus_id,
        min(t) AS t,
        any_value(client) AS client,
        count(*) AS tasks,
        count(DISTINCT "group") AS groups,
        sum(len(dependencies)) AS edges
    FROM raw.task
    WHERE stimulus_id IS NOT NULL
    GROUP BY trace_id, stimulus_id
),
sent AS (
    SELECT
        trace_id,
        stimulus_id,
        min(t) AS t,
        sum(len(description.layers)) + coalesce(sum(description.more_layers), 0) AS layers,
        flatten(list(description.collections)) AS collections
    FROM _client_graphs
    WHERE description.layers IS NOT NULL
    GROUP BY trace_id, stimulus_id
),
received AS (
    SELECT trace_id, stimulus_id, max(nbytes) AS nbytes
    FROM raw.graph_update
    GROUP BY trace_id, stimulus_id
)
SELECT
    stimulus_id,
    coalesce(entered.client, events.client) AS client,
    coalesce(entered.t, events.t) AS t,
    try_cast(events.metrics ->> '$.start_timestamp_seconds' AS DOUBLE) AS start_t,
    events.status,
    try_cast(events.metrics ->> '$.tasks' AS BIGINT) AS tasks,
    coalesce(try_cast(events.metrics ->> '$.new_tasks' AS BIGINT), entered.tasks) AS new_tasks,
    try_cast(events.metrics ->> '$.key_collisions' AS BIGINT) AS key_collisions,
    entered.groups,
    entered.edges::BIGINT AS edges,
    try_cast(events.metrics ->> '$.duration_seconds' AS DOUBLE) AS update_seconds,
    try_cast(events.metrics ->> '$.materialization_duration_seconds' AS DOUBLE)
        AS materialization_seconds,
    abs(try_cast(events.metrics ->> '$.ordering_duration_seconds' AS DOUBLE)) AS ordering_seconds,
    abs(try_cast(events.metrics ->> '$.state_initialization_duration_seconds' AS DOUBLE))
        AS state_seconds,
    sent.layers::BIGINT AS layers_sent,
    sent.t AS sent_t,
    sent.collections,
    received.nbytes AS graph_bytes,
    trace_id
FROM events
FULL JOIN entered USING (trace_id, stimulus_id)
LEFT JOIN sent USING (trace_id, stimulus_id)
LEFT JOIN received USING (trace_id, stimulus_id)
ORDER BY trace_id, t, stimulus_id;

COMMENT ON VIEW graph_updates IS 'Submitted graphs, and the cost of processing them. One row per graph.';
COMMENT ON COLUMN graph_updates.stimulus_id IS 'Dask''s ID of the graph. Its tasks and the transitions that it caused have the same stimulus_id.';
COMMENT ON COLUMN graph_updates.client IS 'Client that submitted the graph.';
COMMENT ON COLUMN graph_updates.t IS 'Arrival of its tasks, in seconds since the epoch.';
COMMENT ON COLUMN graph_updates.start_t IS 'Start of processing, in seconds since the epoch. Null before distributed 2024.4.';
COMMENT ON COLUMN graph_updates.status IS 'OK, cancelled or error, as reported by Dask.';
COMMENT ON COLUMN graph_updates.tasks IS 'Tasks in the graph.';
COMMENT ON COLUMN graph_updates.new_tasks IS 'Tasks that were new to the scheduler.';
COMMENT ON COLUMN graph_updates.key_collisions IS 'Keys whose definition differs from the one on the scheduler.';
COMMENT ON COLUMN graph_updates.groups IS 'Task groups of the new tasks.';
COMMENT ON COLUMN graph_updates.edges IS 'Dependencies of the new tasks.';
COMMENT ON COLUMN graph_updates.update_seconds IS 'Time the scheduler spent on the graph, the sum of the next three columns and other work.';
COMMENT ON COLUMN graph_updates.materialization_seconds IS 'Time to deserialize the graph and materialize its layers.';
COMMENT ON COLUMN graph_updates.ordering_seconds IS 'Time to order the tasks.';
COMMENT ON COLUMN graph_updates.state_seconds IS 'Time to create the scheduler state of the tasks.';
COMMENT ON COLUMN graph_updates.layers_sent IS 'Layers of the submitted graph, before low-level optimization. Null if another client submitted it, or it has no layers, as with client.submit and client.map.';
COMMENT ON COLUMN graph_updates.sent_t IS 'Submission by the client, in seconds since the epoch on the scheduler''s clock.';
COMMENT ON COLUMN graph_updates.collections IS 'Types of the computed collections, if recorded.';
COMMENT ON COLUMN graph_updates.graph_bytes IS 'Serialized size of the graph as the scheduler received it, including the data inside of it. Null before trace format 2.4.';
COMMENT ON COLUMN graph_updates.trace_id IS 'ID of the trace.';
