-- Needs: _is_failed, _span_nodes, _task_runs, _tasks, _trace_range, activities, spans
-- Tasks and their metrics belong to one span. Totals of a span add up all spans below it, each
-- once. In each step, a node receives what the nodes at the other end of their doubled pointers
-- have added up so far.
CREATE VIEW _span_sums AS
WITH RECURSIVE parts AS (
    SELECT
        trace_id,
        span_id,
        count(*) AS tasks,
        count(submitted_span) AS other_span_tasks,
        min(t) AS submitted_t
    FROM _tasks
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT
        trace_id,
        span_id,
        count(*) AS task_runs,
        count(*) FILTER (_is_failed(outcome)) AS failed_attempts,
        sum(compute_seconds) AS compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(nbytes) AS output_bytes,
        min(processing_t) AS first_t,
        max(end_t) AS last_t,
        CASE
            WHEN bool_or(end_t IS NULL) THEN max(recording.stop_t)
            ELSE max(coalesce(compute_stop_t, end_t))
        END AS active_until_t
    FROM _task_runs
    INNER JOIN _trace_range AS recording USING (trace_id)
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT
        trace_id,
        span_id,
        sum(seconds) AS metric_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(noncpu_seconds) AS noncpu_seconds
    FROM activities
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT trace_id, span_id, sum(delta) AS execute_seconds
    FROM raw.fine_metric
    WHERE context = 'execute' AND unit = 'seconds'
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT trace_id, span_id FROM spans
    UNION ALL BY NAME
    SELECT trace_id, span_id FROM _span_nodes
),
own AS (
    SELECT
        trace_id,
        span_id,
        sum(COLUMNS(* EXCLUDE (trace_id, span_id, submitted_t, first_t, last_t, active_until_t))),
        min(COLUMNS(['submitted_t', 'first_t'])),
        max(COLUMNS(['last_t', 'active_until_t']))
    FROM parts
    GROUP BY trace_id, span_id
),
-- Work outside of spans is a node of its own.
placed AS MATERIALIZED (
    SELECT own.*, coalesce(node, -row_number() OVER ()) AS node, above
    FROM own
    LEFT JOIN _span_nodes USING (trace_id, span_id)
),
totals AS (
    SELECT
        0 AS step,
        node,
        max(above) AS above,
        count(*)::HUGEINT AS spans,
        sum(COLUMNS(placed.* EXCLUDE (
            trace_id, span_id, node, above, submitted_t, first_t, last_t, active_until_t
        ))),
        min(COLUMNS(['submitted_t', 'first_t'])),
        max(COLUMNS(['last_t', 'active_until_t']))
    FROM placed
    GROUP BY node
    UNION ALL
    SELECT
        step + 1,
        node,
        max(above),
        sum(COLUMNS(* EXCLUDE (
            step, node, above, submitted_t, first_t, last_t, active_until_t
        ))),
        min(COLUMNS(['submitted_t', 'first_t'])),
        max(COLUMNS(['last_t', 'active_until_t']))
    FROM (
        SELECT totals.* REPLACE (higher.above AS above)
        FROM totals
        LEFT JOIN totals AS higher ON totals.above = higher.node
        UNION ALL
        SELECT * REPLACE (above AS node, NULL AS above) FROM totals WHERE above IS NOT NULL
    )
    WHERE EXISTS (FROM totals WHERE above IS NOT NULL)
    GROUP BY step, node
)
SELECT placed.trace_id, placed.span_id, placed AS own, totals
FROM placed
INNER JOIN totals USING (node)
WHERE totals.step = (SELECT max(step) FROM totals);
