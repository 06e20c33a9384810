-- Needs: _client_graphs
-- Pieces of code that submitted something: as the client that records told, or Dask's scheduler.
-- The text of each stands in one record only.
CREATE VIEW _submit_code AS
WITH told AS (
    SELECT trace_id, t, entered_t, NULL AS computation, told.code AS code
    FROM _client_graphs
    WHERE told.code.digest IS NOT NULL
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
    FROM told
    GROUP BY ALL
)
SELECT
    told.trace_id,
    told.t,
    told.entered_t,
    told.computation,
    told.code.digest AS digest,
    told.code.filename AS filename,
    told.code.line_number AS line_number,
    texts.first_line,
    texts.text
FROM told
LEFT JOIN texts ON told.trace_id = texts.trace_id AND told.code.digest = texts.digest;
