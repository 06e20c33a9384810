-- Needs: _attempt_use, _chunks, _discarded_results, _is_kept, _process_addresses, _released_attempts, _task_runs, _worker_presence
-- Attempts that were assigned to a worker process, and the outcome of each. An attempt at a chunk
-- without a task, as without a cluster, computed from its start to its end.
CREATE VIEW _assigned_attempts AS
WITH datasets AS (
    SELECT seq, any_value(dataset) AS dataset FROM _chunks WHERE seq IS NOT NULL GROUP BY seq
)
SELECT
    run.end_seq,
    process.process,
    -- Until it was stolen, an attempt waited on the worker that it was sent to.
    coalesce(sent.process, process.process) AS sent_process,
    worker.nthreads,
    _attempt_use(run.outcome, _is_kept(run.outcome, discarded.seq)) AS use,
    run.outcome = 'cancelled' AND NOT coalesce(released.is_reported, false) AS is_doubtful,
    run.prefix,
    datasets.dataset,
    run.span_id,
    -- A task that was already processing when recording began has no time of dispatch.
    coalesce(run.processing_t, '-infinity'::DOUBLE) AS processing_t,
    coalesce(run.execute_start_t, released.start_t) AS execute_start_t,
    coalesce(greatest(run.end_t, released.stop_t), 'infinity'::DOUBLE) AS end_t,
    run.trace_id
FROM _task_runs AS run
INNER JOIN _process_addresses AS process
    ON run.trace_id = process.trace_id
    AND run.worker = process.worker
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= process.from_t
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) < process.until_t
INNER JOIN _worker_presence AS worker ON process.process = worker.process
LEFT JOIN _process_addresses AS sent
    ON run.trace_id = sent.trace_id
    AND run.stolen_from = sent.worker
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= sent.from_t
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) < sent.until_t
LEFT JOIN _discarded_results AS discarded ON run.seq = discarded.seq
LEFT JOIN datasets ON run.seq = datasets.seq
LEFT JOIN _released_attempts AS released ON run.seq = released.seq
UNION ALL BY NAME
SELECT
    process,
    process AS sent_process,
    1 AS nthreads,
    _attempt_use(outcome, true) AS use,
    false AS is_doubtful,
    dataset,
    start_t AS processing_t,
    start_t AS execute_start_t,
    stop_t AS end_t,
    trace_id
FROM _chunks
WHERE NOT has_task AND process IS NOT NULL AND start_t IS NOT NULL AND stop_t IS NOT NULL;
