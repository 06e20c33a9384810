-- Needs: _chunks, _client_presence, _client_programs, _discarded_results, _is_failed, _is_kept, _task_runs, _worker_presence
CREATE VIEW sessions AS
WITH chunk_events AS (
    -- A task can have several chunks.
    SELECT seq, sum(events) AS events FROM _chunks WHERE is_first_result GROUP BY seq
),
worked AS (
    SELECT
        task.trace_id,
        task.client,
        count(DISTINCT task.key) AS tasks,
        count(*) AS task_runs,
        max(attempt.end_t) AS last_end_t,
        sum(attempt.compute_seconds) AS compute_seconds,
        sum(attempt.compute_seconds) FILTER (_is_kept(attempt.outcome, discarded.seq))
            AS kept_seconds,
        count(*) FILTER (_is_failed(attempt.outcome)) AS failures,
        sum(chunk.events) AS events
    FROM _task_runs AS attempt
    INNER JOIN raw.task AS task ON attempt.submission = task.rowid
    LEFT JOIN _discarded_results AS discarded ON attempt.seq = discarded.seq
    LEFT JOIN chunk_events AS chunk ON attempt.seq = chunk.seq
    GROUP BY task.trace_id, task.client
),
available AS (
    SELECT
        present.trace_id,
        present.client,
        sum(
            worker.nthreads
            * greatest(
                least(present.stop_t, worker.to_t) - greatest(present.start_t, worker.from_t), 0
            )
        ) AS core_seconds
    FROM _client_presence AS present
    INNER JOIN _worker_presence AS worker USING (trace_id)
    GROUP BY present.trace_id, present.client
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
    program.name,
    program.program,
    program.user_name,
    program.host,
    program.pid,
    available.core_seconds,
    worked.kept_seconds,
    coalesce(worked.failures, 0) AS failures,
    try_cast(worked.events AS BIGINT) AS events,
    trace_id
FROM _client_presence AS present
LEFT JOIN worked USING (trace_id, client)
LEFT JOIN available USING (trace_id, client)
LEFT JOIN _client_programs AS program USING (trace_id, client)
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
COMMENT ON COLUMN sessions.name IS 'Name that the program gave the client (name= of Client).';
COMMENT ON COLUMN sessions.program IS 'File name of its program or notebook. Known of clients that record or have the preload roast_recorder.client_program.';
COMMENT ON COLUMN sessions.user_name IS 'User who ran it: of JupyterHub, or else of the operating system. Known as the program.';
COMMENT ON COLUMN sessions.host IS 'Its host by its own account, or else the address of its end of the connection.';
COMMENT ON COLUMN sessions.pid IS 'Its process on the host. A program can have several clients.';
COMMENT ON COLUMN sessions.core_seconds IS 'Available thread time while it was connected: on a shared scheduler, other clients can have used it too.';
COMMENT ON COLUMN sessions.kept_seconds IS 'Compute time of its attempts whose result was kept, as in task_runs.kept.';
COMMENT ON COLUMN sessions.failures IS 'Attempts at its tasks that failed, were retried or were lost.';
COMMENT ON COLUMN sessions.events IS 'Events in its chunks with a result.';
COMMENT ON COLUMN sessions.trace_id IS 'ID of the trace.';
