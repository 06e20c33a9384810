-- Needs: _span_ancestry, _task_runs, _tasks, activities, spans
-- Tasks and their metrics belong to one span. Totals of a span add up all spans below it, each
-- once.
CREATE VIEW span_totals AS
WITH named AS (
    SELECT *, row_number() OVER (PARTITION BY trace_id ORDER BY t, len(path), span_id) AS place FROM spans
),
parts AS (
    SELECT
        trace_id,
        span_id,
        count(*) AS tasks,
        count(submitted_span) AS other_span_tasks
    FROM _tasks
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT
        trace_id,
        span_id,
        count(*) AS task_runs,
        count(*) FILTER (outcome IN ('erred', 'retried', 'lost')) AS failed_attempts,
        sum(compute_seconds) AS compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(nbytes) AS output_bytes,
        min(processing_t) AS first_t,
        max(end_t) AS last_t
    FROM _task_runs
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
    SELECT trace_id, span_id FROM spans
    UNION ALL BY NAME
    SELECT trace_id, parent_id AS span_id FROM spans WHERE parent_id IS NOT NULL
),
own AS (
    SELECT
        trace_id,
        span_id,
        coalesce(sum(tasks), 0)::BIGINT AS tasks,
        coalesce(sum(other_span_tasks), 0)::BIGINT AS other_span_tasks,
        coalesce(sum(task_runs), 0)::BIGINT AS task_runs,
        coalesce(sum(failed_attempts), 0)::BIGINT AS failed_attempts,
        sum(compute_seconds) AS compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(output_bytes)::BIGINT AS output_bytes,
        sum(metric_seconds) AS metric_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(noncpu_seconds) AS noncpu_seconds,
        min(first_t) AS first_t,
        max(last_t) AS last_t
    FROM parts
    GROUP BY trace_id, span_id
),
ancestry AS (
    FROM _span_ancestry
    UNION
    SELECT trace_id, span_id, span_id FROM own
),
totals AS (
    SELECT
        ancestry.trace_id,
        ancestry.ancestor,
        count(*) - 1 AS descendants,
        sum(tasks)::BIGINT AS tasks,
        sum(other_span_tasks)::BIGINT AS other_span_tasks,
        sum(task_runs)::BIGINT AS task_runs,
        sum(failed_attempts)::BIGINT AS failed_attempts,
        sum(compute_seconds) AS compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(output_bytes)::BIGINT AS output_bytes,
        sum(metric_seconds) AS metric_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(noncpu_seconds) AS noncpu_seconds,
        min(first_t) AS first_t,
        max(last_t) AS last_t
    FROM ancestry
    INNER JOIN own
        ON ancestry.trace_id = own.trace_id AND ancestry.span_id IS NOT DISTINCT FROM own.span_id
    GROUP BY ancestry.trace_id, ancestry.ancestor
)
SELECT
    own.span_id,
    named.name,
    named.path,
    named.parent_id,
    own.* EXCLUDE (trace_id, span_id),
    own.last_t - own.first_t AS wall_seconds,
    totals.descendants,
    totals.tasks AS total_tasks,
    totals.other_span_tasks AS total_other_span_tasks,
    totals.task_runs AS total_task_runs,
    totals.failed_attempts AS total_failed_attempts,
    totals.compute_seconds AS total_compute_seconds,
    totals.transfer_seconds AS total_transfer_seconds,
    totals.output_bytes AS total_output_bytes,
    totals.metric_seconds AS total_metric_seconds,
    totals.cpu_seconds AS total_cpu_seconds,
    totals.noncpu_seconds AS total_noncpu_seconds,
    totals.first_t AS total_first_t,
    totals.last_t AS total_last_t,
    totals.last_t - totals.first_t AS total_wall_seconds,
    own.trace_id
FROM own
INNER JOIN totals
    ON own.trace_id = totals.trace_id AND own.span_id IS NOT DISTINCT FROM totals.ancestor
LEFT JOIN named
    ON own.trace_id = named.trace_id AND own.span_id = named.span_id
ORDER BY own.trace_id, named.place NULLS LAST, own.span_id;

COMMENT ON VIEW span_totals IS 'Totals by Dask span. One row per span, in the order in which they began. Columns without total_ cover the span alone and add up to the whole run; columns with total_ include nested spans. A last row without span_id covers work outside any span, such as transfers in worker metrics.';
COMMENT ON COLUMN span_totals.span_id IS 'ID of the span. Null for work outside any span.';
COMMENT ON COLUMN span_totals.name IS 'Span name. Null if its record is missing.';
COMMENT ON COLUMN span_totals.path IS 'Names from the outermost span to this one.';
COMMENT ON COLUMN span_totals.parent_id IS 'ID of the enclosing span.';
COMMENT ON COLUMN span_totals.tasks IS 'Keys that Dask files under the span.';
COMMENT ON COLUMN span_totals.other_span_tasks IS 'Those of them that were submitted in another span: tasks.is_other_span.';
COMMENT ON COLUMN span_totals.task_runs IS 'Attempts at its tasks.';
COMMENT ON COLUMN span_totals.failed_attempts IS 'Attempts that erred, were retried, or were lost with their worker.';
COMMENT ON COLUMN span_totals.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN span_totals.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN span_totals.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN span_totals.metric_seconds IS 'Time in the span reported by workers through fine performance metrics (see activities).';
COMMENT ON COLUMN span_totals.cpu_seconds IS 'CPU time of threads, as part of metric_seconds.';
COMMENT ON COLUMN span_totals.noncpu_seconds IS 'Time threads spent waiting, as part of metric_seconds.';
COMMENT ON COLUMN span_totals.first_t IS 'First dispatch of an attempt to a worker, in seconds since the epoch.';
COMMENT ON COLUMN span_totals.last_t IS 'Last end of an attempt as recorded by the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN span_totals.wall_seconds IS 'last_t - first_t. Spans run concurrently, so this does not add up.';
COMMENT ON COLUMN span_totals.descendants IS 'Number of nested spans, at any depth.';
COMMENT ON COLUMN span_totals.total_tasks IS 'tasks, with nested spans.';
COMMENT ON COLUMN span_totals.total_other_span_tasks IS 'other_span_tasks, with nested spans.';
COMMENT ON COLUMN span_totals.total_task_runs IS 'task_runs, with nested spans.';
COMMENT ON COLUMN span_totals.total_failed_attempts IS 'failed_attempts, with nested spans.';
COMMENT ON COLUMN span_totals.total_compute_seconds IS 'compute_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_transfer_seconds IS 'transfer_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_output_bytes IS 'output_bytes, with nested spans.';
COMMENT ON COLUMN span_totals.total_metric_seconds IS 'metric_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_cpu_seconds IS 'cpu_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_noncpu_seconds IS 'noncpu_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_first_t IS 'first_t, with nested spans.';
COMMENT ON COLUMN span_totals.total_last_t IS 'last_t, with nested spans.';
COMMENT ON COLUMN span_totals.total_wall_seconds IS 'wall_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.trace_id IS 'ID of the trace.';
