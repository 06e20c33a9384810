-- Needs: nothing
CREATE VIEW sections AS
SELECT
    key,
    name,
    stop_t - start_t AS seconds,
    cpu_seconds,
    memory_delta AS memory_delta_bytes,
    bytes_read,
    start_t,
    stop_t,
    worker,
    thread,
    run_id,
    trace_id
FROM raw.section
ORDER BY trace_id, rowid;

COMMENT ON VIEW sections IS 'Parts of chunks that the user named: one row each time that a part was passed through. Empty if nothing was named.';
COMMENT ON COLUMN sections.key IS 'Key of the task.';
COMMENT ON COLUMN sections.name IS 'Name that the user gave.';
COMMENT ON COLUMN sections.seconds IS 'Wall time.';
COMMENT ON COLUMN sections.cpu_seconds IS 'CPU time of the thread.';
COMMENT ON COLUMN sections.memory_delta_bytes IS 'Memory of the process after minus before; other threads count too.';
COMMENT ON COLUMN sections.bytes_read IS 'Bytes requested from the source.';
COMMENT ON COLUMN sections.start_t IS 'When it began, in seconds since the epoch.';
COMMENT ON COLUMN sections.stop_t IS 'When it ended, in seconds since the epoch.';
COMMENT ON COLUMN sections.worker IS 'Address of the worker.';
COMMENT ON COLUMN sections.thread IS 'Thread, within its worker.';
COMMENT ON COLUMN sections.run_id IS 'Number that Dask gave the attempt.';
COMMENT ON COLUMN sections.trace_id IS 'Identity of the recording.';
