-- Needs: _task_runs
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
    trace_id
FROM _task_runs
ORDER BY trace_id, seq;

COMMENT ON VIEW task_runs IS 'Attempts at tasks: one row each time that a key was sent to a worker, and one for each key that was being processed when recording began. An attempt ends with the next transition of its key from processing; if the key becomes waiting or processing before that, the end was not recorded.';
COMMENT ON COLUMN task_runs.key IS 'Key of the task.';
COMMENT ON COLUMN task_runs.prefix IS 'Key prefix: what kind of task it is; null if the task was not recorded.';
COMMENT ON COLUMN task_runs.attempt IS 'Number of the attempt within its key, from 1.';
COMMENT ON COLUMN task_runs.worker IS 'Address of the worker that it ran on, or was sent to if it never ended.';
COMMENT ON COLUMN task_runs.thread IS 'Thread that computed, within its worker.';
COMMENT ON COLUMN task_runs.outcome IS 'How it ended: memory (well), erred (the task failed for good), retried (it said that it failed, and was tried again), lost (its worker went away), rescheduled (it asked for another worker), cancelled (nobody wanted it any more), unfinished (the trace ends first).';
COMMENT ON COLUMN task_runs.processing_t IS 'When the scheduler sent it to the worker, in seconds since the epoch; null if that was before the recording.';
COMMENT ON COLUMN task_runs.compute_start_t IS 'When the computation began, in seconds since the epoch.';
COMMENT ON COLUMN task_runs.compute_stop_t IS 'When the computation ended, in seconds since the epoch.';
COMMENT ON COLUMN task_runs.compute_seconds IS 'Time of the computation; null if the worker reported no times.';
COMMENT ON COLUMN task_runs.transfer_seconds IS 'Time of fetching dependencies from other workers; transfers overlap, so it can exceed the wall time.';
COMMENT ON COLUMN task_runs.deserialize_seconds IS 'Time of deserializing the task.';
COMMENT ON COLUMN task_runs.disk_seconds IS 'Time of reading spilled results from disk, and writing them.';
COMMENT ON COLUMN task_runs.queued_seconds IS 'Time on the scheduler before processing_t: from its latest transition to waiting, so it covers waiting for dependencies, for a slot and for a worker.';
COMMENT ON COLUMN task_runs.nbytes IS 'Size of the result, as sizeof of Dask measures it.';
COMMENT ON COLUMN task_runs.typename IS 'Type of the result.';
COMMENT ON COLUMN task_runs.span_id IS 'Span that the task belonged to then: as it had last entered the graph at processing_t.';
COMMENT ON COLUMN task_runs.exception IS 'Text of the exception.';
COMMENT ON COLUMN task_runs.traceback IS 'Text of the traceback.';
COMMENT ON COLUMN task_runs.run_id IS 'Number that Dask gave the attempt.';
COMMENT ON COLUMN task_runs.end_t IS 'When the scheduler heard of the end, in seconds since the epoch; null if unfinished.';
COMMENT ON COLUMN task_runs.role IS 'Chunk, merge, file metadata or processor broadcast: what it does for coffea, as in task_roles; null for all others.';
COMMENT ON COLUMN task_runs.trace_id IS 'Identity of the recording.';
