-- Needs: _process_addresses, _secessions, _task_runs
-- Times in which attempts had left the threads of their worker, until they ended; infinite for those that had
-- not. A task that rejoined looks like one that did not: Dask records secessions only.
CREATE VIEW _seceded_times AS
SELECT
    attempt.trace_id,
    process.process,
    attempt.worker,
    attempt.prefix,
    attempt.key,
    attempt.start_t,
    attempt.stop_t
FROM (
    SELECT
        run.trace_id,
        run.worker,
        run.prefix,
        run.key,
        secession.t AS start_t,
        coalesce(run.compute_stop_t, run.end_t) AS stop_t
    FROM _secessions AS secession
    INNER JOIN _task_runs AS run USING (end_seq)
    UNION ALL
    SELECT
        run.trace_id,
        run.worker,
        run.prefix,
        run.key,
        min(secession.t) AS start_t,
        'infinity'::DOUBLE AS stop_t
    FROM raw.worker_transition AS secession
    INNER JOIN _task_runs AS run USING (trace_id, worker, key)
    WHERE secession.finish = 'long-running'
        AND run.end_seq IS NULL
        AND secession.t >= coalesce(run.processing_t, '-infinity'::DOUBLE)
    GROUP BY run.trace_id, run.worker, run.prefix, run.key, run.seq
) AS attempt
INNER JOIN _process_addresses AS process
    ON attempt.trace_id = process.trace_id
    AND attempt.worker = process.worker
    AND attempt.start_t >= process.from_t
    AND attempt.start_t < process.until_t
WHERE attempt.prefix IS NOT NULL AND attempt.start_t < attempt.stop_t;
