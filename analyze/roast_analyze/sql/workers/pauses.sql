-- Needs: _worker_statuses
CREATE VIEW pauses AS
SELECT worker, start_t, stop_t, stop_t - start_t AS seconds, trace_id
FROM _worker_statuses
WHERE status = 'paused'
ORDER BY trace_id, seq;

COMMENT ON VIEW pauses IS 'Pauses of workers because of high memory use. One row per pause. A paused worker starts no tasks, but finishes those that it is computing.';
COMMENT ON COLUMN pauses.worker IS 'Worker address.';
COMMENT ON COLUMN pauses.start_t IS 'Start of the pause on the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN pauses.stop_t IS 'End of the pause, or departure of the worker, in seconds since the epoch. Null if the trace ends first.';
COMMENT ON COLUMN pauses.seconds IS 'Duration.';
COMMENT ON COLUMN pauses.trace_id IS 'ID of the trace.';
