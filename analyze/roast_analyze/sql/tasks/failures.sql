-- Needs: _chunks, _task_runs, _worker_removals
CREATE VIEW failures AS
SELECT
    end_t AS t,
    CASE outcome
        WHEN 'erred' THEN 'task erred'
        WHEN 'retried' THEN 'attempt retried'
        ELSE 'attempt lost'
    END AS what,
    key,
    worker,
    exception,
    attempt,
    prefix,
    traceback,
    CASE
        WHEN outcome = 'lost' THEN 'its worker went away: ' || end_reason
        WHEN outcome = 'erred' AND NOT starts_with(end_reason, 'task-erred')
            THEN 'given up by Dask: ' || end_reason
    END AS detail,
    trace_id
FROM _task_runs
WHERE outcome IN ('erred', 'retried', 'lost')
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
    OR (NOT chunk.has_task AND chunk.outcome IN ('erred', 'retried'))
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
        nullif(processing_tasks, 0) || ' tasks assigned',
        nullif(lost_results, 0) || ' results to recompute',
        nullif(lost_data, 0) || ' pieces of scattered data lost'
    ),
    trace_id
FROM _worker_removals
WHERE NOT expected
ORDER BY trace_id, t, key NULLS LAST, attempt;

COMMENT ON VIEW failures IS 'Failed attempts and lost workers. One row per failed, lost or skipped attempt and per worker lost unexpectedly.';
COMMENT ON COLUMN failures.t IS 'Time on the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN failures.what IS 'task erred (for good), attempt retried, attempt lost (with its worker), chunk skipped (exception suppressed by skipbadfiles), chunk erred (without a cluster) or worker lost.';
COMMENT ON COLUMN failures.key IS 'Task key. Null for a worker.';
COMMENT ON COLUMN failures.worker IS 'Worker address.';
COMMENT ON COLUMN failures.exception IS 'Exception text.';
COMMENT ON COLUMN failures.attempt IS 'Attempt number within the key.';
COMMENT ON COLUMN failures.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN failures.traceback IS 'Traceback text.';
COMMENT ON COLUMN failures.detail IS 'Further information: why a worker left and what was lost with it, why Dask gave up on a task, which entries were skipped.';
COMMENT ON COLUMN failures.trace_id IS 'Trace identity.';
