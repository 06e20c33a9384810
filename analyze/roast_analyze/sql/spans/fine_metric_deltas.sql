-- Needs: nothing
CREATE VIEW fine_metric_deltas AS
SELECT
    t,
    worker,
    server_id,
    context,
    span_id,
    prefix,
    activity,
    unit,
    delta,
    trace_id
FROM raw.fine_metric
ORDER BY trace_id, t, rowid;

COMMENT ON VIEW fine_metric_deltas IS 'Fine performance metrics over time. One row per worker heartbeat and metric, with the increase since the last heartbeat; fine_metrics has the sums. Work of p2p inside tasks is reported twice: as foreground of p2p, and in execute with p2p- before the activity. Empty if no metrics were recorded.';
COMMENT ON COLUMN fine_metric_deltas.t IS 'Arrival at the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN fine_metric_deltas.worker IS 'Worker address.';
COMMENT ON COLUMN fine_metric_deltas.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN fine_metric_deltas.context IS 'execute, get-data, gather-dep, p2p or memory-monitor.';
COMMENT ON COLUMN fine_metric_deltas.span_id IS 'Span of the work.';
COMMENT ON COLUMN fine_metric_deltas.prefix IS 'Key prefix of the tasks. For p2p, foreground or the background task.';
COMMENT ON COLUMN fine_metric_deltas.activity IS 'Activity.';
COMMENT ON COLUMN fine_metric_deltas.unit IS 'Unit of the delta.';
COMMENT ON COLUMN fine_metric_deltas.delta IS 'Increase since the last heartbeat.';
COMMENT ON COLUMN fine_metric_deltas.trace_id IS 'ID of the trace.';
