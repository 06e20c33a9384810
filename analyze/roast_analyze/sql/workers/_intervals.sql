-- Needs: _chunks, _process_addresses, _task_phases, _task_runs, _task_states, _worker_presence
-- Intervals with an amount: phases of attempts, states of tasks, lifetimes of processes and their
-- numbers of threads. Process 0 is the scheduler.
CREATE VIEW _intervals AS
WITH runs AS (
    SELECT run.end_seq, run.outcome, coalesce(process.process, 0) AS process, run.trace_id
    FROM _task_runs AS run
    LEFT JOIN _process_addresses AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= process.from_t
        AND coalesce(run.processing_t, '-infinity'::DOUBLE) < process.until_t
    WHERE run.end_seq IS NOT NULL
),
timed AS (
    SELECT
        process,
        action AS what,
        outcome <> 'memory' AS failed,
        start_t,
        stop_t,
        1.0::DOUBLE AS amount,
        trace_id
    FROM runs
    INNER JOIN _task_phases USING (end_seq)
    WHERE action IN ('compute', 'transfer')
    UNION ALL
    -- Without a cluster there are no tasks.
    SELECT
        coalesce(process, 0),
        'compute',
        outcome <> 'memory',
        start_t,
        stop_t,
        compute_seconds / nullif(stop_t - start_t, 0),
        trace_id
    FROM _chunks
    WHERE NOT has_task
)
SELECT process, what, start_t, stop_t, amount, trace_id FROM timed
UNION ALL
SELECT process, 'failed', start_t, stop_t, amount, trace_id
FROM timed
WHERE what = 'compute' AND failed
UNION ALL
SELECT 0, state, from_t, until_t, 1, trace_id FROM _task_states
UNION ALL
SELECT process, 'presence', from_t, to_t, 1, trace_id FROM _worker_presence
UNION ALL
SELECT process, 'threads', from_t, to_t, nthreads, trace_id FROM _worker_presence;
