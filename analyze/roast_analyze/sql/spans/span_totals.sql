-- Needs: _span_sums, spans
CREATE VIEW span_totals AS
WITH named AS (
    SELECT *, row_number() OVER (PARTITION BY trace_id ORDER BY t, len(path), span_id) AS place FROM spans
)
SELECT
    sums.span_id,
    named.name,
    named.path,
    named.parent_id,
    coalesce(own.tasks, 0)::BIGINT AS tasks,
    coalesce(own.other_span_tasks, 0)::BIGINT AS other_span_tasks,
    coalesce(own.task_runs, 0)::BIGINT AS task_runs,
    coalesce(own.failed_attempts, 0)::BIGINT AS failed_attempts,
    own.compute_seconds,
    own.transfer_seconds,
    try_cast(own.output_bytes AS BIGINT) AS output_bytes,
    own.metric_seconds,
    own.cpu_seconds,
    own.noncpu_seconds,
    own.first_t,
    own.last_t,
    own.last_t - own.first_t AS wall_seconds,
    (totals.spans - 1)::BIGINT AS descendants,
    coalesce(totals.tasks, 0)::BIGINT AS total_tasks,
    coalesce(totals.other_span_tasks, 0)::BIGINT AS total_other_span_tasks,
    coalesce(totals.task_runs, 0)::BIGINT AS total_task_runs,
    coalesce(totals.failed_attempts, 0)::BIGINT AS total_failed_attempts,
    totals.compute_seconds AS total_compute_seconds,
    totals.transfer_seconds AS total_transfer_seconds,
    try_cast(totals.output_bytes AS BIGINT) AS total_output_bytes,
    totals.metric_seconds AS total_metric_seconds,
    totals.cpu_seconds AS total_cpu_seconds,
    totals.noncpu_seconds AS total_noncpu_seconds,
    totals.first_t AS total_first_t,
    totals.last_t AS total_last_t,
    totals.last_t - totals.first_t AS total_wall_seconds,
    sums.trace_id
FROM _span_sums AS sums
LEFT JOIN named
    ON sums.trace_id = named.trace_id AND sums.span_id = named.span_id
ORDER BY sums.trace_id, named.place NULLS LAST, sums.span_id;

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
