-- Times between graphs, in which the workers had nothing to do.
-- Short ones are the way to the client and back, which is a part of the others as well. The time before the first graph, and waiting for
-- a graph that is large, are not counted. Uses are those of core_time.
-- Source: Dask best practices, "Avoid calling compute repeatedly"
-- Documentation: https://docs.dask.org/en/stable/best-practices.html
-- $min_seconds = 0.5: duration of a gap
-- $large_graph_bytes = 1e7: size of a graph that explains a gap
WITH buckets AS (
    SELECT
        trace_id,
        t,
        between_seconds AS idle_seconds,
        seconds,
        lead(t) OVER (PARTITION BY trace_id ORDER BY t) - t AS width
    FROM _bucket_uses
),
numbered AS (
    SELECT
        *,
        count(*) FILTER (idle_seconds = 0) OVER (PARTITION BY trace_id ORDER BY t) AS gap
    FROM buckets
    WHERE width IS NOT NULL
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
    HAVING gap_seconds >= $min_seconds
),
client AS (
    SELECT gaps.*
    FROM gaps
    WHERE NOT EXISTS (
        FROM graph_updates AS update
        WHERE update.trace_id = gaps.trace_id
            AND update.graph_bytes >= $large_graph_bytes
            AND update.t BETWEEN gaps.start_t AND gaps.stop_t + 1
    )
),
found AS (
    SELECT
        trace_id,
        count(*) AS gaps,
        max(gap_seconds) AS longest_seconds,
        sum(gap_seconds) AS gap_seconds,
        sum(idle_seconds) AS idle_seconds
    FROM client
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    CASE
        WHEN gaps = 1 THEN format(
            'The workers had nothing to do for {:.1f} s between two graphs of the client.', gap_seconds
        )
        ELSE format(
            'The workers had nothing to do for {:.1f} s in {} gaps between graphs (the longest {:.1f} s).',
            gap_seconds, gaps, longest_seconds
        )
    END AS sentence,
    idle_seconds AS core_seconds,
    0.65 * gap_seconds AS wall_seconds_min,
    gap_seconds AS wall_seconds_max,
    'Submit the next graph before working on a result: compute all in one call (dask.compute(a, b)), or use'
    ' futures with as_completed().' AS change,
    'SELECT t, tasks, update_seconds, graph_bytes FROM graph_updates ORDER BY t' AS evidence,
    trace_id
FROM found;
