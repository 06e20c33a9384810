-- Needs: _attempt_id, _bucket_uses, _chunks, _core_time_buckets, _task_runs
-- Attempts that computed while threads lacked tasks: `idle_seconds` is their part of the thread
-- time that was idle, as `tail` or `dependencies`, in these time buckets. `ready_seconds` is the
-- time by which an attempt could have started earlier. Without a cluster, chunks are attempts; it is
-- not known when they were ready.
CREATE TABLE _scarce_attempts AS
WITH computed AS NOT MATERIALIZED (
    SELECT
        trace_id, seq, key, prefix, role, attempt, worker, whole_seconds, processing_t,
        compute_start_t, compute_stop_t, submission
    FROM _task_runs
    UNION ALL
    SELECT
        trace_id, _attempt_id(seq, local_id), key, NULL, 'chunk', attempt, worker, whole_seconds, start_t,
        start_t, stop_t, NULL
    FROM _chunks
    WHERE NOT has_task
),
scarce AS (
    SELECT
        uses.trace_id,
        bucket.start_t,
        bucket.width,
        round((uses.t - bucket.start_t) / bucket.width)::BIGINT AS number,
        uses.tail_seconds + uses.dependencies_seconds AS idle_seconds
    FROM _bucket_uses AS uses
    INNER JOIN _core_time_buckets AS bucket USING (trace_id)
    -- A few idle threads are normal.
    WHERE uses.tail_seconds + uses.dependencies_seconds >= 0.15 * uses.seconds
),
pieces AS (
    SELECT
        attempt.trace_id,
        attempt.seq,
        attempt.compute_start_t,
        attempt.compute_stop_t,
        bucket.start_t,
        bucket.width,
        unnest(range(
            floor((attempt.compute_start_t - bucket.start_t) / bucket.width)::BIGINT,
            floor((attempt.compute_stop_t - bucket.start_t) / bucket.width)::BIGINT + 1
        )) AS number
    FROM computed AS attempt
    INNER JOIN _core_time_buckets AS bucket USING (trace_id)
    WHERE attempt.compute_stop_t > attempt.compute_start_t
        AND attempt.compute_start_t >= bucket.start_t
        AND attempt.compute_stop_t <= bucket.start_t + bucket.extent + 1
),
overlapping AS (
    SELECT
        pieces.trace_id,
        pieces.seq,
        pieces.number,
        scarce.idle_seconds,
        least(compute_stop_t, pieces.start_t + (pieces.number + 1) * pieces.width)
            - greatest(compute_start_t, pieces.start_t + pieces.number * pieces.width)
            AS seconds
    FROM pieces
    INNER JOIN scarce USING (trace_id, number)
),
shared AS (
    SELECT
        seq,
        idle_seconds * seconds / nullif(sum(seconds) OVER (PARTITION BY trace_id, number), 0)
            AS idle_seconds
    FROM overlapping
),
attempts AS (
    SELECT seq, sum(idle_seconds) AS idle_seconds FROM shared GROUP BY seq
),
held AS (
    SELECT attempts.seq, max(transition.t) AS t
    FROM attempts
    INNER JOIN _task_runs AS attempt USING (seq)
    INNER JOIN raw.transition AS transition
        ON attempt.trace_id = transition.trace_id
        AND attempt.key = transition.key
        AND transition.rowid < attempt.seq
        AND transition.finish IN ('queued', 'no-worker')
    GROUP BY attempts.seq
)
SELECT
    attempt.trace_id,
    attempt.seq,
    attempt.key,
    attempt.prefix,
    attempt.role,
    attempt.attempt,
    attempt.worker,
    attempt.whole_seconds AS seconds,
    attempt.compute_start_t - least(held.t, attempt.processing_t) AS ready_seconds,
    coalesce(len(task.dependencies), 0) AS dependencies,
    attempt.compute_start_t,
    attempt.compute_stop_t,
    attempts.idle_seconds
FROM attempts
INNER JOIN computed AS attempt USING (seq)
LEFT JOIN held USING (seq)
LEFT JOIN raw.task AS task ON attempt.submission = task.rowid
WHERE attempts.idle_seconds > 0;
