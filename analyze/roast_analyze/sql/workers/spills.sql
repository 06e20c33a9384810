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

COMMENT ON VIEW spills IS 'Results that went from the memory of a worker to its disk, or came back: one row per move. Empty unless the recorder was asked for it (worker_transitions=True).';
COMMENT ON COLUMN spills.t IS 'When it was done, in seconds since the epoch.';
COMMENT ON COLUMN spills.worker IS 'Address of the worker.';
COMMENT ON COLUMN spills.key IS 'Key of the result.';
COMMENT ON COLUMN spills.start IS 'Where it was: memory or disk.';
COMMENT ON COLUMN spills.finish IS 'Where it went: disk or memory.';
COMMENT ON COLUMN spills.bytes IS 'Size of the result in memory, as sizeof of Dask measures it; null if it did not stay there.';
COMMENT ON COLUMN spills.disk_bytes IS 'Size on disk, serialised and compressed as it was; null if it came back.';
COMMENT ON COLUMN spills.trace_id IS 'Identity of the recording.';
