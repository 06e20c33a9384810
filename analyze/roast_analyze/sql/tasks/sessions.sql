-- Needs: _client_presence, _task_runs
CREATE VIEW sessions AS
WITH worked AS (
    SELECT
        task.trace_id,
        task.client,
        count(DISTINCT task.key) AS tasks,
        count(*) AS task_runs,
        max(attempt.end_t) AS last_end_t,
        sum(attempt.compute_seconds) AS compute_seconds
    FROM _task_runs AS attempt
    INNER JOIN raw.task AS task ON attempt.submission = task.rowid
    GROUP BY task.trace_id, task.client
)
SELECT
    client,
    present.start_t,
    present.stop_t,
    present.first_submitted_t,
    present.last_submitted_t,
    worked.last_end_t,
    coalesce(worked.tasks, 0) AS tasks,
    coalesce(worked.task_runs, 0) AS task_runs,
    worked.compute_seconds,
    trace_id
FROM _client_presence AS present
LEFT JOIN worked USING (trace_id, client)
ORDER BY trace_id, start_t, client;

COMMENT ON VIEW sessions IS 'Clients that were connected or submitted tasks: the programs of a scheduler. One row per client; clients of tasks that submit tasks are left out.';
COMMENT ON COLUMN sessions.client IS 'Client.';
COMMENT ON COLUMN sessions.start_t IS 'Time at which it connected, or start of the recording, in seconds since the epoch.';
COMMENT ON COLUMN sessions.stop_t IS 'Time at which it disconnected, or end of the recording, in seconds since the epoch.';
COMMENT ON COLUMN sessions.first_submitted_t IS 'First task that it submitted, in seconds since the epoch.';
COMMENT ON COLUMN sessions.last_submitted_t IS 'Last task that it submitted, in seconds since the epoch.';
COMMENT ON COLUMN sessions.last_end_t IS 'Last end of an attempt at its tasks, in seconds since the epoch.';
COMMENT ON COLUMN sessions.tasks IS 'Keys that it submitted and that were attempted.';
COMMENT ON COLUMN sessions.task_runs IS 'Attempts at them.';
COMMENT ON COLUMN sessions.compute_seconds IS 'Compute time that workers reported of these attempts.';
COMMENT ON COLUMN sessions.trace_id IS 'ID of the trace.';
