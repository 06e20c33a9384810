-- Needs: spans
-- Each span with itself and all its ancestors. UNION removes duplicates, so that cycles end.
CREATE VIEW _span_ancestry AS
WITH RECURSIVE ancestry AS (
    SELECT trace_id, span_id, span_id AS ancestor FROM spans
    UNION
    SELECT ancestry.trace_id, ancestry.span_id, spans.parent_id
    FROM ancestry
    INNER JOIN spans
        ON ancestry.trace_id = spans.trace_id AND ancestry.ancestor = spans.span_id
    WHERE spans.parent_id IS NOT NULL
)
FROM ancestry;
