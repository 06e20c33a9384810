-- Needs: _worker_presence
CREATE VIEW cluster_sizes AS
WITH sizes AS (
    SELECT
        rowid AS seq,
        t,
        lead(t) OVER (PARTITION BY trace_id, client ORDER BY rowid) AS until_t,
        (value ->> '$.planned')::BIGINT AS planned,
        (value ->> '$.requested')::BIGINT AS requested,
        client,
        trace_id
    FROM raw.cluster_size
)
SELECT
    t,
    until_t,
    planned,
    requested,
    (
        SELECT count(*)
        FROM _worker_presence AS worker
        WHERE worker.trace_id = sizes.trace_id AND from_t <= t AND to_t > t
    ) AS joined,
    client,
    trace_id
FROM sizes
ORDER BY trace_id, seq;

COMMENT ON VIEW cluster_sizes IS 'Planned, requested and connected workers of the cluster. One row per change of the plan or of the requests. Empty if the recording client was not created from a cluster object, and before trace format 2.4.';
COMMENT ON COLUMN cluster_sizes.t IS 'Time of the change, in seconds since the epoch; up to 0.5 s late.';
COMMENT ON COLUMN cluster_sizes.until_t IS 'Time of the next change, in seconds since the epoch. Null for the last.';
COMMENT ON COLUMN cluster_sizes.planned IS 'Workers that the cluster should have, by scale() or adapt().';
COMMENT ON COLUMN cluster_sizes.requested IS 'Workers that the cluster object has requested, as by submitting jobs.';
COMMENT ON COLUMN cluster_sizes.joined IS 'Workers connected to the scheduler at that time.';
COMMENT ON COLUMN cluster_sizes.client IS 'Recording client.';
COMMENT ON COLUMN cluster_sizes.trace_id IS 'ID of the trace.';
