-- Needs: _roles, _seconds, _tasks
-- An attempt at a task begins when its key becomes `processing` and ends with the next
-- transition of the key that starts there. One window over the transitions finds both; the
-- rest is joined by place (rowid), so that no window drags wide rows along.
CREATE TABLE _task_runs AS
WITH steps AS (
    SELECT
        rowid AS seq,
        key,
        t,
        finish = 'processing' AS begins,
        "start" = 'processing' AS ends,
        CASE WHEN finish = 'waiting' THEN t END AS waiting_t,
        trace_id
    FROM raw.transition
    WHERE finish IN ('processing', 'waiting') OR "start" = 'processing'
    UNION ALL
    -- What was being processed when recording began, before all transitions.
    SELECT -1 - rowid AS seq, key, t, true AS begins, false AS ends, NULL AS waiting_t, trace_id
    FROM raw.task
    WHERE state = 'processing' AND worker IS NOT NULL
),
attempts AS (
    SELECT
        seq,
        key,
        t AS processing_t,
        count(*) FILTER (begins) OVER so_far AS attempt,
        CASE WHEN lead(ends) OVER in_order THEN lead(seq) OVER in_order END AS ending_seq,
        last_value(waiting_t IGNORE NULLS) OVER so_far AS waiting_t,
        trace_id
    FROM steps
    WINDOW
        in_order AS (PARTITION BY trace_id, key ORDER BY seq),
        so_far AS (PARTITION BY trace_id, key ORDER BY seq ROWS UNBOUNDED PRECEDING)
    QUALIFY begins
),
submissions AS (
    -- The first submission also describes attempts that began before it was recorded.
    SELECT
        task.key,
        task.prefix,
        task.span_id,
        task.rowid AS seq,
        CASE WHEN task.rowid = first.seq THEN '-infinity'::DOUBLE ELSE task.t END AS from_t,
        task.trace_id
    FROM raw.task AS task
    INNER JOIN _tasks AS first USING (trace_id, key)
),
departures AS (
    SELECT DISTINCT worker, stimulus_id, trace_id
    FROM raw.worker_removed
    WHERE stimulus_id IS NOT NULL
)
SELECT
    attempts.key,
    submission.prefix,
    roles.role,
    attempts.attempt,
    -- Work stealing moves a task without a transition: who reported the end is right.
    coalesce(ending.worker, beginning.worker, there.worker) AS worker,
    ending.thread,
    CASE
        WHEN ending.finish IS NULL THEN 'unfinished'
        WHEN ending.finish IN ('memory', 'erred') THEN ending.finish
        -- Who failed has said so; when a failure makes the client let go of other tasks,
        -- theirs end with the same stimulus and without a word of their own.
        WHEN starts_with(ending.stimulus_id, 'task-erred')
            AND (ending.worker IS NOT NULL OR ending.exception IS NOT NULL) THEN 'retried'
        WHEN starts_with(ending.stimulus_id, 'reschedule') THEN 'rescheduled'
        WHEN departure.worker IS NOT NULL
            OR regexp_matches(
                ending.stimulus_id,
                '^(handle-worker-cleanup|retire-workers?|remove-worker|worker-|close-|check-worker-ttl)'
            ) THEN 'lost'
        ELSE 'cancelled'
    END AS outcome,
    -- Of what was there already nobody knows when it began.
    beginning.t AS processing_t,
    list_min(list_transform(
        list_filter(ending.startstops, lambda part: part.action = 'compute'), lambda part: part.start
    )) AS compute_start_t,
    list_max(list_transform(
        list_filter(ending.startstops, lambda part: part.action = 'compute'), lambda part: part.stop
    )) AS compute_stop_t,
    _seconds(ending.startstops, 'compute') AS compute_seconds,
    _seconds(ending.startstops, 'transfer') AS transfer_seconds,
    _seconds(ending.startstops, 'deserialize') AS deserialize_seconds,
    _seconds(ending.startstops, 'disk-') AS disk_seconds,
    beginning.t - attempts.waiting_t AS queued_seconds,
    ending.nbytes,
    ending.typename,
    submission.span_id,
    ending.exception,
    ending.traceback,
    coalesce(ending.run_id, beginning.run_id, there.run_id) AS run_id,
    ending.t AS end_t,
    regexp_replace(ending.stimulus_id, '-[0-9.]+$', '') AS end_reason,
    submission.seq AS submission,
    attempts.seq,
    attempts.trace_id
FROM attempts
LEFT JOIN _roles AS roles USING (trace_id, key)
LEFT JOIN raw.transition AS beginning ON attempts.seq = beginning.rowid
LEFT JOIN raw.task AS there ON -1 - attempts.seq = there.rowid
LEFT JOIN raw.transition AS ending ON attempts.ending_seq = ending.rowid
LEFT JOIN departures AS departure
    ON attempts.trace_id = departure.trace_id
    AND ending.stimulus_id = departure.stimulus_id
    AND coalesce(ending.worker, beginning.worker, there.worker) = departure.worker
ASOF LEFT JOIN submissions AS submission
    ON attempts.trace_id = submission.trace_id
    AND attempts.key = submission.key
    AND attempts.processing_t >= submission.from_t;
