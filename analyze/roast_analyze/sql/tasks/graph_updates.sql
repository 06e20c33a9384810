-- Needs: _client_graphs
-- Dask tells of each graph in an event, to two topics; a scheduler before 2024.4 tells nothing,
-- and then there is what its tasks say. Some of the durations that it tells are negative.
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
        sum(len(told.layers)) + coalesce(sum(told.more_layers), 0) AS layers,
        flatten(list(told.collections)) AS collections
    FROM _client_graphs
    WHERE told.layers IS NOT NULL
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
    trace_id
FROM events
FULL JOIN entered USING (trace_id, stimulus_id)
LEFT JOIN sent USING (trace_id, stimulus_id)
ORDER BY trace_id, t, stimulus_id;

COMMENT ON VIEW graph_updates IS 'Graphs that came to the scheduler, and what it took to take them in: one row per graph.';
COMMENT ON COLUMN graph_updates.stimulus_id IS 'What Dask calls it; the transitions that it set off and its tasks have the same.';
COMMENT ON COLUMN graph_updates.client IS 'Client that sent it.';
COMMENT ON COLUMN graph_updates.t IS 'When its tasks entered, in seconds since the epoch.';
COMMENT ON COLUMN graph_updates.start_t IS 'When the scheduler began with it, in seconds since the epoch; null if it does not tell (before 2024.4).';
COMMENT ON COLUMN graph_updates.status IS 'OK, cancelled or error, as Dask tells it.';
COMMENT ON COLUMN graph_updates.tasks IS 'Tasks of the graph once it was made.';
COMMENT ON COLUMN graph_updates.new_tasks IS 'Tasks among them that the scheduler did not have.';
COMMENT ON COLUMN graph_updates.key_collisions IS 'Keys that stand for something else than they did.';
COMMENT ON COLUMN graph_updates.groups IS 'Task groups of the new tasks.';
COMMENT ON COLUMN graph_updates.edges IS 'Dependencies of the new tasks.';
COMMENT ON COLUMN graph_updates.update_seconds IS 'Time that the scheduler spent on it; the parts are in the next three.';
COMMENT ON COLUMN graph_updates.materialization_seconds IS 'Time to read the graph and to make tasks of its layers.';
COMMENT ON COLUMN graph_updates.ordering_seconds IS 'Time to order the tasks.';
COMMENT ON COLUMN graph_updates.state_seconds IS 'Time to take the tasks in.';
COMMENT ON COLUMN graph_updates.layers_sent IS 'Layers of the graph as it was sent, before low-level optimisation; null if another client sent it, or it has none, as of client.submit and client.map.';
COMMENT ON COLUMN graph_updates.sent_t IS 'When the client sent it, in seconds since the epoch on the scheduler''s clock.';
COMMENT ON COLUMN graph_updates.collections IS 'Types of the collections that were computed, if Dask tells.';
COMMENT ON COLUMN graph_updates.trace_id IS 'Identity of the recording.';
