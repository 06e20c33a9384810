-- Needs: _is_released, _process_addresses, _task_runs, _worker_presence
-- Rescheduled attempts, and cancelled ones, which a worker goes on computing. It reports their time
-- by prefix when it has finished. It belongs to the attempts that ended last before the report: those
-- that ended within a second of each other. They take equal parts: all that were rescheduled, and of
-- those that were cancelled as many as the worker has threads, first those that had begun to execute
-- by the worker's last heartbeat, then those that were dispatched first.
CREATE VIEW _released_attempts AS
WITH released AS (
    SELECT
        run.seq,
        run.trace_id,
        run.worker,
        run.prefix,
        run.span_id,
        run.outcome = 'cancelled' AS is_cancelled,
        run.processing_t,
        run.execute_start_t,
        run.end_t,
        worker.nthreads,
        lag(run.end_t) OVER (
            PARTITION BY run.trace_id, run.worker, run.prefix, run.span_id ORDER BY run.end_t, run.seq
        ) AS before_t
    FROM _task_runs AS run
    INNER JOIN _process_addresses AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        AND run.processing_t >= process.from_t
        AND run.processing_t < process.until_t
    INNER JOIN _worker_presence AS worker ON process.process = worker.process
    WHERE _is_released(run.outcome)
),
grouped AS (
    SELECT
        *,
        max(if(end_t - before_t <= 1, NULL, end_t)) OVER (
            PARTITION BY trace_id, worker, prefix, span_id ORDER BY end_t, seq
        ) AS group_t
    FROM released
),
reported AS (
    SELECT
        groups.trace_id,
        groups.worker,
        groups.prefix,
        groups.span,
        groups.group_t,
        sum(metric.delta) AS seconds,
        max(metric.t) AS last_t
    FROM (
        SELECT trace_id, worker, prefix, coalesce(span_id, '') AS span, t, delta
        FROM raw.fine_metric
        WHERE context = 'execute' AND activity = 'cancelled' AND unit = 'seconds'
    ) AS metric
    ASOF INNER JOIN (
        SELECT DISTINCT trace_id, worker, prefix, coalesce(span_id, '') AS span, group_t FROM grouped
    ) AS groups
        ON metric.trace_id = groups.trace_id
        AND metric.worker = groups.worker
        AND metric.prefix = groups.prefix
        AND metric.span = groups.span
        AND metric.t >= groups.group_t
    GROUP BY ALL
),
-- Cancelled attempts beyond the number of threads waited on the worker.
computed AS (
    SELECT *
    FROM grouped
    QUALIFY NOT is_cancelled OR row_number() OVER (
        PARTITION BY trace_id, worker, prefix, span_id, group_t, is_cancelled
        ORDER BY execute_start_t IS NULL, processing_t, seq
    ) <= nthreads
),
parts AS (
    SELECT
        computed.*,
        reported.last_t,
        reported.seconds / count(*) OVER (
            PARTITION BY computed.trace_id, computed.worker, computed.prefix, span_id, computed.group_t
        ) AS seconds
    FROM computed
    LEFT JOIN reported
        ON computed.trace_id = reported.trace_id
        AND computed.worker = reported.worker
        AND computed.prefix = reported.prefix
        AND coalesce(computed.span_id, '') = reported.span
        AND computed.group_t = reported.group_t
)
SELECT
    seq,
    seconds IS NOT NULL OR execute_start_t IS NOT NULL AS is_reported,
    -- The worker reports the end of a rescheduled attempt at once.
    CASE
        WHEN execute_start_t IS NOT NULL THEN execute_start_t
        WHEN NOT is_cancelled THEN greatest(end_t - seconds, processing_t)
    END AS start_t,
    CASE
        WHEN is_cancelled THEN least(coalesce(execute_start_t, processing_t) + seconds, last_t)
        ELSE end_t
    END AS stop_t
FROM parts;
