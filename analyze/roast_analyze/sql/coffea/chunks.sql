-- Needs: _chunks
CREATE VIEW chunks AS
SELECT
    key,
    attempt,
    dataset,
    filename,
    treename,
    entry_start,
    entry_stop,
    events,
    bytes_read,
    len(columns) AS columns_read,
    len(branches) AS branches_read,
    process_seconds,
    open_seconds,
    cpu_seconds,
    worker,
    outcome,
    output_bytes,
    events / nullif(compute_seconds, 0) AS events_per_second,
    exception,
    compute_seconds,
    processing_t,
    end_t,
    file_uuid,
    usermeta,
    run_id,
    trace_id
FROM _chunks
ORDER BY trace_id, seq;

COMMENT ON VIEW chunks IS 'Attempts at coffea chunks: one row per attempt, the same attempt as in task_runs.';
COMMENT ON COLUMN chunks.key IS 'Key of the task that processes the chunk.';
COMMENT ON COLUMN chunks.attempt IS 'Number of the attempt within its key, from 1.';
COMMENT ON COLUMN chunks.dataset IS 'Dataset that the file belongs to.';
COMMENT ON COLUMN chunks.filename IS 'File that is read, as coffea names it.';
COMMENT ON COLUMN chunks.treename IS 'Tree or table within the file.';
COMMENT ON COLUMN chunks.entry_start IS 'First entry of the chunk.';
COMMENT ON COLUMN chunks.entry_stop IS 'Entry after its last.';
COMMENT ON COLUMN chunks.events IS 'Events processed: as measured, else the entries of the chunk if the attempt ended well, else null.';
COMMENT ON COLUMN chunks.bytes_read IS 'Bytes requested from the source; null if not measured.';
COMMENT ON COLUMN chunks.columns_read IS 'Number of columns that were read; null if not measured.';
COMMENT ON COLUMN chunks.branches_read IS 'Number of branches that were read; null if not measured.';
COMMENT ON COLUMN chunks.process_seconds IS 'Time in the processor, reading included; null if not measured.';
COMMENT ON COLUMN chunks.open_seconds IS 'Time to open the file; null if not measured.';
COMMENT ON COLUMN chunks.cpu_seconds IS 'CPU time of the thread; null if not measured.';
COMMENT ON COLUMN chunks.worker IS 'Address of the worker.';
COMMENT ON COLUMN chunks.outcome IS 'How the attempt ended, as in task_runs.';
COMMENT ON COLUMN chunks.output_bytes IS 'Size of the result.';
COMMENT ON COLUMN chunks.events_per_second IS 'events / compute_seconds.';
COMMENT ON COLUMN chunks.exception IS 'Text of the exception.';
COMMENT ON COLUMN chunks.compute_seconds IS 'Computing time of the attempt, as in task_runs.';
COMMENT ON COLUMN chunks.processing_t IS 'When it was sent to the worker, in seconds since the epoch.';
COMMENT ON COLUMN chunks.end_t IS 'When the scheduler heard of its end, in seconds since the epoch.';
COMMENT ON COLUMN chunks.file_uuid IS 'UUID that the file carries.';
COMMENT ON COLUMN chunks.usermeta IS 'Metadata that the user gave the dataset, as JSON.';
COMMENT ON COLUMN chunks.run_id IS 'Number that Dask gave the attempt.';
COMMENT ON COLUMN chunks.trace_id IS 'Identity of the recording.';
