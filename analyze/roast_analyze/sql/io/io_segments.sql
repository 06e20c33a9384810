-- Needs: _io_clocks, _io_jobs, _io_runs
-- Darshan does not record threads, and its clock is not that of Dask's times. A call belongs to an
-- attempt that computes during it at the plausible offsets between the clocks.
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
-- The share of the plausible offsets of the clock at which the call lies within the attempt.
fits AS (
    SELECT
        calls.seq,
        run.key,
        run.attempt,
        run.seq AS run,
        CASE
            WHEN clock.most_offset > clock.least_offset
                THEN (
                    least(run.stop_t - calls.stop_t, clock.most_offset)
                    - greatest(run.start_t - calls.start_t, clock.least_offset)
                ) / (clock.most_offset - clock.least_offset)
            ELSE 1
        END AS share
    FROM calls
    INNER JOIN _io_clocks AS clock USING (trace_id, source)
    INNER JOIN _io_runs AS run
        ON run.trace_id = calls.trace_id
        AND run.worker = calls.of_worker
        AND run.start_t - calls.start_t <= clock.most_offset
        AND run.stop_t - calls.stop_t >= clock.least_offset
        AND run.start_t - calls.start_t <= run.stop_t - calls.stop_t
),
runs AS (
    SELECT
        seq,
        list({key: key, attempt: attempt} ORDER BY share DESC, run) AS runs,
        max(share) / greatest(sum(share), 1) AS confidence
    FROM fits
    WHERE share > 0
    GROUP BY seq
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
    CASE WHEN runs.confidence >= 0.95 THEN runs.runs[1].key END AS key,
    CASE WHEN runs.confidence >= 0.95 THEN runs.runs[1].attempt END AS attempt,
    CASE
        WHEN calls.of_worker IS NOT NULL
            THEN coalesce(list_transform(runs.runs, lambda run: run.key), [])
    END AS candidate_keys,
    runs.confidence,
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
COMMENT ON COLUMN io_segments.key IS 'Task that probably made the call: the first of candidate_keys if confidence is at least 0.95, else null. Darshan records neither tasks nor threads.';
COMMENT ON COLUMN io_segments.attempt IS 'Attempt number of this task.';
COMMENT ON COLUMN io_segments.candidate_keys IS 'Keys of the tasks that the worker may have been computing during the call, the most probable first. Null if the worker is unknown.';
COMMENT ON COLUMN io_segments.confidence IS 'Confidence in the first of candidate_keys, from 0 to 1: share of the plausible offsets between Darshan''s clock and Dask''s times (io_jobs.clock_offset_seconds) at which the worker computed this task during the call, divided among tasks computed at the same time.';
COMMENT ON COLUMN io_segments.log IS 'Log file name.';
COMMENT ON COLUMN io_segments.source IS 'ID of the log, as in io_jobs.';
COMMENT ON COLUMN io_segments.trace_id IS 'ID of the trace.';
