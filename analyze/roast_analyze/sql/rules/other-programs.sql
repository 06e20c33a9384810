-- Tasks that waited behind those of other programs.
-- On a scheduler that several programs share, tasks of one were ready and none of them computed, while tasks of others
-- computed on most threads. Dask computes tasks of equal priority in the order in which they were submitted. All work
-- takes as long in any other order, so no saving is stated. Programs are clients, or processes with several clients.
-- Tasks of a program that had not ended may have computed, and do not count as waiting on their workers.
-- Records: transition
-- Applies: EXISTS (SELECT trace_id FROM _client_sessions GROUP BY trace_id HAVING count(DISTINCT client) > 1)
-- Source: priorities of distributed: user priority, then order of submission
-- Documentation: https://distributed.dask.org/en/stable/priority.html
-- $min_seconds = 5: longest time in which tasks of a program waited
-- $min_share = 0.1: all such time, as a share of the time in which the program was connected
-- $min_used = 0.5: mean number of threads that computed tasks of other programs, as a share of all
WITH programs AS (
    SELECT
        session.trace_id,
        session.client,
        coalesce(session.host || ' ' || session.pid, session.client) AS program,
        coalesce(session.name, session.program, session.client) AS label,
        session.start_t,
        session.stop_t
    FROM sessions AS session
    WHERE session.tasks > 0 OR session.first_submitted_t IS NOT NULL
),
presence AS (
    SELECT trace_id, program, min(label) AS label, sum(stop_t - start_t) AS seconds
    FROM programs
    GROUP BY trace_id, program
),
shared AS (
    SELECT trace_id FROM presence GROUP BY trace_id HAVING count(*) > 1
),
owners AS (
    SELECT task.trace_id, task.key, any_value(program) AS program
    FROM raw.task AS task
    INNER JOIN programs USING (trace_id, client)
    SEMI JOIN shared USING (trace_id)
    GROUP BY task.trace_id, task.key
    -- Either program may wait for a key that several have submitted.
    HAVING count(DISTINCT program) = 1
),
attempts AS (
    SELECT
        trace_id,
        program,
        processing_t,
        coalesce(compute_start_t, execute_start_t) AS begin_t,
        coalesce(compute_stop_t, end_t) AS stop_t
    FROM _task_runs
    INNER JOIN owners USING (trace_id, key)
),
changes AS (
    SELECT owners.trace_id, program, from_t AS t, 1 AS waiting, 0 AS computing, 0 AS known
    FROM (FROM _task_states WHERE state = 'queued') AS state
    INNER JOIN owners ON state.trace_id = owners.trace_id AND task = hash(owners.trace_id, owners.key)
    UNION ALL
    SELECT owners.trace_id, program, until_t, -1, 0, 0
    FROM (FROM _task_states WHERE state = 'queued' AND until_t IS NOT NULL) AS state
    INNER JOIN owners ON state.trace_id = owners.trace_id AND task = hash(owners.trace_id, owners.key)
    UNION ALL
    SELECT trace_id, program, processing_t, 1, 0, 0 FROM attempts WHERE begin_t > processing_t
    UNION ALL
    SELECT trace_id, program, begin_t, -1, 0, 0 FROM attempts WHERE begin_t > processing_t
    UNION ALL
    SELECT trace_id, program, coalesce(begin_t, processing_t), 0, 1, (begin_t IS NOT NULL)::INT FROM attempts
    UNION ALL
    SELECT trace_id, program, stop_t, 0, -1, -(begin_t IS NOT NULL)::INT FROM attempts WHERE stop_t IS NOT NULL
    UNION ALL
    SELECT trace_id, program, recording.stop_t, 0, 0, 0
    FROM presence
    SEMI JOIN shared USING (trace_id)
    INNER JOIN _trace_range AS recording USING (trace_id)
),
levels AS (
    SELECT
        trace_id,
        program,
        t,
        lead(t) OVER in_order AS until_t,
        sum(sum(waiting)) OVER in_order AS waiting,
        sum(sum(computing)) OVER in_order AS computing
    FROM changes
    GROUP BY trace_id, program, t
    WINDOW in_order AS (PARTITION BY trace_id, program ORDER BY t)
),
-- Thread time that all programs had used until each change.
used AS (
    SELECT
        trace_id,
        t,
        computing,
        coalesce(sum(computing_before * (t - before_t)) OVER (PARTITION BY trace_id ORDER BY t), 0) AS seconds
    FROM (
        SELECT
            trace_id,
            t,
            computing,
            lag(computing) OVER in_order AS computing_before,
            lag(t) OVER in_order AS before_t
        FROM (
            SELECT trace_id, t, sum(sum(known)) OVER (PARTITION BY trace_id ORDER BY t) AS computing
            FROM changes
            GROUP BY trace_id, t
        )
        WINDOW in_order AS (PARTITION BY trace_id ORDER BY t)
    )
),
blocked AS (
    SELECT
        trace_id,
        level.program,
        level.t,
        level.until_t,
        level.until_t - level.t AS seconds,
        until_used.seconds - from_used.seconds AS used_seconds
    FROM (FROM levels WHERE waiting > 0 AND computing = 0 AND until_t > t) AS level
    INNER JOIN used AS from_used USING (trace_id, t)
    INNER JOIN used AS until_used ON level.trace_id = until_used.trace_id AND level.until_t = until_used.t
),
found AS (
    SELECT
        trace_id,
        program,
        sum(blocked.seconds) AS seconds,
        max(blocked.seconds) AS longest_seconds,
        sum(used_seconds) / sum(blocked.seconds) AS used_threads
    FROM blocked
    INNER JOIN _run_size USING (trace_id)
    WHERE used_seconds >= $min_used * blocked.seconds * mean_nthreads
    GROUP BY trace_id, program
),
others AS (
    SELECT
        one.trace_id,
        one.program,
        count(*) AS programs,
        min(other.label) AS label
    FROM presence AS one
    INNER JOIN presence AS other ON one.trace_id = other.trace_id AND one.program <> other.program
    GROUP BY one.trace_id, one.program
)
SELECT
    presence.label AS entity,
    'medium' AS confidence,
    format(
        'Tasks of {} were ready for {:.1f} s in which none of them computed, at most {:.1f} s at a time. Meanwhile, tasks'
        ' of {} computed, on {:.1f} of {:.1f} threads on average.',
        presence.label, found.seconds, longest_seconds,
        if(programs = 1, others.label, format('{} other programs', programs)), used_threads, mean_nthreads
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    'Submit work that is needed first with a higher priority (compute(…, priority=10), or dask.annotate(priority=10)),'
    ' let a large program submit its work in parts, or start a cluster for each program.' AS change,
    'SELECT client, program, start_t, first_submitted_t, last_end_t, tasks FROM sessions ORDER BY start_t' AS evidence,
    trace_id
FROM found
INNER JOIN presence USING (trace_id, program)
INNER JOIN others USING (trace_id, program)
INNER JOIN _run_size USING (trace_id)
-- Programs that compute tasks in turn share the threads.
WHERE longest_seconds >= $min_seconds AND found.seconds >= $min_share * presence.seconds;
