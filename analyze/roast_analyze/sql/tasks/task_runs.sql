-- Needs: _discarded_results, _is_kept, _task_files, _task_runs
CREATE VIEW task_runs AS
SELECT
    key,
    prefix,
    attempt,
    worker,
    thread,
    outcome,
    processing_t,
    compute_start_t,
    compute_stop_t,
    compute_seconds,
    transfer_seconds,
    deserialize_seconds,
    disk_seconds,
    queued_seconds,
    nbytes,
    typename,
    span_id,
    exception,
    traceback,
    run_id,
    end_t,
    role,
    _is_kept(outcome, discarded.seq) AS kept,
    files.filename,
    execute_start_t,
    stolen_from,
    trace_id
FROM _task_runs AS run
LEFT JOIN _discarded_results AS discarded USING (seq)
LEFT JOIN _task_files AS files USING (trace_id, key)
ORDER BY trace_id, seq;

COMMENT ON VIEW task_runs IS 'Task attempts, with outcome and timing. One row per dispatch of a key to a worker, and per key that was processing when recording began. An attempt ends with the next transition of its key from processing; if the key becomes waiting or processing before that, the end was not recorded. A task that was processing when recording began is one attempt with the transition to processing of the same run id, or, since work stealing changes the run id and it can be null, with the last one before the record of the task.';
COMMENT ON COLUMN task_runs.key IS 'Task key.';
COMMENT ON COLUMN task_runs.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN task_runs.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN task_runs.worker IS 'Address of the worker that ran the attempt, or was assigned it if it never ended.';
COMMENT ON COLUMN task_runs.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN task_runs.outcome IS 'memory (success), erred (failed for good), retried (failed, then retried), lost (with its worker), rescheduled (raised Reschedule), cancelled (no longer needed) or unfinished (no end in the trace).';
COMMENT ON COLUMN task_runs.processing_t IS 'Dispatch to the worker, in seconds since the epoch. Null if before the recording.';
COMMENT ON COLUMN task_runs.compute_start_t IS 'Start of the computation, in seconds since the epoch.';
COMMENT ON COLUMN task_runs.compute_stop_t IS 'End of the computation, in seconds since the epoch.';
COMMENT ON COLUMN task_runs.compute_seconds IS 'Compute time within the recording. Null if the worker reported no times.';
COMMENT ON COLUMN task_runs.transfer_seconds IS 'Time to fetch dependencies from other workers. Transfers overlap, so it can exceed the wall time.';
COMMENT ON COLUMN task_runs.deserialize_seconds IS 'Time to deserialize the task.';
COMMENT ON COLUMN task_runs.disk_seconds IS 'Time to spill to disk and to read spilled results back.';
COMMENT ON COLUMN task_runs.queued_seconds IS 'Time on the scheduler before dispatch, from the latest transition to waiting: waiting for dependencies, for a free thread and for a worker.';
COMMENT ON COLUMN task_runs.nbytes IS 'Size of the result, measured by Dask''s sizeof.';
COMMENT ON COLUMN task_runs.typename IS 'Type of the result.';
COMMENT ON COLUMN task_runs.span_id IS 'Span of the task, as of its last submission before processing_t.';
COMMENT ON COLUMN task_runs.exception IS 'Exception text.';
COMMENT ON COLUMN task_runs.traceback IS 'Traceback text.';
COMMENT ON COLUMN task_runs.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN task_runs.end_t IS 'End recorded by the scheduler, in seconds since the epoch. Null if unfinished.';
COMMENT ON COLUMN task_runs.role IS 'Role in a coffea run, as in task_roles: chunk, merge, file metadata or processor broadcast. Null for all other tasks.';
COMMENT ON COLUMN task_runs.kept IS 'True if the attempt computed a result that was kept: the last one of its key, or one that a dependent with a kept result used before it was lost. False for a result that was lost with its worker and computed again, and for all attempts without a result.';
COMMENT ON COLUMN task_runs.filename IS 'File that a coffea task reads: of a chunk, or for its number of entries. Null for all other tasks, and for those that read several files.';
COMMENT ON COLUMN task_runs.execute_start_t IS 'Time at which the worker began to execute an attempt that was lost with it, cancelled or rescheduled, in seconds since the epoch. Null if the attempt had not begun by the worker''s last heartbeat, for other outcomes, of attempts lost before trace format 2.4, and of others before 2.6.';
COMMENT ON COLUMN task_runs.stolen_from IS 'Address of the worker that the task was sent to at processing_t, if work stealing moved it to another one. Null for all other attempts.';
COMMENT ON COLUMN task_runs.trace_id IS 'ID of the trace.';
