-- Needs: nothing
CREATE VIEW spans AS
SELECT span_id, span_name[-1] AS name, span_name AS path, parent_id, t, trace_id
FROM raw.span
WHERE rowid IN (SELECT min(rowid) FROM raw.span GROUP BY trace_id, span_id)
ORDER BY trace_id, rowid;

COMMENT ON VIEW spans IS 'Dask spans, the named parts of the work: one row per span. Empty if none were recorded.';
COMMENT ON COLUMN spans.span_id IS 'Identity of the span.';
COMMENT ON COLUMN spans.name IS 'Its own name.';
COMMENT ON COLUMN spans.path IS 'Names from the outermost span to this one.';
COMMENT ON COLUMN spans.parent_id IS 'Identity of the span around it.';
COMMENT ON COLUMN spans.t IS 'When it was first seen, in seconds since the epoch.';
COMMENT ON COLUMN spans.trace_id IS 'Identity of the recording.';
