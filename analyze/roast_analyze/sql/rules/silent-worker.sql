-- Unresponsive workers.
-- The threads of a worker are lost while it is silent. The upper end of the saving
-- assumes that the whole run waits while any worker is silent. If the scheduler closed such workers
-- because of worker-ttl, the setting was too short for them, or a task held the GIL for longer.
-- Records: worker_sample
-- Applies: EXISTS (FROM _silences WHERE seconds >= $min_seconds)
-- Explains: silent worker, lost attempt, dispatch, tail, dependencies
-- Source: distributed, worker-ttl; Spark's executor heartbeats
-- Documentation: https://distributed.dask.org/en/stable/worker-state.html
-- $min_seconds = 5: time without a heartbeat
-- $least_saved = 0.8: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
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
),
-- Workers that the scheduler closed because they were silent, and the setting.
expired AS (
    SELECT trace_id, count(*) AS workers
    FROM workers
    WHERE removal_reason = 'check-worker-ttl'
    GROUP BY trace_id
),
settings AS (
    SELECT trace_id, any_value(value) AS ttl
    FROM config
    WHERE name = 'distributed.scheduler.worker-ttl' AND process = 'scheduler'
    GROUP BY trace_id
)
SELECT
    CASE WHEN found.workers <= 5 THEN names END AS entity,
    'high' AS confidence,
    CASE
        WHEN silences = 1
            THEN format(
                'Worker {} sent no heartbeat for {:.1f} s while it had tasks, and none of them ended.', names, seconds
            )
        WHEN found.workers = 1
            THEN format(
                '{} times, worker {} sent no heartbeat for up to {:.1f} s while it had tasks, and none of them ended.',
                silences, names, seconds
            )
        ELSE format(
            '{} workers sent no heartbeat for up to {:.1f} s each while they had tasks, and none of them ended.',
            found.workers, seconds
        )
    END || CASE
        WHEN expired.workers IS NULL THEN ''
        ELSE format(
            ' The scheduler closed {}, because {}worker-ttl had passed without a heartbeat: the tasks on {} were lost.',
            if(expired.workers = 1, 'one worker', expired.workers || ' workers'),
            coalesce('the ' || nullif(ttl, 'None') || ' of ', ''),
            if(expired.workers = 1, 'it', 'them')
        )
    END AS sentence,
    thread_seconds AS core_seconds,
    $least_saved * thread_seconds / mean_nthreads AS wall_seconds_min,
    silent_seconds AS wall_seconds_max,
    CASE
        WHEN expired.workers IS NULL
            THEN 'Look for suspended or swapping processes, network failures and code that holds the GIL.'
        ELSE format(
            'Raise distributed.scheduler.worker-ttl{} above {:.0f} s, or release the GIL in tasks that hold it for'
            ' as long. If the processes were suspended or swapping, or the network failed, look for that cause.',
            coalesce(' (now ' || nullif(ttl, 'None') || ')', ''), ceil(1.5 * seconds)
        )
    END AS change,
    format(
        'SELECT t, last_seen_t, executing FROM worker_samples WHERE worker IN ({}) ORDER BY worker, t', quoted
    ) AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
LEFT JOIN expired USING (trace_id)
LEFT JOIN settings USING (trace_id);
