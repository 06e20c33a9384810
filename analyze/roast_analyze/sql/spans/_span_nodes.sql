-- Needs: spans
-- Spans and their parents as numbers of a forest. Spans that contain each other are one node, so
-- that each has the totals of all of them. Pointers are doubled: after n steps, `above` is the
-- ancestor 2^n levels up, which takes a few steps even for deeply nested spans.
CREATE VIEW _span_nodes AS
WITH RECURSIVE numbered AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY trace_id, span_id) AS node, trace_id, span_id
    FROM (
        SELECT trace_id, span_id FROM spans WHERE span_id IS NOT NULL
        UNION
        SELECT trace_id, parent_id FROM spans WHERE parent_id IS NOT NULL
    )
),
links AS MATERIALIZED (
    SELECT numbered.node, parent.node AS above, numbered.trace_id, numbered.span_id
    FROM numbered
    LEFT JOIN spans USING (trace_id, span_id)
    LEFT JOIN numbered AS parent
        ON spans.trace_id = parent.trace_id AND spans.parent_id = parent.span_id
),
-- `first` is the smallest node among the span and those that `above` has passed.
climbs AS (
    SELECT 0 AS step, node, above, node AS first FROM links
    UNION ALL
    SELECT climb.step + 1, climb.node, higher.above, least(climb.first, higher.first)
    FROM climbs AS climb
    LEFT JOIN climbs AS higher ON climb.above = higher.node
    WHERE EXISTS (FROM climbs WHERE above IS NOT NULL)
        AND 2 ** climb.step <= (SELECT count(*) FROM links)
),
-- Only from a cycle, and from what it contains, there is always a span further up; all of the cycle
-- is reached.
cycles AS (
    SELECT DISTINCT climbs.above AS node
    FROM climbs
    WHERE climbs.above IS NOT NULL
        AND step = (SELECT max(step) FROM climbs)
),
merged AS (
    SELECT climbs.node, min(climbs.first) AS first
    FROM climbs
    SEMI JOIN cycles USING (node)
    GROUP BY climbs.node
)
SELECT
    links.trace_id,
    links.span_id,
    coalesce(own.first, links.node) AS node,
    CASE WHEN own.first IS NULL THEN coalesce(parent.first, links.above) END AS above
FROM links
LEFT JOIN merged AS own ON links.node = own.node
LEFT JOIN merged AS parent ON links.above = parent.node;
