-- Needs: _run_size, _task_runs, graph_updates
-- Runs whose client submitted few tasks at a time, and did so long after the last task had ended.
-- The delay is that of the client between a result and the next submission; a client that only waits
-- for results reacts within milliseconds. Graphs that fill the threads are left out: the time between
-- them is a gap.
CREATE TABLE _slow_submissions AS
WITH submitted AS (
    SELECT trace_id, t, coalesce(tasks, new_tasks) AS tasks
    FROM graph_updates
    QUALIFY count(*) OVER (PARTITION BY trace_id) >= 10
),
few AS (
    SELECT trace_id
    FROM submitted
    INNER JOIN _run_size USING (trace_id)
    GROUP BY trace_id
    HAVING median(tasks) < any_value(peak_nthreads)
),
reactions AS (
    SELECT
        submitted.*,
        submitted.t - greatest(
            attempt.end_t, lag(submitted.t) OVER (PARTITION BY submitted.trace_id ORDER BY submitted.t)
        ) AS delay_seconds
    FROM (FROM submitted SEMI JOIN few USING (trace_id)) AS submitted
    ASOF LEFT JOIN (
        SELECT trace_id, end_t FROM _task_runs SEMI JOIN few USING (trace_id) WHERE end_t IS NOT NULL
    ) AS attempt
        ON submitted.trace_id = attempt.trace_id AND submitted.t >= attempt.end_t
)
SELECT
    trace_id,
    count(*) AS submissions,
    median(delay_seconds) AS delay_seconds,
    min(t) AS first_t,
    max(t) AS last_t
FROM reactions
GROUP BY trace_id
HAVING median(delay_seconds) >= 0.05;
