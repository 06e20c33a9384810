-- Needs: fine_metric_deltas
-- Fine metrics without idle time and without duplicates: Dask reports p2p work inside tasks
-- twice, in context p2p as `foreground`, and in execute with p2p- before the activity. Only the
-- second one has the task.
CREATE VIEW _activity_deltas AS
SELECT *
FROM fine_metric_deltas
WHERE activity IS DISTINCT FROM 'idle'
    AND (context IS DISTINCT FROM 'p2p' OR prefix IS DISTINCT FROM 'foreground');
