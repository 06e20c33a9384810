-- Needs: _client_sessions, _core_time_buckets, _taskless_work, core_time
-- Core time of the cluster by time bucket. Time between graphs counts as such only while a client submits
-- tasks: between the programs of two clients, none waits for the other. Tasks of unknown clients are
-- those of one. Nor does it count while an actor computes: then the workers are not known to be idle.
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
    coalesce(sum(seconds) FILTER (use = 'between graphs' AND is_in_session), 0) AS between_seconds,
    coalesce(
        sum(seconds) FILTER (use IN ('before first graph', 'between graphs', 'after last result')), 0
    ) AS workless_seconds
FROM core_time
INNER JOIN (
    SELECT
        bucket.trace_id,
        bucket.t,
        (
            bool_or(session.from_t IS NOT NULL)
            OR bucket.trace_id NOT IN (SELECT trace_id FROM _client_sessions)
        ) AND NOT bool_or(work.start_t IS NOT NULL) AS is_in_session
    FROM (
        SELECT
            trace_id,
            width,
            unnest(list_transform(range(buckets), lambda number: start_t + number * width)) AS t
        FROM _core_time_buckets
    ) AS bucket
    LEFT JOIN _client_sessions AS session
        ON bucket.trace_id = session.trace_id
        AND session.from_t < bucket.t + bucket.width
        AND session.until_t >= bucket.t
    LEFT JOIN _taskless_work AS work
        ON bucket.trace_id = work.trace_id
        AND work.start_t < bucket.t + bucket.width
        AND work.stop_t > bucket.t
    GROUP BY bucket.trace_id, bucket.t
) USING (trace_id, t)
GROUP BY trace_id, t;
