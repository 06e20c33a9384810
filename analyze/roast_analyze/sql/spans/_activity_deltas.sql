-- Needs: nothing
-- Fine metrics without idle time and without duplicates: Dask reports p2p work inside tasks
-- twice, in context p2p as `foreground`, and in execute with p2p- before the activity. Only the
-- second one has the task. Rows do not come from fine_metric_deltas, which sorts them.
CREATE VIEW _activity_deltas AS
SELECT t, worker, server_id, context, span_id, prefix, activity, unit, delta, trace_id
FROM raw.fine_metric
WHERE activity IS DISTINCT FROM 'idle'
    AND (context IS DISTINCT FROM 'p2p' OR prefix IS DISTINCT FROM 'foreground');
