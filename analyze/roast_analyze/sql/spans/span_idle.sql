-- Needs: _span_sums, _worker_presence, spans
-- As in Span.cumulative_worker_metrics of distributed: the thread time of the cluster while a span
-- was active, minus the execute metrics of the span and of those below it. Metrics of lost workers
-- are missing, so computations on them would count as idle: the compute time is subtracted if it is
-- longer.
CREATE VIEW span_idle AS
WITH active AS (
    SELECT
        trace_id,
        span_id,
        totals.submitted_t AS start_t,
        totals.active_until_t AS stop_t,
        totals.compute_seconds,
        totals.execute_seconds AS known_seconds
    FROM _span_sums
),
changes AS (
    SELECT trace_id, from_t AS t, nthreads AS change
    FROM _worker_presence
    WHERE nthreads IS NOT NULL AND from_t < to_t
    UNION ALL
    SELECT trace_id, to_t, -nthreads
    FROM _worker_presence
    WHERE nthreads IS NOT NULL AND from_t < to_t
),
levels AS (
    SELECT
        trace_id,
        t,
        sum(sum(change)) OVER in_order AS nthreads,
        lead(t) OVER in_order AS until_t
    FROM changes
    GROUP BY trace_id, t
    WINDOW in_order AS (PARTITION BY trace_id ORDER BY t)
),
-- Threads of the cluster from t on, and their time before.
offers AS (
    SELECT
        trace_id,
        t,
        nthreads,
        coalesce(sum(nthreads * (until_t - t)) OVER (
            PARTITION BY trace_id ORDER BY t
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS seconds_before
    FROM levels
),
offered AS (
    SELECT
        active.trace_id,
        active.span_id,
        greatest(
            coalesce(until.seconds_before + until.nthreads * (stop_t - until.t), 0)
            - coalesce(since.seconds_before + since.nthreads * (start_t - since.t), 0),
            0
        ) AS thread_seconds
    FROM active
    ASOF LEFT JOIN offers AS since
        ON active.trace_id = since.trace_id AND active.start_t >= since.t
    ASOF LEFT JOIN offers AS until
        ON active.trace_id = until.trace_id AND active.stop_t >= until.t
    -- greatest() ignores nulls.
    WHERE active.start_t IS NOT NULL
        AND active.stop_t IS NOT NULL
        AND active.trace_id IN (
            SELECT trace_id FROM _worker_presence WHERE nthreads IS NOT NULL
        )
)
SELECT
    spans.span_id,
    spans.name,
    spans.path,
    active.start_t,
    active.stop_t,
    offered.thread_seconds,
    active.known_seconds,
    CASE
        WHEN offered.thread_seconds IS NOT NULL AND active.known_seconds IS NOT NULL
            THEN greatest(
                offered.thread_seconds - greatest(active.known_seconds, active.compute_seconds), 0
            )
    END AS idle_seconds,
    idle_seconds / nullif(offered.thread_seconds, 0) AS idle_share,
    spans.trace_id
FROM spans
LEFT JOIN active USING (trace_id, span_id)
LEFT JOIN offered USING (trace_id, span_id)
ORDER BY spans.trace_id, idle_seconds DESC NULLS LAST, spans.span_id;

COMMENT ON VIEW span_idle IS 'Thread time that was idle or spent on other spans while a span was active. One row per span, with the spans below it; most idle time first. As "idle or other spans" of Span.cumulative_worker_metrics in distributed, except that computations whose metrics are missing are not idle.';
COMMENT ON COLUMN span_idle.span_id IS 'ID of the span.';
COMMENT ON COLUMN span_idle.name IS 'Span name, without the enclosing spans.';
COMMENT ON COLUMN span_idle.path IS 'Names from the outermost span to this one.';
COMMENT ON COLUMN span_idle.start_t IS 'First submission of a task of the span, in seconds since the epoch.';
COMMENT ON COLUMN span_idle.stop_t IS 'End of its last computation, in seconds since the epoch; end of the recording if an attempt has no end.';
COMMENT ON COLUMN span_idle.thread_seconds IS 'Thread time of the cluster from start_t to stop_t. Null if the number of threads is unknown.';
COMMENT ON COLUMN span_idle.known_seconds IS 'Seconds of the fine metrics of its tasks (context execute). Null if none were recorded.';
COMMENT ON COLUMN span_idle.idle_seconds IS 'thread_seconds minus known_seconds, or minus the compute time of its tasks if that is longer, at least 0. Null if known_seconds is null.';
COMMENT ON COLUMN span_idle.idle_share IS 'idle_seconds / thread_seconds.';
COMMENT ON COLUMN span_idle.trace_id IS 'ID of the trace.';
