-- Needs: _task_runs, _departures
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
            THEN 'Dask gave it up: ' || end_reason
    END AS detail,
    trace_id
FROM _task_runs
WHERE outcome IN ('erred', 'retried', 'lost')
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
        nullif(processing_tasks, 0) || ' tasks were there',
        nullif(lost_results, 0) || ' results to compute again',
        nullif(lost_data, 0) || ' pieces of data lost for good'
    ),
    trace_id
FROM _departures
WHERE NOT expected
ORDER BY trace_id, t, key NULLS LAST, attempt;

COMMENT ON VIEW failures IS 'What went wrong: one row per failed or lost attempt and per worker lost unexpectedly.';
COMMENT ON COLUMN failures.t IS 'When the scheduler heard of it, in seconds since the epoch.';
COMMENT ON COLUMN failures.what IS 'task erred (for good), attempt retried, attempt lost (with its worker), worker lost.';
COMMENT ON COLUMN failures.key IS 'Key of the task; null for a worker.';
COMMENT ON COLUMN failures.worker IS 'Address of the worker.';
COMMENT ON COLUMN failures.exception IS 'Text of the exception.';
COMMENT ON COLUMN failures.attempt IS 'Number of the attempt within its key.';
COMMENT ON COLUMN failures.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN failures.traceback IS 'Text of the traceback.';
COMMENT ON COLUMN failures.detail IS 'What else is known: why a worker went, what went with it.';
COMMENT ON COLUMN failures.trace_id IS 'Identity of the recording.';
