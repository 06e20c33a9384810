-- Needs: nothing
-- Arrivals of tasks at a worker, and how far each got before the next arrival of the same key.
-- The stimulus of the arrival contains the time at which the scheduler sent the task. Nearly
-- all tasks arrive once at a worker; a window separates repeated arrivals.
CREATE VIEW _worker_arrivals AS
WITH steps AS (
    SELECT
        rowid AS seq,
        trace_id,
        worker,
        server_id,
        key,
        t,
        stimulus_id,
        finish = 'waiting' AND starts_with(stimulus_id, 'compute-task-') AS arrives,
        finish IN ('ready', 'constrained') AS is_ready,
        finish = 'executing' AS executes
    FROM raw.worker_transition
    WHERE finish IN ('waiting', 'ready', 'constrained', 'executing')
),
first_arrivals AS (
    SELECT
        trace_id,
        worker,
        server_id,
        key,
        any_value(stimulus_id) FILTER (arrives) AS stimulus_id,
        min(t) FILTER (arrives) AS arrived_t,
        min(t) FILTER (is_ready) AS ready_t,
        min(t) FILTER (executes) AS executing_t,
        count(*) FILTER (arrives) = 1 AND min(seq) FILTER (arrives) = min(seq) AS is_simple
    FROM steps
    GROUP BY trace_id, worker, server_id, key
    HAVING count(*) FILTER (arrives) > 0
),
numbered AS (
    SELECT
        steps.*,
        count(*) FILTER (arrives) OVER (
            PARTITION BY trace_id, worker, steps.server_id, key
            ORDER BY seq
            ROWS UNBOUNDED PRECEDING
        ) AS number
    FROM steps
    INNER JOIN first_arrivals AS place USING (trace_id, worker, key)
    WHERE NOT place.is_simple AND steps.server_id IS NOT DISTINCT FROM place.server_id
),
arrivals AS (
    SELECT trace_id, worker, key, stimulus_id, arrived_t, ready_t, executing_t
    FROM first_arrivals
    WHERE is_simple
    UNION ALL
    SELECT
        trace_id,
        worker,
        key,
        any_value(stimulus_id) FILTER (arrives) AS stimulus_id,
        min(t) FILTER (arrives) AS arrived_t,
        min(t) FILTER (is_ready) AS ready_t,
        min(t) FILTER (executes) AS executing_t
    FROM numbered
    WHERE number > 0
    GROUP BY trace_id, worker, server_id, key, number
)
SELECT
    *, try_cast(replace(stimulus_id, 'compute-task-', '') AS DOUBLE) AS sent_t
FROM arrivals;
