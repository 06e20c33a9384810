-- Needs: nothing
-- Graphs as submitted by the recording client. A graph is matched on the scheduler by one of
-- its keys: the first task of that key submitted then or up to 0.1 s before, since clocks
-- differ. If the scheduler already had the task, there is no match.
CREATE VIEW _client_graphs AS
SELECT
    graph.rowid AS seq,
    graph.trace_id,
    graph.t,
    graph.client,
    graph.key,
    json_transform(
        graph.value,
        '{
            "layers": [{"name": "VARCHAR", "type": "VARCHAR", "tasks": "BIGINT", "fused": ["VARCHAR"]}],
            "more_layers": "BIGINT",
            "collections": ["VARCHAR"],
            "code": {
                "digest": "VARCHAR", "filename": "VARCHAR", "line_number": "BIGINT",
                "first_line": "BIGINT", "text": "VARCHAR"
            }
        }'
    ) AS description,
    task.stimulus_id,
    task.t AS entered_t
FROM raw.graph AS graph
ASOF LEFT JOIN raw.task AS task
    ON graph.trace_id = task.trace_id
    AND graph.key = task.key
    AND graph.t - 0.1 <= task.t;
