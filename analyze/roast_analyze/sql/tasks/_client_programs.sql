-- Needs: _processes
-- Program, user, host and process of each client: as it reported them; for the recording client also as
-- its environment has them; else the host of its connection. A name given by the program is part of the
-- ID that Dask makes.
CREATE VIEW _client_programs AS
WITH reported AS (
    SELECT
        trace_id,
        client,
        arg_max(name, rowid) AS program,
        arg_max("value" ->> '$.user_name', rowid) AS user_name,
        arg_max(host, rowid) AS host,
        arg_max(pid, rowid) AS pid
    FROM raw.client_program
    GROUP BY trace_id, client
),
recording AS (
    SELECT
        facts.trace_id,
        max("value" ->> '$') FILTER (name = 'id') AS client,
        max("value" ->> '$') FILTER (name = 'program') AS program,
        any_value(process.process.machine.host) AS host,
        any_value(process.process.pid) AS pid
    FROM raw.environment AS facts
    LEFT JOIN _processes AS process
        ON facts.trace_id = process.trace_id AND process.role = 'client'
    WHERE facts.section = 'client'
    GROUP BY facts.trace_id
),
connected AS (
    SELECT trace_id, client, any_value(host) AS host
    FROM raw.client_added
    GROUP BY trace_id, client
)
SELECT
    client,
    nullif(
        regexp_extract(client, '^\w+?-(.+)-[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$', 1), ''
    ) AS name,
    coalesce(reported.program, recording.program) AS program,
    reported.user_name,
    coalesce(reported.host, recording.host, connected.host) AS host,
    coalesce(reported.pid, recording.pid) AS pid,
    trace_id
FROM connected
FULL JOIN reported USING (trace_id, client)
FULL JOIN (FROM recording WHERE client IS NOT NULL) AS recording USING (trace_id, client);
