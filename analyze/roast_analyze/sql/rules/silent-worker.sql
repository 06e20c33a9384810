-- Unresponsive workers.
-- The threads of the worker are lost for this time. At most, the whole run waited for its tasks.
-- Records: worker_sample
-- Source: distributed, worker-ttl; Spark's executor heartbeats
-- Documentation: https://distributed.dask.org/en/stable/worker-state.html
-- $min_seconds = 5: time without a heartbeat
WITH silent AS (
    SELECT
        trace_id,
        name,
        any_value(worker) AS worker,
        count(*) AS times,
        sum(stop_t - start_t) AS seconds,
        sum(nthreads * (stop_t - start_t)) AS thread_seconds
    FROM _silences($min_seconds)
    GROUP BY trace_id, name
)
SELECT
    name AS entity,
    'high' AS confidence,
    format(
        'Worker {} sent no heartbeat for {:.1f} s while it had tasks, and none of them ended.',
        name, seconds
    ) AS sentence,
    thread_seconds AS core_seconds,
    0.8 * thread_seconds / mean_nthreads AS wall_seconds_min,
    seconds AS wall_seconds_max,
    format(
        'Look at the host of worker {}: suspended or swapping process, network, code that holds the GIL. '
        'Set distributed.scheduler.worker-ttl below {:.0f} s, so that its tasks go to others.',
        name, greatest(seconds / 2, 2)
    ) AS change,
    format(
        'SELECT t, last_seen_t, executing FROM worker_samples WHERE worker = ''{}'' ORDER BY t',
        replace(worker, '''', '''''')
    ) AS evidence,
    trace_id
FROM silent
INNER JOIN _run_size USING (trace_id);
