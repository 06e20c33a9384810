-- Needs: _attempt_ends, _clip_phases, _coffea_roles, _earlier_attempts, _key_summaries, _phase_seconds, _trace_range
-- A task attempt begins when its key becomes `processing` and ends with the next transition of
-- the key from there. Most keys have one attempt, found in _key_summaries. For the others, one
-- window over their transitions finds begin and end.
CREATE TABLE _task_runs AS
WITH repeated AS (
    SELECT trace_id, key
    FROM _key_summaries
    WHERE has_attempts AND NOT is_simple
),
steps AS (
    SELECT
        transition.rowid AS seq,
        transition.key,
        transition.t,
        transition.finish = 'processing' AS begins,
        transition.start = 'processing' AS ends,
        CASE WHEN transition.finish = 'waiting' THEN transition.t END AS waiting_t,
        transition.trace_id
    FROM raw.transition AS transition
    SEMI JOIN repeated USING (trace_id, key)
    WHERE transition.finish IN ('processing', 'waiting') OR transition.start = 'processing'
    UNION ALL
    -- Tasks that were processing when recording began, before all transitions.
    SELECT seq, key, t, true AS begins, false AS ends, NULL AS waiting_t, trace_id
    FROM _earlier_attempts
),
windows AS (
    SELECT
        seq,
        key,
        t,
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
        task.rowid AS seq,
        CASE WHEN task.rowid = keys.submission THEN '-infinity'::DOUBLE ELSE task.t END AS from_t,
        task.trace_id
    FROM raw.task AS task
    INNER JOIN _key_summaries AS keys USING (trace_id, key)
    WHERE keys.has_attempts AND NOT keys.is_simple
),
attempt_rows AS (
    SELECT
        beginning AS seq,
        ending,
        key,
        1 AS attempt,
        waiting_t,
        submission,
        trace_id
    FROM _key_summaries
    WHERE is_simple
    UNION ALL
    SELECT
        windows.seq,
        windows.ending_seq AS ending,
        windows.key,
        windows.attempt,
        windows.waiting_t,
        submissions.seq AS submission,
        windows.trace_id
    FROM windows
    ASOF LEFT JOIN submissions
        ON windows.trace_id = submissions.trace_id
        AND windows.key = submissions.key
        AND windows.t >= submissions.from_t
),
attempts AS (
    SELECT
        attempt_rows.*,
        -- For tasks that were already processing, the dispatch time is unknown.
        beginning.t AS processing_t,
        coalesce(beginning.worker, initial.worker) AS worker,
        coalesce(beginning.run_id, initial.run_id) AS run_id,
        submission.prefix,
        submission.span_id
    FROM attempt_rows
    LEFT JOIN (SELECT rowid AS seq, * FROM raw.transition WHERE finish = 'processing') AS beginning
        ON attempt_rows.seq = beginning.seq
    LEFT JOIN _earlier_attempts AS initial ON attempt_rows.seq = initial.seq
    LEFT JOIN raw.task AS submission ON attempt_rows.submission = submission.rowid
),
departures AS (
    SELECT DISTINCT worker, stimulus_id, trace_id
    FROM raw.worker_removed
    WHERE stimulus_id IS NOT NULL
)
SELECT
    attempts.key,
    attempts.prefix,
    roles.role,
    attempts.attempt,
    -- Work stealing moves a task without a transition: the worker that reported the end ran it.
    coalesce(ending.worker, attempts.worker) AS worker,
    CASE WHEN ending.worker <> attempts.worker THEN attempts.worker END AS stolen_from,
    ending.thread,
    CASE
        WHEN ending.finish IS NULL THEN 'unfinished'
        WHEN ending.finish IN ('memory', 'erred') THEN ending.finish
        -- A failed task reports its worker or exception. Tasks that the client releases because
        -- of another failure end with the same stimulus, but without either.
        WHEN ending.exception IS NOT NULL
            OR (starts_with(ending.stimulus_id, 'task-erred') AND ending.worker IS NOT NULL) THEN 'retried'
        WHEN starts_with(ending.stimulus_id, 'reschedule') THEN 'rescheduled'
        WHEN departure.worker IS NOT NULL
            OR regexp_matches(
                ending.stimulus_id,
                '^(handle-worker-cleanup|retire-workers?|remove-worker|worker-|close-|check-worker-ttl'
                -- A client restarts the workers, after it has released all keys.
                '|client-restart|cancelled-by-worker-close|send-all-comm-fail)'
            ) THEN 'lost'
        ELSE 'cancelled'
    END AS outcome,
    attempts.processing_t,
    list_min(list_transform(
        list_filter(ending.startstops, lambda part: part.action = 'compute'), lambda part: part.start
    )) AS compute_start_t,
    list_max(list_transform(
        list_filter(ending.startstops, lambda part: part.action IN ('compute', 'seceded')),
        lambda part: part.stop
    )) AS compute_stop_t,
    -- Tasks that were processing when recording began can have computed for hours before.
    CASE
        WHEN attempts.processing_t IS NOT NULL THEN _phase_seconds(ending.startstops, 'compute')
        ELSE _phase_seconds(
            _clip_phases(ending.startstops, recording.start_t, recording.stop_t), 'compute'
        )
    END AS compute_seconds,
    -- Equal to compute_seconds, except for attempts that seceded or that the recording or a time range
    -- cuts off.
    _phase_seconds(ending.startstops, 'compute')
        + coalesce(_phase_seconds(ending.startstops, 'seceded'), 0) AS whole_seconds,
    _phase_seconds(ending.startstops, 'transfer') AS transfer_seconds,
    _phase_seconds(ending.startstops, 'deserialize') AS deserialize_seconds,
    _phase_seconds(ending.startstops, 'disk-') AS disk_seconds,
    attempts.processing_t - attempts.waiting_t AS queued_seconds,
    ending.nbytes,
    ending.typename,
    attempts.span_id,
    ending.exception,
    ending.traceback,
    coalesce(ending.run_id, attempts.run_id) AS run_id,
    ending.t AS end_t,
    regexp_replace(ending.stimulus_id, '-[0-9.]+$', '') AS end_reason,
    -- The heartbeat can be older than the attempt, and refer to an earlier one.
    CASE WHEN ending.start_t >= attempts.processing_t THEN ending.start_t END AS execute_start_t,
    attempts.submission,
    attempts.seq,
    ending.seq AS end_seq,
    attempts.trace_id
-- Join order for speed: scan the wide rows, and build hash tables of the narrow ones.
FROM _attempt_ends AS ending
RIGHT JOIN attempts ON ending.seq = attempts.ending
INNER JOIN _trace_range AS recording ON attempts.trace_id = recording.trace_id
LEFT JOIN _coffea_roles AS roles
    ON attempts.trace_id = roles.trace_id AND attempts.key = roles.key
LEFT JOIN departures AS departure
    ON attempts.trace_id = departure.trace_id
    AND ending.stimulus_id = departure.stimulus_id
    AND coalesce(ending.worker, attempts.worker) = departure.worker;
