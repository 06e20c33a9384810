-- Unused cluster.
-- Workers were present, and no client that submitted tasks was connected, or the last task had ended; the client may
-- have worked on results meanwhile. This can be intended, so the duration is stated without a saving. The time between
-- two programs of a shared scheduler is nobody's.
-- Records: task
-- Applies: EXISTS (FROM _wall_time WHERE state IN ('no client', 'ending', 'client computes'))
-- Explains: after last result, between graphs
-- Source: states of view wall_time
-- Documentation: https://docs.dask.org/en/stable/adaptive.html
-- $min_seconds = 10: time without use
-- $min_share = 0.2: the same, as a share of the run
-- $named_seconds = 0.05: time of one kind that is named
WITH presence AS (
    SELECT trace_id, min(from_t) AS first_t, max(to_t) AS last_t FROM _worker_presence GROUP BY trace_id
),
sessions AS (
    SELECT trace_id, min(stop_t) AS first_left_t, max(start_t) AS last_joined_t
    FROM _client_presence
    SEMI JOIN _working_clients USING (trace_id, client)
    GROUP BY trace_id
),
results AS (
    SELECT trace_id, max(end_t) AS last_result_t FROM _task_runs GROUP BY trace_id
),
unused AS (
    SELECT trace_id, state, greatest(start_t, first_t) AS start_t, least(stop_t, last_t) AS stop_t
    FROM _wall_time
    INNER JOIN presence USING (trace_id)
    LEFT JOIN sessions USING (trace_id)
    LEFT JOIN results USING (trace_id)
    WHERE
        (state IN ('no client', 'ending') OR state = 'client computes' AND start_t >= last_result_t)
        AND stop_t > first_t AND start_t < last_t
        AND NOT coalesce(state = 'no client' AND start_t >= first_left_t AND start_t < last_joined_t, false)
),
found AS (
    SELECT
        trace_id,
        sum(stop_t - start_t) AS seconds,
        coalesce(sum(stop_t - start_t) FILTER (state = 'no client'), 0) AS clientless_seconds,
        coalesce(sum(stop_t - start_t) FILTER (state = 'client computes'), 0) AS client_seconds
    FROM unused
    GROUP BY trace_id
),
-- The function in which the client worked longest.
functions AS (
    SELECT
        trace_id,
        activity."function" AS name,
        sum(least(activity.stop_t, unused.stop_t) - greatest(activity.start_t, unused.start_t))
            AS name_seconds
    FROM unused
    INNER JOIN client_activity AS activity USING (trace_id)
    SEMI JOIN _working_clients AS working
        ON activity.trace_id = working.trace_id AND activity.client = working.client
    WHERE unused.state = 'client computes'
        AND activity.activity = 'own'
        AND activity.start_t < unused.stop_t
        AND activity.stop_t > unused.start_t
    GROUP BY trace_id, activity."function"
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY name_seconds DESC, name) = 1
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    format(
        'Workers were there and unused for {:.1f} of {:.1f} s: {}.',
        found.seconds, run_seconds,
        concat_ws(
            '; ',
            CASE WHEN clientless_seconds >= $named_seconds
                THEN format('{:.1f} s without a client that submitted tasks', clientless_seconds) END,
            CASE WHEN client_seconds >= $named_seconds
                THEN concat(
                    format('{:.1f} s in which the client worked after the last task', client_seconds),
                    format(', {:.1f} s of them in {}', name_seconds, functions.name)
                ) END,
            CASE WHEN found.seconds - clientless_seconds - client_seconds >= $named_seconds
                THEN format(
                    '{:.1f} s {}after the last task', found.seconds - clientless_seconds - client_seconds,
                    if(client_seconds >= $named_seconds, 'more ', '')
                ) END
        )
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    concat(
        CASE WHEN client_seconds >= 0.5 * found.seconds THEN
            'If the client works on results, let tasks do this work, or let them combine results, so that the client'
            ' receives fewer. '
        END,
        'Close the cluster at the end of the program, or let it shrink: cluster.adapt(minimum=0), or the setting'
        ' distributed.scheduler.idle-timeout.'
    ) AS change,
    'SELECT start_t, seconds, state FROM wall_time ORDER BY start_t' AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
LEFT JOIN functions USING (trace_id)
WHERE found.seconds >= greatest($min_seconds, $min_share * run_seconds);
