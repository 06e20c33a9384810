-- Needs: nothing
CREATE VIEW transfers AS
SELECT start_t, stop_t, source, destination, nbytes AS bytes, keys, trace_id
FROM raw.transfer
ORDER BY trace_id, rowid;

COMMENT ON VIEW transfers IS 'Results that moved from one worker to another: one row per transfer. Empty unless the recorder was asked for it.';
COMMENT ON COLUMN transfers.start_t IS 'When it began, in seconds since the epoch.';
COMMENT ON COLUMN transfers.stop_t IS 'When it ended, in seconds since the epoch.';
COMMENT ON COLUMN transfers.source IS 'Address of the worker that sent.';
COMMENT ON COLUMN transfers.destination IS 'Address of the worker that received.';
COMMENT ON COLUMN transfers.bytes IS 'Size of what was moved.';
COMMENT ON COLUMN transfers.keys IS 'Size of what was moved, by key.';
COMMENT ON COLUMN transfers.trace_id IS 'Identity of the recording.';
