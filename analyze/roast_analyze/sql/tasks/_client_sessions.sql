-- Needs: nothing
-- Time in which each client submitted tasks, the first to the last. Between these times, no program had
-- work for the scheduler. Tasks that submit tasks are no program.
CREATE VIEW _client_sessions AS
SELECT trace_id, client, min(t) AS from_t, max(t) AS until_t
FROM raw.task
WHERE NOT starts_with(coalesce(client, ''), 'Client-worker-')
GROUP BY trace_id, client;
