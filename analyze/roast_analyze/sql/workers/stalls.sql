-- Needs: nothing
CREATE VIEW stalls AS
SELECT
    CASE WHEN worker IS NULL THEN 'scheduler' ELSE 'worker' END AS process,
    worker,
    start_t,
    stop_t,
    stop_t - start_t AS seconds,
    server_id,
    trace_id
FROM raw.stall
ORDER BY trace_id, start_t, rowid;

COMMENT ON VIEW stalls IS 'Stalls of event loops: times in which a scheduler or worker could neither send nor receive. One row per stall of at least 0.1 s. Typical causes are code that holds the GIL, large arguments inside of tasks, which workers deserialize on the event loop, and overloaded machines. Empty before trace format 2.4.';
COMMENT ON COLUMN stalls.process IS 'scheduler or worker.';
COMMENT ON COLUMN stalls.worker IS 'Worker address. Null for the scheduler.';
COMMENT ON COLUMN stalls.start_t IS 'Time at which the event loop was due to continue, in seconds since the epoch. The stall may have begun up to 0.02 s before.';
COMMENT ON COLUMN stalls.stop_t IS 'Time at which it continued, in seconds since the epoch.';
COMMENT ON COLUMN stalls.seconds IS 'Duration.';
COMMENT ON COLUMN stalls.server_id IS 'ID of the process.';
COMMENT ON COLUMN stalls.trace_id IS 'ID of the trace.';
