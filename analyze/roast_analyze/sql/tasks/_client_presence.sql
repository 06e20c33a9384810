-- Needs: _client_sessions, _trace_range
-- Time in which each client was connected, within the recording. Clients of tasks are left out.
CREATE VIEW _client_presence AS
WITH connected AS (
    SELECT trace_id, client, min(t) AS added_t
    FROM raw.client_added
    WHERE NOT starts_with(client, 'Client-worker-')
    GROUP BY trace_id, client
),
disconnected AS (
    SELECT trace_id, client, max(t) AS removed_t FROM raw.client_removed GROUP BY trace_id, client
)
SELECT
    client,
    greatest(coalesce(connected.added_t, recording.start_t), recording.start_t) AS start_t,
    least(coalesce(disconnected.removed_t, recording.stop_t), recording.stop_t) AS stop_t,
    submitted.from_t AS first_submitted_t,
    submitted.until_t AS last_submitted_t,
    recording.trace_id
FROM connected
FULL JOIN _client_sessions AS submitted USING (trace_id, client)
INNER JOIN _trace_range AS recording USING (trace_id)
LEFT JOIN disconnected USING (trace_id, client)
WHERE client IS NOT NULL;
