-- Needs: _span_ancestry, _task_runs, _tasks, _trace_range, _worker_presence, spans
-- As in Span.cumulative_worker_metrics of distributed: the thread time of the cluster while a span
-- was active, minus the execute metrics of the span and of those below it. Metrics of lost workers
-- are missing, so computations on them would count as idle: the compute time is subtracted if it is
-- longer.
CREATE VIEW span_idle AS
WITH own AS (
    SELECT trace_id, span_id, min(t) AS start_t FROM _tasks GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT
        trace_id,
        span_id,
        CASE
            WHEN bool_or(run.end_t IS NULL) THEN max(recording.stop_t)
            ELSE max(coalesce(run.compute_stop_t, run.end_t))
        END AS stop_t,
        sum(run.compute_seconds) AS compute_seconds
    FROM _task_runs AS run
    INNER JOIN _trace_range AS recording USING (trace_id)
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT trace_id, span_id, sum(delta) AS known_seconds
    FROM raw.fine_metric
    WHERE context = 'execute' AND unit = 'seconds'
    GROUP BY trace_id, span_id
),
active AS (
    SELECT
        ancestry.trace_id,
        ancestry.ancestor AS span_id,
        min(own.start_t) AS start_t,
        max(own.stop_t) AS stop_t,
        sum(own.compute_seconds) AS compute_seconds,
        sum(own.known_seconds) AS known_seconds
    FROM _span_ancestry AS ancestry
    INNER JOIN own USING (trace_id, span_id)
    GROUP BY ancestry.trace_id, ancestry.ancestor
),
offered AS (
    SELECT
        active.trace_id,
        active.span_id,
        sum(
            presence.nthreads
            * greatest(least(presence.to_t, stop_t) - greatest(presence.from_t, start_t), 0)
        ) AS thread_seconds
    FROM active
    INNER JOIN _worker_presence AS presence USING (trace_id)
    -- least() and greatest() ignore nulls.
    WHERE active.start_t IS NOT NULL AND active.stop_t IS NOT NULL
    GROUP BY active.trace_id, active.span_id
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
