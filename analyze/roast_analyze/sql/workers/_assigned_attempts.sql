-- Needs: _chunks, _discarded_results, _is_kept, _process_addresses, _task_runs, _worker_presence
-- Attempts that were assigned to a worker process, and the outcome of each. An attempt at a chunk
-- without a task, as without a cluster, computed from its start to its end.
-- A worker goes on computing a cancelled task, and reports the time when it has finished. As many
-- attempts as the worker has threads, those that were dispatched first, take equal parts of it.
CREATE VIEW _assigned_attempts AS
WITH datasets AS (
    SELECT seq, any_value(dataset) AS dataset FROM _chunks WHERE seq IS NOT NULL GROUP BY seq
),
cancelled_seconds AS (
    SELECT trace_id, worker, prefix, span_id, sum(delta) AS seconds, max(t) AS last_t
    FROM raw.fine_metric
    WHERE context = 'execute' AND activity = 'cancelled' AND unit = 'seconds'
    GROUP BY ALL
),
cancelled AS (
    SELECT
        run.seq,
        least(run.processing_t + reported.seconds / least(count(*) OVER same, worker.nthreads), last_t)
            AS stop_t
    FROM _task_runs AS run
    INNER JOIN cancelled_seconds AS reported
        ON run.trace_id = reported.trace_id
        AND run.worker = reported.worker
        AND run.prefix = reported.prefix
        AND run.span_id IS NOT DISTINCT FROM reported.span_id
    INNER JOIN _process_addresses AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        AND run.processing_t >= process.from_t
        AND run.processing_t < process.until_t
    INNER JOIN _worker_presence AS worker ON process.process = worker.process
    WHERE run.outcome = 'cancelled'
    WINDOW same AS (PARTITION BY run.trace_id, run.worker, run.prefix, run.span_id)
    QUALIFY row_number() OVER (same ORDER BY run.processing_t, run.seq) <= worker.nthreads
)
SELECT
    run.end_seq,
    process.process,
    -- Until it was stolen, an attempt waited on the worker that it was sent to.
    coalesce(sent.process, process.process) AS sent_process,
    CASE
        WHEN _is_kept(run.outcome, discarded.seq) THEN 'kept result'
        WHEN run.outcome = 'memory' THEN 'recomputed result'
        WHEN run.outcome IN ('erred', 'retried') THEN 'failed attempt'
        WHEN run.outcome = 'lost' THEN 'lost attempt'
        WHEN run.outcome = 'unfinished' THEN 'unfinished attempt'
        ELSE 'cancelled attempt'
    END AS use,
    run.prefix,
    datasets.dataset,
    run.span_id,
    -- A task that was already processing when recording began has no time of dispatch.
    coalesce(run.processing_t, '-infinity'::DOUBLE) AS processing_t,
    run.execute_start_t,
    coalesce(greatest(run.end_t, cancelled.stop_t), 'infinity'::DOUBLE) AS end_t,
    run.trace_id
FROM _task_runs AS run
INNER JOIN _process_addresses AS process
    ON run.trace_id = process.trace_id
    AND run.worker = process.worker
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= process.from_t
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) < process.until_t
LEFT JOIN _process_addresses AS sent
    ON run.trace_id = sent.trace_id
    AND run.stolen_from = sent.worker
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= sent.from_t
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) < sent.until_t
LEFT JOIN _discarded_results AS discarded ON run.seq = discarded.seq
LEFT JOIN datasets ON run.seq = datasets.seq
LEFT JOIN cancelled ON run.seq = cancelled.seq
UNION ALL BY NAME
SELECT
    process,
    process AS sent_process,
    CASE outcome
        WHEN 'memory' THEN 'kept result'
        WHEN 'unfinished' THEN 'unfinished attempt'
        ELSE 'failed attempt'
    END AS use,
    dataset,
    start_t AS processing_t,
    start_t AS execute_start_t,
    stop_t AS end_t,
    trace_id
FROM _chunks
WHERE NOT has_task AND process IS NOT NULL AND start_t IS NOT NULL AND stop_t IS NOT NULL;
