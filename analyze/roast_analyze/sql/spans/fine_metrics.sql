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
ORDER BY trace_id, unit, value DESC, worker, context, span_id, prefix, activity, server_id;

COMMENT ON VIEW fine_metrics IS 'Fine performance metrics, summed over the recording. One row per worker, span, prefix, activity and unit. Work of p2p inside tasks is reported twice: as foreground of p2p, and in execute with p2p- before the activity. Empty if no metrics were recorded.';
COMMENT ON COLUMN fine_metrics.worker IS 'Worker address.';
COMMENT ON COLUMN fine_metrics.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN fine_metrics.context IS 'execute, get-data, gather-dep, p2p or memory-monitor.';
COMMENT ON COLUMN fine_metrics.span_id IS 'Span of the work.';
COMMENT ON COLUMN fine_metrics.prefix IS 'Key prefix of the tasks. For p2p, foreground or the background task.';
COMMENT ON COLUMN fine_metrics.activity IS 'Activity.';
COMMENT ON COLUMN fine_metrics.unit IS 'Unit of the value.';
COMMENT ON COLUMN fine_metrics.value IS 'Sum over the recording. Values of a span exclude those of nested spans.';
COMMENT ON COLUMN fine_metrics.trace_id IS 'ID of the trace.';
