-- Unresponsive workers.
-- The threads of a worker are lost while it is silent. The upper end of the saving
-- assumes that the whole run waits while any worker is silent.
-- Records: worker_sample
-- Explains: silent worker, lost attempt, dispatch, tail, dependencies
-- Source: distributed, worker-ttl; Spark's executor heartbeats
-- Documentation: https://distributed.dask.org/en/stable/worker-state.html
-- $min_seconds = 5: time without a heartbeat
WITH silences AS (
    SELECT
        *,
        max(stop_t) OVER (
            PARTITION BY trace_id ORDER BY start_t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_t
    FROM _silences
    WHERE seconds >= $min_seconds
),
silent AS (
    SELECT
        trace_id,
        name,
        any_value(worker) AS worker,
        count(*) AS silences,
        max(stop_t - start_t) AS seconds,
        sum(nthreads * (stop_t - start_t)) AS thread_seconds,
        -- greatest() ignores the null of the first silence.
        sum(greatest(stop_t - greatest(start_t, before_t), 0)) AS added_seconds
    FROM silences
    GROUP BY trace_id, name
),
found AS (
    SELECT
        trace_id,
        count(*) AS workers,
        string_agg(name, ', ' ORDER BY seconds DESC, name) AS names,
        string_agg('''' || replace(worker, '''', '''''') || '''', ', ') AS quoted,
        sum(silences)::BIGINT AS silences,
        max(seconds) AS seconds,
        sum(thread_seconds) AS thread_seconds,
        sum(added_seconds) AS silent_seconds
    FROM silent
    GROUP BY trace_id
)
SELECT
    CASE WHEN workers <= 5 THEN names END AS entity,
    'high' AS confidence,
    CASE
        WHEN silences = 1
            THEN format(
                'Worker {} sent no heartbeat for {:.1f} s while it had tasks, and none of them ended.', names, seconds
            )
        WHEN workers = 1
            THEN format(
                '{} times, worker {} sent no heartbeat for up to {:.1f} s while it had tasks, and none of them ended.',
                silences, names, seconds
            )
        ELSE format(
            '{} workers sent no heartbeat for up to {:.1f} s each while they had tasks, and none of them ended.',
            workers, seconds
        )
    END AS sentence,
    thread_seconds AS core_seconds,
    0.8 * thread_seconds / mean_nthreads AS wall_seconds_min,
    silent_seconds AS wall_seconds_max,
    format(
        'Look for suspended or swapping processes, network failures and code that holds the GIL. '
        'Set distributed.scheduler.worker-ttl below {:.0f} s, so that tasks of a silent worker are moved to others.',
        greatest(seconds / 2, 2)
    ) AS change,
    format(
        'SELECT t, last_seen_t, executing FROM worker_samples WHERE worker IN ({}) ORDER BY worker, t', quoted
    ) AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id);
