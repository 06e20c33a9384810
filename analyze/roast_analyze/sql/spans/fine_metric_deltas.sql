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

COMMENT ON VIEW fine_metric_deltas IS 'Dask''s fine performance metrics over time: one row per heartbeat of a worker and what it added. Sums of it are fine_metrics. What p2p does within tasks is told twice: as foreground of p2p, and in execute with p2p- before the activity. Empty if none were recorded.';
COMMENT ON COLUMN fine_metric_deltas.t IS 'When it arrived, in seconds since the epoch.';
COMMENT ON COLUMN fine_metric_deltas.worker IS 'Address of the worker.';
COMMENT ON COLUMN fine_metric_deltas.server_id IS 'Identity of the worker process.';
COMMENT ON COLUMN fine_metric_deltas.context IS 'execute, get-data, gather-dep, p2p or memory-monitor.';
COMMENT ON COLUMN fine_metric_deltas.span_id IS 'Span that the work belongs to.';
COMMENT ON COLUMN fine_metric_deltas.prefix IS 'Key prefix of the tasks; of p2p, foreground or which of its background tasks.';
COMMENT ON COLUMN fine_metric_deltas.activity IS 'What was done.';
COMMENT ON COLUMN fine_metric_deltas.unit IS 'Unit of the delta.';
COMMENT ON COLUMN fine_metric_deltas.delta IS 'What was added since the last heartbeat.';
COMMENT ON COLUMN fine_metric_deltas.trace_id IS 'Identity of the recording.';
