-- Needs: _io_jobs, _task_runs
-- Darshan does not record threads. If exactly one attempt was computing on the worker during
-- the call, the call belongs to it; otherwise the task is unknown.
CREATE VIEW io_segments AS
WITH calls AS (
    SELECT
        io.rowid AS seq,
        io.*,
        jobs.pid,
        jobs.worker AS of_worker,
        jobs.filename AS log
    FROM raw.io_segment AS io
    LEFT JOIN _io_jobs AS jobs USING (trace_id, source)
),
runs AS (
    SELECT
        calls.seq,
        list(
            {key: run.key, attempt: run.attempt, thread: run.thread} ORDER BY run.seq
        ) AS runs
    FROM calls
    INNER JOIN _task_runs AS run
        ON run.trace_id = calls.trace_id
        AND run.worker = calls.of_worker
        AND run.compute_start_t <= calls.stop_t
        AND run.compute_stop_t >= calls.start_t
    GROUP BY calls.seq
)
SELECT
    calls.filename,
    calls.measured.module AS module,
    calls.activity AS operation,
    calls.measured.offset_bytes AS offset_bytes,
    calls.nbytes AS bytes,
    calls.start_t,
    calls.stop_t,
    calls.host,
    calls.measured.rank AS rank,
    calls.pid,
    calls.of_worker AS worker,
    CASE WHEN len(runs.runs) = 1 THEN runs.runs[1].key END AS key,
    CASE WHEN len(runs.runs) = 1 THEN runs.runs[1].attempt END AS attempt,
    CASE
        WHEN calls.of_worker IS NOT NULL
            THEN coalesce(list_transform(runs.runs, lambda run: run.key), [])
    END AS candidate_keys,
    calls.log,
    calls.source,
    calls.trace_id
FROM calls
LEFT JOIN runs USING (seq)
ORDER BY calls.trace_id, calls.seq;

COMMENT ON VIEW io_segments IS 'Read and write calls traced by Darshan DXT. One row per call and I/O layer. Empty unless a log with extended tracing (DXT) was imported.';
COMMENT ON COLUMN io_segments.filename IS 'File path. The file''s number in the log if Darshan did not record a path.';
COMMENT ON COLUMN io_segments.module IS 'I/O layer: POSIX or MPI-IO. POSIX calls made by MPI-IO have rows of their own.';
COMMENT ON COLUMN io_segments.operation IS 'read or write.';
COMMENT ON COLUMN io_segments.offset_bytes IS 'Start offset in the file.';
COMMENT ON COLUMN io_segments.bytes IS 'Bytes read or written.';
COMMENT ON COLUMN io_segments.start_t IS 'Start of the call, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_segments.stop_t IS 'End, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_segments.host IS 'Host name from Darshan.';
COMMENT ON COLUMN io_segments.rank IS 'Rank of the process in its job.';
COMMENT ON COLUMN io_segments.pid IS 'Process id, if the job was a single process: from the name of the log, otherwise the job number, which is the process id without a batch system.';
COMMENT ON COLUMN io_segments.worker IS 'Address of the worker process. See io_jobs for how it is determined.';
COMMENT ON COLUMN io_segments.key IS 'Task that made the call: the only one that the worker was computing. Null if there was none or more than one, since Darshan does not record threads.';
COMMENT ON COLUMN io_segments.attempt IS 'Attempt number of this task.';
COMMENT ON COLUMN io_segments.candidate_keys IS 'Keys of the tasks that the worker was computing during the call, by the clocks of worker and host. Null if the worker is unknown.';
COMMENT ON COLUMN io_segments.log IS 'Log file name.';
COMMENT ON COLUMN io_segments.source IS 'Identity of the log, as in io_jobs.';
COMMENT ON COLUMN io_segments.trace_id IS 'Trace identity.';
