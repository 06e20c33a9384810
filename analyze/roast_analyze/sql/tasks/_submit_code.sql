-- Needs: _client_graphs
-- Code that submitted graphs, recorded by the client or by Dask's scheduler. The text of each
-- piece is stored in one record only.
CREATE VIEW _submit_code AS
WITH submitted AS (
    SELECT trace_id, t, entered_t, NULL AS computation, description.code AS code
    FROM _client_graphs
    WHERE description.code.digest IS NOT NULL
    UNION ALL
    SELECT
        trace_id,
        t,
        t AS entered_t,
        name AS computation,
        unnest(json_transform(
            value -> '$.codes',
            '[{
                "digest": "VARCHAR", "filename": "VARCHAR", "line_number": "BIGINT",
                "first_line": "BIGINT", "text": "VARCHAR"
            }]'
        )) AS code
    FROM raw.computation
),
texts AS (
    SELECT
        trace_id,
        code.digest AS digest,
        any_value(code.text) AS text,
        any_value(code.first_line) AS first_line
    FROM submitted
    GROUP BY ALL
)
SELECT
    submitted.trace_id,
    submitted.t,
    submitted.entered_t,
    submitted.computation,
    submitted.code.digest AS digest,
    submitted.code.filename AS filename,
    submitted.code.line_number AS line_number,
    texts.first_line,
    texts.text
FROM submitted
LEFT JOIN texts ON submitted.trace_id = texts.trace_id AND submitted.code.digest = texts.digest;
