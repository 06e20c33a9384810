-- Unused cluster.
-- Workers were present, and no client was connected, or the last task had ended. This can be intended, so the
-- duration is stated without a saving. The time between two programs of a shared scheduler is nobody's.
-- Records: task
-- Applies: EXISTS (FROM _wall_time WHERE state IN ('no client', 'ending'))
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
    SELECT trace_id, min(stop_t) AS first_left_t, max(start_t) AS last_joined_t FROM _client_presence GROUP BY trace_id
),
found AS (
    SELECT
        trace_id,
        sum(least(stop_t, last_t) - greatest(start_t, first_t)) AS seconds,
        coalesce(sum(least(stop_t, last_t) - greatest(start_t, first_t)) FILTER (state = 'no client'), 0)
            AS clientless_seconds
    FROM _wall_time
    INNER JOIN presence USING (trace_id)
    LEFT JOIN sessions USING (trace_id)
    WHERE
        state IN ('no client', 'ending') AND stop_t > first_t AND start_t < last_t
        AND NOT coalesce(state = 'no client' AND start_t >= first_left_t AND start_t < last_joined_t, false)
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    format(
        'Workers were there and unused for {:.1f} of {:.1f} s: {}.',
        found.seconds, run_seconds,
        concat_ws(
            '; ',
            CASE WHEN clientless_seconds >= $named_seconds THEN format('{:.1f} s without a client', clientless_seconds) END,
            CASE WHEN found.seconds - clientless_seconds >= $named_seconds
                THEN format('{:.1f} s after the last task', found.seconds - clientless_seconds) END
        )
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    'Close the cluster at the end of the program, or let it shrink: cluster.adapt(minimum=0), or the setting'
    ' distributed.scheduler.idle-timeout.' AS change,
    'SELECT start_t, seconds, state FROM wall_time ORDER BY start_t' AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
WHERE found.seconds >= greatest($min_seconds, $min_share * run_seconds);
