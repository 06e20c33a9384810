-- Needs: _client_programs, _client_sessions
-- Clients of the programs that submitted tasks or wanted results; all clients, if none is known to have. Tasks that are
-- older than the recording have no client: that clients want their results shows whose they are. A program can have
-- several clients.
CREATE VIEW _working_clients AS
WITH submitters AS (
    SELECT trace_id, client FROM _client_sessions WHERE client IS NOT NULL
    UNION
    SELECT trace_id, client
    FROM raw.wanted_keys
    WHERE client IS NOT NULL AND NOT starts_with(client, 'Client-worker-')
)
FROM submitters
UNION
SELECT program.trace_id, program.client
FROM _client_programs AS program
INNER JOIN _client_programs AS other USING (trace_id, host, pid)
SEMI JOIN submitters ON submitters.trace_id = program.trace_id AND submitters.client = other.client
UNION
SELECT trace_id, client
FROM (
    SELECT trace_id, client FROM raw.client_added
    UNION
    SELECT trace_id, client FROM raw.client_activity
)
WHERE trace_id NOT IN (SELECT trace_id FROM submitters);
