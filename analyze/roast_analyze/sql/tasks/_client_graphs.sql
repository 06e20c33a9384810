-- Needs: nothing
-- Graphs as the client that records sent them. One is found again on the scheduler by a key that
-- it asks for: the first task of that key that entered then, or a little before, since two
-- clocks are compared. If the scheduler had the task already, the two cannot be joined.
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
    ) AS told,
    task.stimulus_id,
    task.t AS entered_t
FROM raw.graph AS graph
ASOF LEFT JOIN raw.task AS task
    ON graph.trace_id = task.trace_id
    AND graph.key = task.key
    AND graph.t - 0.1 <= task.t;
