-- Needs: _chunks, _error_cause, _exception_type, _has_raised, _is_failed, _refusals, _task_runs, _unread_files, _worker_removals
CREATE VIEW failures AS
SELECT
    * EXCLUDE (trace_id),
    _error_cause(exception) AS cause,
    _exception_type(_error_cause(exception)) AS exception_type,
    trace_id
FROM (
    SELECT
        run.end_t AS t,
        CASE run.outcome
            WHEN 'erred' THEN 'task erred'
            WHEN 'retried' THEN 'attempt retried'
            ELSE 'attempt lost'
        END AS what,
        run.key,
        run.worker,
        run.exception,
        run.attempt,
        run.prefix,
        run.traceback,
        CASE
            WHEN run.outcome = 'lost' THEN
                coalesce('its worker was ' || removal.kill, 'its worker went away: ' || run.end_reason)
            WHEN run.outcome = 'erred' AND NOT starts_with(run.end_reason, 'task-erred') THEN
                'given up by Dask: ' || coalesce('its worker was ' || removal.kill, run.end_reason)
        END AS detail,
        run.trace_id
    FROM _task_runs AS run
    LEFT JOIN raw.transition AS ending ON run.end_seq = ending.rowid
    LEFT JOIN _worker_removals AS removal
        ON run.trace_id = removal.trace_id
        AND run.worker = removal.worker
        AND ending.stimulus_id = removal.stimulus_id
    WHERE _is_failed(run.outcome)
    UNION ALL
    SELECT
        t,
        'task refused',
        key,
        worker,
        exception,
        NULL,
        prefix,
        NULL,
        'by the scheduler, before it began',
        trace_id
    FROM _refusals
    UNION ALL
    -- Failures without a failed task: the exception was suppressed, or there was no task.
    SELECT
        chunk.end_t,
        CASE chunk.outcome
            WHEN 'skipped' THEN 'chunk skipped'
            WHEN 'retried' THEN 'attempt retried'
            ELSE 'chunk erred'
        END,
        chunk.key,
        chunk.worker,
        chunk.exception,
        chunk.attempt,
        run.prefix,
        NULL,
        concat_ws(
            ', ',
            chunk.dataset,
            chunk.filename,
            'entries ' || chunk.entry_start || ' to ' || chunk.entry_stop
        ),
        chunk.trace_id
    FROM _chunks AS chunk
    LEFT JOIN _task_runs AS run USING (seq)
    WHERE chunk.outcome = 'skipped'
        OR (NOT chunk.has_task AND _has_raised(chunk.outcome))
    UNION ALL
    SELECT
        t,
        CASE WHEN is_skipped THEN 'file skipped' ELSE 'file unreadable' END,
        key,
        worker,
        exception,
        attempt,
        prefix,
        NULL,
        concat_ws(', ', dataset, filename, 'its events are missing'),
        trace_id
    FROM _unread_files
    UNION ALL
    SELECT
        removed_t,
        'worker lost',
        NULL,
        worker,
        NULL,
        NULL,
        NULL,
        NULL,
        concat_ws(
            ', ',
            reason,
            nullif(processing_tasks, 0) || if(processing_tasks = 1, ' task', ' tasks') || ' assigned',
            nullif(lost_results, 0) || if(lost_results = 1, ' result', ' results') || ' to recompute',
            nullif(lost_data, 0) || if(lost_data = 1, ' piece', ' pieces') || ' of scattered data lost'
        ),
        trace_id
    FROM _worker_removals
    WHERE is_lost
)
ORDER BY trace_id, t, key NULLS LAST, attempt;

COMMENT ON VIEW failures IS 'Failed attempts and lost workers. One row per failed, lost or skipped attempt, per refused task, per skipped file and per worker lost unexpectedly. A worker that left with nothing on it that was needed, after the last task or because it was asked to, is not lost.';
COMMENT ON COLUMN failures.t IS 'Time on the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN failures.what IS 'task erred (for good), attempt retried, attempt lost (with its worker), task refused (by the scheduler, without an attempt), chunk skipped (exception suppressed by skipbadfiles), chunk erred (without a cluster), file skipped (its number of entries could not be read; skipbadfiles), file unreadable (the same without a cluster and skipbadfiles) or worker lost.';
COMMENT ON COLUMN failures.key IS 'Task key. Null for a worker.';
COMMENT ON COLUMN failures.worker IS 'Worker address.';
COMMENT ON COLUMN failures.exception IS 'Exception text.';
COMMENT ON COLUMN failures.attempt IS 'Attempt number within the key. Null without an attempt.';
COMMENT ON COLUMN failures.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN failures.traceback IS 'Traceback text.';
COMMENT ON COLUMN failures.detail IS 'Further information: why a worker left and what was lost with it, why Dask gave up on a task, which entries were skipped. A nanny that kills its worker for memory is recorded with distributed 2024.4.2 and later.';
COMMENT ON COLUMN failures.cause IS 'Text of the error that caused the exception, if coffea quotes it (Failed processing file: …); otherwise the exception.';
COMMENT ON COLUMN failures.exception_type IS 'Type of the cause, with its module if that is known: KeyError, zlib.error.';
COMMENT ON COLUMN failures.trace_id IS 'ID of the trace.';
