-- Workers without tasks before the first one.
-- Workers were present, and the program had not submitted a task. Only time in which the client's activity is
-- recorded counts, which requires that the program started the recording. Another rule covers slow building of
-- graphs, and names the function.
-- Records: task
-- Applies: EXISTS (FROM _wall_time WHERE state IN ('client makes graphs', 'client computes', 'client waits'))
-- Explains: before first graph
-- Source: states of view wall_time
-- Documentation: https://docs.dask.org/en/stable/best-practices.html
-- $min_seconds = 3: time with workers and before the first task
-- $min_share = 0.1: the same, as a share of the run
-- $named_share = 0.1: share of this time from which a state is named
-- $waiting_share = 0.5: share of CPU time in own work below which the client waited more than it computed
-- $least_saved = 0.25: part of this time that is saved at least; assumed
WITH beginnings AS (
    SELECT trace_id, min(task.t) AS first_t, min(presence.from_t) AS joined_t
    FROM raw.task AS task
    INNER JOIN (SELECT trace_id, min(from_t) AS from_t FROM _worker_presence GROUP BY trace_id) AS presence
        USING (trace_id)
    GROUP BY trace_id
),
-- On a host without free cores, functions of Dask count as far as they computed. Own work can also wait for files.
computed AS (
    SELECT
        trace_id,
        if(activity = 'dask', 'client makes graphs', 'client computes') AS state,
        sum(cpu_seconds) AS cpu_seconds,
        least(sum(cpu_seconds) / sum(seconds), 1) AS share
    FROM client_activity AS activity
    INNER JOIN beginnings USING (trace_id)
    WHERE activity <> 'wait'
        AND activity.start_t < first_t
        AND trace_id IN (SELECT trace_id FROM _host_load WHERE is_loaded)
    GROUP BY ALL
),
states AS (
    SELECT
        trace_id,
        state,
        CASE state
            WHEN 'client makes graphs' THEN 'in functions of Dask, such as those that make graphs'
            WHEN 'client computes' THEN 'of its own work'
            ELSE 'of waits for Dask, as for workers or for data that it sent to them'
        END AS words,
        sum(least(stop_t, first_t) - greatest(start_t, joined_t)) 
            * coalesce(any_value(computed.share) FILTER (state = 'client makes graphs'), 1) AS seconds,
        any_value(computed.cpu_seconds) FILTER (state = 'client computes' AND share < $waiting_share) AS cpu_seconds
    FROM _wall_time
    INNER JOIN beginnings USING (trace_id)
    LEFT JOIN computed USING (trace_id, state)
    WHERE start_t < first_t
        AND stop_t > joined_t
        AND state IN ('client makes graphs', 'client computes', 'client waits')
    GROUP BY ALL
),
-- Dask logs each call.
sent AS (
    SELECT trace_id, count(*) AS calls
    FROM events
    INNER JOIN beginnings USING (trace_id)
    WHERE topic = 'all' AND payload ->> '$.action' = 'scatter' AND t <= first_t
    GROUP BY trace_id
),
-- Time in which the client waited while the event loop of a worker was blocked: of the worker with most of it.
blocked AS (
    SELECT trace_id, max(seconds) AS seconds
    FROM (
        SELECT
            period.trace_id,
            stall.server_id,
            sum(least(stall.stop_t, period.stop_t, first_t) - greatest(stall.start_t, period.start_t)) AS seconds
        FROM (FROM _wall_time WHERE state = 'client waits') AS period
        INNER JOIN beginnings USING (trace_id)
        INNER JOIN (FROM raw.stall WHERE worker IS NOT NULL) AS stall
            ON period.trace_id = stall.trace_id
            AND stall.start_t < least(period.stop_t, first_t)
            AND stall.stop_t > period.start_t
        GROUP BY ALL
    )
    GROUP BY trace_id
),
found AS (
    SELECT
        trace_id,
        sum(seconds) AS seconds,
        arg_max(state, seconds) AS state,
        max(cpu_seconds) AS cpu_seconds,
        list(format('{:.1f} s {}', states.seconds, words) ORDER BY seconds DESC, state)
            FILTER (states.seconds >= $named_share * all_seconds) AS parts
    FROM (SELECT *, sum(seconds) OVER (PARTITION BY trace_id) AS all_seconds FROM states) AS states
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    if(cpu_seconds IS NULL, 'medium', 'low') AS confidence,
    format(
        'Workers were there before the first task was submitted, while the client spent {:.1f} s: {}.{}{}',
        found.seconds,
        array_to_string(parts, '; '),
        coalesce(if(is_blocked, format(
            ' For up to {:.1f} s of the waits, the event loop of a worker was blocked.', blocked.seconds
        ), NULL), ''),
        coalesce(format(
            ' Its own work took {:.1f} s of CPU time, on a host without free cores: it can have waited for a core, or for'
            ' something else, such as files.', cpu_seconds
        ), '')
    ) AS sentence,
    found.seconds * mean_nthreads AS core_seconds,
    $least_saved * found.seconds AS wall_seconds_min,
    found.seconds AS wall_seconds_max,
    CASE
        WHEN state = 'client makes graphs'
            THEN 'Make smaller graphs: fewer partitions, columns and tasks, or submit a first part while the rest is made.'
        WHEN state = 'client computes'
            THEN 'Move this work into tasks, do it before the workers start, or submit what does not need it first.'
        WHEN is_blocked
            THEN 'Look for what blocks the event loops of workers then, such as the setup of a plugin: let a preload do it'
            ' before the program begins, or the first tasks.'
        WHEN calls = 1 THEN 'Let tasks load the data that the client sent to workers (client.scatter).'
        WHEN calls > 1
            THEN 'Let tasks load the data that the client sent to workers, or send it in one call (client.scatter with a'
            ' list).'
        ELSE 'If the client sends data, let tasks load it instead, or send it in one call (client.scatter with a list). If'
            ' it waits for workers, submit tasks before all of them have joined.'
    END AS change,
    'SELECT start_t, seconds, state FROM wall_time ORDER BY start_t' AS evidence,
    trace_id
FROM (
    SELECT found.*, blocked.seconds >= 0.5 * found.seconds AND state = 'client waits' AS is_blocked
    FROM found
    LEFT JOIN blocked USING (trace_id)
) AS found
INNER JOIN _run_size USING (trace_id)
LEFT JOIN blocked USING (trace_id)
LEFT JOIN sent USING (trace_id)
WHERE found.seconds >= greatest($min_seconds, $min_share * run_seconds);
