-- Needs: nothing
CREATE VIEW fine_metrics AS
SELECT
    worker,
    server_id,
    context,
    span_id,
    prefix,
    activity,
    unit,
    sum(delta) AS value,
    trace_id
FROM raw.fine_metric
GROUP BY trace_id, worker, server_id, context, span_id, prefix, activity, unit
ORDER BY trace_id, unit, value DESC;

COMMENT ON VIEW fine_metrics IS 'Dask''s fine performance metrics: one total per worker, span, prefix, activity and unit. What p2p does within tasks is told twice: as foreground of p2p, and in execute with p2p- before the activity. Empty if none were recorded.';
COMMENT ON COLUMN fine_metrics.worker IS 'Address of the worker.';
COMMENT ON COLUMN fine_metrics.server_id IS 'Identity of the worker process.';
COMMENT ON COLUMN fine_metrics.context IS 'execute, get-data, gather-dep, p2p or memory-monitor.';
COMMENT ON COLUMN fine_metrics.span_id IS 'Span that the work belongs to.';
COMMENT ON COLUMN fine_metrics.prefix IS 'Key prefix of the tasks; of p2p, foreground or which of its background tasks.';
COMMENT ON COLUMN fine_metrics.activity IS 'What was done.';
COMMENT ON COLUMN fine_metrics.unit IS 'Unit of the value.';
COMMENT ON COLUMN fine_metrics.value IS 'Sum over the recording; spans hold only their own, not what lies in them.';
COMMENT ON COLUMN fine_metrics.trace_id IS 'Identity of the recording.';
