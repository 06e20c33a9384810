-- Needs: _core_time, _core_time_buckets, _key_summaries, _tasks, _trace_range, _worker_presence, restrictions
-- Tasks that waited for a worker that may run them, while other workers were there: Dask holds
-- them in the state no-worker. Idle time is that of core_time meanwhile, of all threads and of any.
CREATE TABLE _unplaceable_tasks AS
WITH restricted AS (
    SELECT
        trace_id,
        key,
        any_value(resources::VARCHAR) AS resources,
        any_value(array_to_string(workers, ', ')) AS workers
    FROM restrictions
    -- Other tasks have this state while all workers are paused.
    WHERE workers IS NOT NULL OR resources IS NOT NULL
    GROUP BY trace_id, key
),
states AS (
    SELECT
        trace_id,
        key,
        finish,
        t AS start_t,
        lead(t) OVER in_order AS stop_t,
        coalesce(
            bool_or(finish = 'processing') OVER (
                in_order ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
            ),
            false
        ) AS runs_later
    FROM raw.transition
    SEMI JOIN restricted USING (trace_id, key)
    WINDOW in_order AS (PARTITION BY trace_id, key ORDER BY rowid)
),
held AS (
    SELECT
        states.trace_id,
        states.key,
        greatest(states.start_t, min(worker.from_t)) AS start_t,
        any_value(coalesce(states.stop_t, range.stop_t)) AS stop_t,
        bool_or(states.runs_later) AS runs_later
    FROM states
    INNER JOIN _trace_range AS range USING (trace_id)
    INNER JOIN _worker_presence AS worker
        ON states.trace_id = worker.trace_id
        AND worker.nthreads > 0
        AND worker.from_t < coalesce(states.stop_t, range.stop_t)
        AND worker.to_t > states.start_t
    WHERE states.finish = 'no-worker'
    GROUP BY states.trace_id, states.key, states.start_t
),
waits AS (
    SELECT
        held.trace_id,
        count(DISTINCT held.key) AS tasks,
        count(DISTINCT held.key) FILTER (NOT summary.has_attempts) AS unattempted_tasks,
        -- The result of an earlier attempt was lost.
        count(DISTINCT held.key) FILTER (summary.has_attempts AND NOT held.runs_later) AS unrepeated_tasks,
        mode(task.prefix) AS prefix,
        count(DISTINCT task.prefix) AS prefixes,
        min(held.start_t) AS start_t,
        max(held.stop_t) AS stop_t,
        max(held.stop_t - held.start_t) AS longest_seconds,
        coalesce(max(held.stop_t - held.start_t) FILTER (held.runs_later), 0) AS delay_seconds,
        -- A restriction is stated if all tasks have it.
        count(DISTINCT (restricted.resources, restricted.workers)) > 1 AS are_mixed,
        CASE WHEN NOT are_mixed THEN any_value(restricted.resources) END AS resources,
        CASE WHEN NOT are_mixed THEN any_value(restricted.workers) END AS workers
    FROM held
    INNER JOIN _tasks AS task USING (trace_id, key)
    INNER JOIN restricted USING (trace_id, key)
    INNER JOIN _key_summaries AS summary ON task.seq = summary.submission
    -- Workers that have just joined are unknown for a moment.
    WHERE held.stop_t - held.start_t >= 1
    GROUP BY held.trace_id
),
spent AS (
    SELECT trace_id, t, sum(seconds) AS seconds
    FROM _core_time
    WHERE use = 'scheduler'
    GROUP BY trace_id, t
)
SELECT
    waits.*,
    coalesce(sum(spent.seconds), 0) AS idle_seconds,
    coalesce(sum(least(spent.seconds, bucket.width)), 0) AS partly_idle_seconds
FROM waits
INNER JOIN _core_time_buckets AS bucket USING (trace_id)
LEFT JOIN spent
    ON waits.trace_id = spent.trace_id
    AND spent.t < waits.stop_t
    AND spent.t + bucket.width > waits.start_t
GROUP BY ALL;
