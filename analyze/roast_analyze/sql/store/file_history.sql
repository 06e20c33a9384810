-- Needs: files, runs
CREATE VIEW file_history AS
SELECT
    files.filename,
    files.dataset,
    row_number() OVER in_order AS run_number,
    runs.start_t,
    runs.program,
    files.chunks,
    files.chunk_attempts,
    files.failed_attempts,
    files.events,
    files.bytes_read,
    files.compute_seconds,
    files.compute_seconds / nullif(files.events, 0) AS seconds_per_event,
    files.bytes_per_second,
    files.relative_duration,
    files.is_slow,
    count(*) FILTER (files.is_slow) OVER in_order AS slow_runs,
    files.trace_id
FROM files
INNER JOIN runs USING (trace_id)
WINDOW in_order AS (PARTITION BY files.filename, files.dataset ORDER BY runs.start_t, trace_id)
ORDER BY files.filename, files.dataset, run_number;

COMMENT ON VIEW file_history IS 'Files over time. One row per file and run.';
COMMENT ON COLUMN file_history.filename IS 'File name, as coffea gives it.';
COMMENT ON COLUMN file_history.dataset IS 'Dataset of the file.';
COMMENT ON COLUMN file_history.run_number IS 'Number of the run among those that read the file, from 1.';
COMMENT ON COLUMN file_history.start_t IS 'Start of the run, in seconds since the epoch.';
COMMENT ON COLUMN file_history.program IS 'Program of the run.';
COMMENT ON COLUMN file_history.chunks IS 'Chunks of the file with a result.';
COMMENT ON COLUMN file_history.chunk_attempts IS 'Attempts at its chunks.';
COMMENT ON COLUMN file_history.failed_attempts IS 'Failed attempts, as in files.';
COMMENT ON COLUMN file_history.events IS 'Events of chunks with a result.';
COMMENT ON COLUMN file_history.bytes_read IS 'Bytes that chunks read.';
COMMENT ON COLUMN file_history.compute_seconds IS 'Compute time of its chunks.';
COMMENT ON COLUMN file_history.seconds_per_event IS 'compute_seconds / events.';
COMMENT ON COLUMN file_history.bytes_per_second IS 'Bytes read per second of compute time.';
COMMENT ON COLUMN file_history.relative_duration IS 'Duration of its chunks relative to others of the run, as in files.';
COMMENT ON COLUMN file_history.is_slow IS 'Whether the file was slow in the run, as in files.';
COMMENT ON COLUMN file_history.slow_runs IS 'Number of runs up to this one in which the file was slow.';
COMMENT ON COLUMN file_history.trace_id IS 'ID of the trace.';
