-- Needs: nothing
CREATE VIEW spills AS
SELECT
    t,
    worker,
    key,
    "start",
    finish,
    nbytes AS bytes,
    measured.disk_bytes AS disk_bytes,
    trace_id
FROM raw.spill
ORDER BY trace_id, rowid;

COMMENT ON VIEW spills IS 'Results spilled to disk or read back by workers. One row per move. Empty unless recorded with worker_transitions=True.';
COMMENT ON COLUMN spills.t IS 'Time of completion, in seconds since the epoch.';
COMMENT ON COLUMN spills.worker IS 'Worker address.';
COMMENT ON COLUMN spills.key IS 'Key of the result.';
COMMENT ON COLUMN spills.start IS 'From: memory or disk.';
COMMENT ON COLUMN spills.finish IS 'To: disk or memory.';
COMMENT ON COLUMN spills.bytes IS 'Size in memory, measured by Dask''s sizeof. Null if the result did not stay in memory.';
COMMENT ON COLUMN spills.disk_bytes IS 'Size on disk, serialized and compressed. Null for a result that was read back.';
COMMENT ON COLUMN spills.trace_id IS 'ID of the trace.';
