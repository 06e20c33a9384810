-- Needs: _io_jobs, _task_runs
-- Computing attempts of workers with a Darshan log. Dask converts times to the scheduler's clock
-- with a delay that it measures at each heartbeat; the first one can be 0.1 s wrong. An attempt
-- can neither end after the scheduler received its result nor start before its dispatch. Where
-- consecutive attempts violate this, they are moved by the excess.
CREATE VIEW _io_runs AS
WITH bounds AS (
    SELECT
        key,
        attempt,
        seq,
        worker,
        trace_id,
        compute_start_t,
        compute_stop_t,
        coalesce(compute_stop_t - end_t, 0) AS least_delay,
        coalesce(compute_start_t - processing_t, 0) AS most_delay,
        max(compute_stop_t - end_t) OVER near AS near_least_delay,
        min(compute_start_t - processing_t) OVER near AS near_most_delay
    FROM _task_runs
    WHERE compute_start_t IS NOT NULL
        AND (trace_id, worker) IN (SELECT (trace_id, worker) FROM _io_jobs)
    WINDOW near AS (
        PARTITION BY trace_id, worker ORDER BY end_t, seq ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING
    )
),
delays AS (
    SELECT
        *,
        CASE
            -- The delay changed between these attempts.
            WHEN near_least_delay > least(most_delay, least_delay + 0.02) OR near_most_delay < least_delay
                THEN greatest(least_delay, least(most_delay, 0))
            ELSE greatest(near_least_delay, least(near_most_delay, 0))
        END AS delay
    FROM bounds
)
SELECT
    key,
    attempt,
    seq,
    worker,
    compute_start_t - delay AS start_t,
    compute_stop_t - delay AS stop_t,
    trace_id
FROM delays;
