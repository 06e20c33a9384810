-- Needs: nothing
CREATE VIEW spans AS
SELECT span_id, span_name[-1] AS name, span_name AS path, parent_id, t, trace_id
FROM raw.span
WHERE rowid IN (SELECT min(rowid) FROM raw.span GROUP BY trace_id, span_id)
ORDER BY trace_id, rowid;

COMMENT ON VIEW spans IS 'Named parts of the work. One row per span. Empty if none were recorded.';
COMMENT ON COLUMN spans.span_id IS 'ID of the span.';
COMMENT ON COLUMN spans.name IS 'Span name, without the enclosing spans.';
COMMENT ON COLUMN spans.path IS 'Names from the outermost span to this one.';
COMMENT ON COLUMN spans.parent_id IS 'ID of the enclosing span.';
COMMENT ON COLUMN spans.t IS 'First time seen, in seconds since the epoch.';
COMMENT ON COLUMN spans.trace_id IS 'ID of the trace.';
