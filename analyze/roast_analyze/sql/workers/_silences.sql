-- Needs: _is_given_up, _task_runs, _workers
-- Records: worker_sample
-- Times without a heartbeat in which a worker process with tasks did not compute either: the process,
-- its host or the network was stopped. If only its event loop had been blocked, threads would have
-- finished tasks in that time. If a task had held the GIL, it would have taken as long as
-- others of its prefix, but it took longer by the silence. While a worker imports modules, no task has
-- begun.
CREATE TABLE _silences AS
WITH heartbeats AS (
    SELECT trace_id, worker, server_id, last_seen AS start_t, max(t) AS sampled_t
    FROM raw.worker_sample
    WHERE last_seen IS NOT NULL
    GROUP BY trace_id, worker, server_id, last_seen
),
gaps AS (
    SELECT
        *,
        coalesce(
            lead(start_t) OVER (PARTITION BY trace_id, worker, server_id ORDER BY start_t), sampled_t
        ) AS stop_t
    FROM heartbeats
),
long AS (
    SELECT gaps.*
    FROM gaps
    INNER JOIN (
        SELECT trace_id, median(stop_t - start_t) AS seconds FROM gaps GROUP BY trace_id
    ) AS interval USING (trace_id)
    -- The interval of heartbeats grows with the number of workers.
    WHERE gaps.stop_t - gaps.start_t >= greatest(2, 5 * interval.seconds)
),
-- A mean, because a median takes longer, and the silence of one worker changes the mean little.
usual AS (
    SELECT trace_id, prefix, avg(whole_seconds) AS seconds
    FROM _task_runs
    WHERE outcome = 'memory'
    GROUP BY trace_id, prefix
)
SELECT
    process.process,
    coalesce(process.name, process.worker) AS name,
    process.worker,
    coalesce(process.nthreads, 1) AS nthreads,
    long.start_t,
    least(long.stop_t, coalesce(process.removed_t, 'infinity')) AS stop_t,
    least(long.stop_t, coalesce(process.removed_t, 'infinity')) - long.start_t AS seconds,
    long.trace_id
FROM long
ASOF INNER JOIN _workers AS process
    ON long.trace_id = process.trace_id
    AND long.worker = process.worker
    AND long.start_t >= process.from_t
INNER JOIN _task_runs AS run
    ON long.trace_id = run.trace_id
    AND long.worker = run.worker
    AND run.processing_t < long.stop_t - 1
    AND coalesce(run.end_t, 'infinity') > long.start_t + 1
LEFT JOIN usual ON run.trace_id = usual.trace_id AND run.prefix = usual.prefix
GROUP BY ALL
HAVING count(*) FILTER (run.compute_stop_t BETWEEN long.start_t + 1 AND long.stop_t - 1) = 0
    AND count(*) FILTER (
        run.outcome IN ('lost', 'unfinished')
        -- The last attempt at a task that Dask gave up fails.
        OR _is_given_up(run.exception)
        OR (
            run.compute_start_t < long.start_t + 1
            AND run.compute_stop_t > long.stop_t - 1
            AND run.whole_seconds - usual.seconds >= 0.5 * (long.stop_t - long.start_t)
        )
    ) > 0;
