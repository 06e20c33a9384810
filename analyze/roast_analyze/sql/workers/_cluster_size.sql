-- Needs: _trace_range, _worker_presence
-- Number of workers and threads, and their peaks: one row per trace.
CREATE TABLE _cluster_size AS
WITH changes AS (
    SELECT trace_id, from_t AS t, 1 AS workers, nthreads FROM _worker_presence
    UNION ALL
    SELECT trace_id, to_t, -1, -nthreads FROM _worker_presence
),
levels AS (
    -- Changes at the same instant are combined, so that a worker that replaces another one is
    -- not a peak.
    SELECT
        trace_id,
        sum(sum(workers)) OVER (PARTITION BY trace_id ORDER BY t) AS workers,
        sum(sum(nthreads)) OVER (PARTITION BY trace_id ORDER BY t) AS nthreads
    FROM changes
    GROUP BY trace_id, t
),
peaks AS (
    SELECT trace_id, max(workers) AS workers, max(nthreads) AS nthreads
    FROM levels
    GROUP BY trace_id
),
cores AS (
    SELECT
        trace_id,
        count(*) AS workers,
        sum(greatest(to_t - from_t, 0)) AS worker_seconds,
        sum(nthreads * greatest(to_t - from_t, 0)) AS core_seconds
    FROM _worker_presence
    GROUP BY trace_id
)
SELECT
    recording.trace_id,
    recording.start_t,
    recording.stop_t,
    coalesce(cores.workers, 0) AS workers,
    coalesce(peaks.workers, 0)::BIGINT AS peak_workers,
    coalesce(peaks.nthreads, 0)::BIGINT AS peak_nthreads,
    cores.worker_seconds,
    cores.core_seconds
FROM _trace_range AS recording
LEFT JOIN cores USING (trace_id)
LEFT JOIN peaks USING (trace_id);
