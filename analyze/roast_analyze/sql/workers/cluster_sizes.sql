-- Needs: _worker_presence
CREATE VIEW cluster_sizes AS
WITH sizes AS (
    SELECT
        rowid AS seq,
        t,
        lead(t) OVER (PARTITION BY trace_id, client ORDER BY rowid) AS until_t,
        try_cast(value ->> '$.planned' AS BIGINT) AS planned,
        try_cast(value ->> '$.requested' AS BIGINT) AS requested,
        client,
        trace_id
    FROM raw.cluster_size
),
changes AS (
    SELECT trace_id, from_t AS t, 1 AS change FROM _worker_presence WHERE from_t < to_t
    UNION ALL
    SELECT trace_id, to_t, -1 FROM _worker_presence WHERE from_t < to_t
),
levels AS (
    SELECT trace_id, t, sum(sum(change)) OVER (PARTITION BY trace_id ORDER BY t) AS workers
    FROM changes
    GROUP BY trace_id, t
)
SELECT
    sizes.t,
    until_t,
    planned,
    requested,
    coalesce(levels.workers, 0)::BIGINT AS joined,
    client,
    trace_id
FROM sizes
ASOF LEFT JOIN levels USING (trace_id, t)
ORDER BY trace_id, seq;

COMMENT ON VIEW cluster_sizes IS 'Planned, requested and connected workers of the cluster. One row per change of the plan or of the requests. Empty if the recording client was not created from a cluster object, and before trace format 2.4.';
COMMENT ON COLUMN cluster_sizes.t IS 'Time of the change, in seconds since the epoch; up to 0.5 s late.';
COMMENT ON COLUMN cluster_sizes.until_t IS 'Time of the next change, in seconds since the epoch. Null for the last.';
COMMENT ON COLUMN cluster_sizes.planned IS 'Workers that the cluster should have, by scale() or adapt().';
COMMENT ON COLUMN cluster_sizes.requested IS 'Workers that the cluster object has requested, as by submitting jobs.';
COMMENT ON COLUMN cluster_sizes.joined IS 'Workers connected to the scheduler at that time.';
COMMENT ON COLUMN cluster_sizes.client IS 'Recording client.';
COMMENT ON COLUMN cluster_sizes.trace_id IS 'ID of the trace.';
