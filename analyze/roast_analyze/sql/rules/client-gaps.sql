-- Workers that waited for the client.
-- Between graphs, the workers have nothing to do. Short gaps are the round trip to the client,
-- which longer gaps contain as well. The time before the first graph is not counted, and neither is
-- that between the programs of two clients. Of a gap that
-- ends with a large graph, only the share counts that the client spent outside of Dask. A client that
-- submits tasks one by one, and works in between, also leaves threads idle while a few tasks compute; not if
-- their graphs are large together, since it is not known how long the client prepares and sends their data.
-- Uses are those of core_time.
-- Explains: between graphs, tail, dependencies
-- Source: Dask best practices, "Avoid calling compute repeatedly"
-- Documentation: https://docs.dask.org/en/stable/best-practices.html
-- $min_seconds = 0.5: duration of a gap
-- $stated_share = 0.5: share of the gaps above which it is stated that the client waited, or what it did is not known
-- $large_graph_bytes = 1e7: size of a graph that explains a gap
-- $part_bytes = 1e6: size of each of many graphs that are large together
-- $total_bytes = 1e8: size of these graphs together
WITH buckets AS (
    SELECT
        trace_id,
        t,
        between_seconds AS idle_seconds,
        tail_seconds + dependencies_seconds + between_seconds AS all_idle_seconds,
        seconds,
        -- Not until the next row: times without any worker have no rows.
        bucket.width
    FROM _bucket_uses
    INNER JOIN _core_time_buckets AS bucket USING (trace_id)
),
numbered AS (
    SELECT
        *,
        count(*) FILTER (idle_seconds = 0) OVER (PARTITION BY trace_id ORDER BY t) AS gap
    FROM buckets
),
gaps AS (
    SELECT
        trace_id,
        min(t) AS start_t,
        max(t + width) AS stop_t,
        sum(idle_seconds) AS idle_seconds,
        sum(width * idle_seconds / seconds) AS gap_seconds
    FROM numbered
    WHERE idle_seconds > 0
    GROUP BY trace_id, gap
),
before_large_graphs AS (
    SELECT
        gaps.trace_id,
        gaps.start_t,
        coalesce(sum(
            least(activity.stop_t, gaps.stop_t) - greatest(activity.start_t, gaps.start_t)
        ) FILTER (activity.activity = 'own'), 0) / (gaps.stop_t - gaps.start_t) AS share
    FROM gaps
    LEFT JOIN client_activity AS activity
        ON gaps.trace_id = activity.trace_id
        AND activity.start_t < gaps.stop_t
        AND activity.stop_t > gaps.start_t
    WHERE EXISTS (
        FROM graph_updates AS update
        WHERE update.trace_id = gaps.trace_id
            AND update.graph_bytes >= $large_graph_bytes
            AND update.t BETWEEN gaps.start_t AND gaps.stop_t + 1
    )
    GROUP BY gaps.trace_id, gaps.start_t, gaps.stop_t
),
client AS (
    SELECT
        trace_id,
        start_t,
        stop_t,
        gap_seconds * coalesce(share, 1) AS gap_seconds,
        idle_seconds * coalesce(share, 1) AS idle_seconds
    FROM gaps
    LEFT JOIN before_large_graphs USING (trace_id, start_t)
),
-- What the client did in the gaps, as far as it was not its own work or functions of Dask: a user can have typed.
activities AS (
    SELECT
        client.trace_id,
        period.state,
        sum(least(client.stop_t, period.stop_t) - greatest(client.start_t, period.start_t)) AS seconds
    FROM client
    INNER JOIN (FROM _wall_time WHERE state IN ('client not known', 'client waits')) AS period
        ON client.trace_id = period.trace_id
        AND client.start_t < period.stop_t
        AND client.stop_t > period.start_t
    WHERE gap_seconds >= $min_seconds
    GROUP BY client.trace_id, period.state
),
found AS (
    SELECT
        trace_id,
        count(*) AS gaps,
        max(gap_seconds) AS longest_seconds,
        sum(gap_seconds) AS gap_seconds,
        sum(idle_seconds) AS idle_seconds
    FROM client
    WHERE gap_seconds >= $min_seconds
        AND trace_id NOT IN (SELECT trace_id FROM _slow_submissions)
    GROUP BY trace_id
),
slow AS (
    SELECT
        submissions.trace_id,
        any_value(submissions) AS submissions,
        any_value(delay_seconds) AS delay_seconds,
        sum(all_idle_seconds) AS idle_seconds
    FROM _slow_submissions AS submissions
    INNER JOIN buckets USING (trace_id)
    WHERE submissions.trace_id NOT IN (
        SELECT trace_id
        FROM graph_updates
        WHERE graph_bytes >= $part_bytes
        GROUP BY trace_id
        HAVING sum(graph_bytes) >= $total_bytes
    )
    GROUP BY submissions.trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    if(state IS NULL, 'high', 'medium') AS confidence,
    CASE
        WHEN gaps = 1 THEN format(
            'The workers had nothing to do for {:.1f} s between two graphs of the client.', gap_seconds
        )
        ELSE format(
            'The workers had nothing to do for {:.1f} s in {} gaps between graphs (the longest {:.1f} s).',
            gap_seconds, gaps, longest_seconds
        )
    END
    || CASE state
        WHEN 'client not known' THEN ' What the client did meanwhile is not known.'
        WHEN 'client waits' THEN ' The client waited for Dask meanwhile, as for workers or for data that it sent to them.'
        ELSE ''
    END AS sentence,
    idle_seconds AS core_seconds,
    0.65 * gap_seconds AS wall_seconds_min,
    gap_seconds AS wall_seconds_max,
    CASE
        WHEN state = 'client waits'
            THEN 'If the client waits for workers, submit tasks before all of them have joined. If it sends data, let tasks'
            ' load it instead.'
        ELSE concat(
            'Submit the next graph before working on a result: compute all in one call (dask.compute(a, b)), or use'
            ' futures with as_completed().',
            if(
                state IS NULL, '', ' If a user worked interactively, let the cluster shrink meanwhile (cluster.adapt).'
            )
        )
    END AS change,
    'SELECT t, tasks, update_seconds, graph_bytes FROM graph_updates ORDER BY t' AS evidence,
    trace_id
FROM (
    SELECT found.*, activities.state
    FROM found
    LEFT JOIN activities
        ON found.trace_id = activities.trace_id AND activities.seconds > $stated_share * gap_seconds
)
UNION ALL BY NAME
SELECT
    NULL::VARCHAR AS entity,
    'medium' AS confidence,
    format(
        'The client submitted tasks {} times, each time {} s (median) after the last result: threads had'
        ' nothing to do for {:,.1f} core-seconds.', submissions, _three_digits(delay_seconds), idle_seconds
    ) AS sentence,
    idle_seconds AS core_seconds,
    0.5 * idle_seconds / mean_nthreads AS wall_seconds_min,
    1.1 * idle_seconds / mean_nthreads AS wall_seconds_max,
    'Submit many tasks at once (client.map), so that each thread has one waiting, and move the work of the'
    ' client between them into tasks.' AS change,
    'SELECT t, tasks, update_seconds FROM graph_updates ORDER BY t' AS evidence,
    trace_id
FROM slow
INNER JOIN _run_size USING (trace_id);
