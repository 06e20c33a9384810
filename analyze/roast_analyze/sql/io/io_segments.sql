-- Needs: _io_jobs, _task_runs
-- Darshan does not say which thread called. If one attempt alone was computing on the worker
-- all the while, it was its; of several, nobody knows whose.
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

COMMENT ON VIEW io_segments IS 'Calls that read from files or wrote to them, as Darshan''s extended tracing (DXT) saw them: one row per call and layer of I/O. Empty unless a log with DXT was imported.';
COMMENT ON COLUMN io_segments.filename IS 'File, by its path; its number in the log if Darshan does not know it.';
COMMENT ON COLUMN io_segments.module IS 'Layer of I/O: POSIX or MPI-IO. A call to MPI-IO makes calls to POSIX, which have rows of their own.';
COMMENT ON COLUMN io_segments.operation IS 'read or write.';
COMMENT ON COLUMN io_segments.offset_bytes IS 'Place in the file at which it began.';
COMMENT ON COLUMN io_segments.bytes IS 'Bytes that were read or written.';
COMMENT ON COLUMN io_segments.start_t IS 'When the call began, in seconds since the epoch, by the clock of the host.';
COMMENT ON COLUMN io_segments.stop_t IS 'When it ended.';
COMMENT ON COLUMN io_segments.host IS 'Host, as Darshan names it.';
COMMENT ON COLUMN io_segments.rank IS 'Rank of the process in its job.';
COMMENT ON COLUMN io_segments.pid IS 'Process id, if the job was one process: by the name of the log, or else the number of the job, which is that of the process where there was no batch system.';
COMMENT ON COLUMN io_segments.worker IS 'Address of the worker process that called; io_jobs says how it is known.';
COMMENT ON COLUMN io_segments.key IS 'Task that called: the only one that the worker was computing meanwhile. Null if there was none, or there were several: Darshan does not tell the thread.';
COMMENT ON COLUMN io_segments.attempt IS 'Which attempt at that task.';
COMMENT ON COLUMN io_segments.candidate_keys IS 'Keys of the tasks that the worker was computing meanwhile, by the clocks of worker and host; null if the worker is not known.';
COMMENT ON COLUMN io_segments.log IS 'Name of the log.';
COMMENT ON COLUMN io_segments.source IS 'Identity of the log, as in io_jobs.';
COMMENT ON COLUMN io_segments.trace_id IS 'Identity of the recording.';
