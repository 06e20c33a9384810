-- Needs: _concurrency_by, cluster_sizes
-- Time buckets in which ready tasks waited for a thread, with the number of workers that the cluster planned. Empty
-- without a cluster object. Of the tasks that were assigned to workers, at least those that exceed the threads wait:
-- which tasks compute is unknown until they have ended. Tasks that no worker could run are not counted, because
-- another worker like those that were there would not have run them, nor are runs with tasks that left their threads.
CREATE VIEW _ready_times AS
WITH buckets AS (
    SELECT
        trace_id,
        t,
        seconds,
        nthreads,
        workers,
        queued + greatest(processing - nthreads, 0) AS ready
    FROM concurrency_by(NULL)
    WHERE workers > 0
        AND nthreads > 0
        AND trace_id NOT IN (SELECT trace_id FROM raw.worker_transition WHERE finish = 'long-running')
),
clients AS (
    SELECT DISTINCT trace_id, client FROM cluster_sizes
)
SELECT
    trace_id,
    t,
    any_value(seconds) AS seconds,
    any_value(nthreads) AS nthreads,
    any_value(workers) AS workers,
    any_value(ready) AS ready,
    -- Several clients can have the same cluster.
    max(planned) AS planned
FROM (FROM buckets INNER JOIN clients USING (trace_id))
ASOF INNER JOIN cluster_sizes USING (trace_id, client, t)
WHERE ready >= 1
GROUP BY trace_id, t;
