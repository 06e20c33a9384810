-- Needs: core_time
-- Core time of the cluster by time bucket.
CREATE TABLE _bucket_uses AS
SELECT
    trace_id,
    t,
    sum(seconds) AS seconds,
    coalesce(sum(seconds) FILTER (category = 'busy'), 0) AS busy_seconds,
    coalesce(sum(seconds) FILTER (category = 'assigned'), 0) AS assigned_seconds,
    coalesce(sum(seconds) FILTER (category = 'unknown'), 0) AS unknown_seconds,
    coalesce(sum(seconds) FILTER (use = 'dispatch'), 0) AS dispatch_seconds,
    coalesce(sum(seconds) FILTER (use = 'paused worker'), 0) AS paused_seconds,
    coalesce(sum(seconds) FILTER (use = 'imbalance'), 0) AS imbalance_seconds,
    coalesce(sum(seconds) FILTER (use = 'dependencies'), 0) AS dependencies_seconds,
    coalesce(sum(seconds) FILTER (use = 'tail'), 0) AS tail_seconds,
    coalesce(sum(seconds) FILTER (use = 'between graphs'), 0) AS between_seconds,
    coalesce(
        sum(seconds) FILTER (use IN ('before first graph', 'between graphs', 'after last result')), 0
    ) AS workless_seconds
FROM core_time
GROUP BY trace_id, t;
