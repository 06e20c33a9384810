-- Needs: _io_jobs
CREATE VIEW io_files AS
SELECT
    io.filename,
    io.measured.module AS module,
    io.measured.rank AS rank,
    io.measured.opens AS opens,
    io.measured.reads AS reads,
    io.measured.writes AS writes,
    io.measured.bytes_read AS bytes_read,
    io.measured.bytes_written AS bytes_written,
    io.measured.read_seconds AS read_seconds,
    io.measured.write_seconds AS write_seconds,
    io.measured.metadata_seconds AS metadata_seconds,
    io.start_t,
    io.stop_t,
    jobs.host,
    jobs.pid,
    jobs.worker,
    io.value AS counters,
    jobs.filename AS log,
    io.source,
    io.trace_id
FROM raw.io_file AS io
LEFT JOIN _io_jobs AS jobs USING (trace_id, source)
ORDER BY io.trace_id, io.rowid;

COMMENT ON VIEW io_files IS 'File access counters from Darshan. One row per log, I/O layer, file and rank. Access through MPI-IO or HDF5 also counts in the layers below, so sum one module at a time. Empty unless a log was imported.';
COMMENT ON COLUMN io_files.filename IS 'File path. The file''s number in the log if Darshan did not record a path.';
COMMENT ON COLUMN io_files.module IS 'I/O layer, as Darshan names it: POSIX, MPI-IO, STDIO, H5F, H5D and others.';
COMMENT ON COLUMN io_files.rank IS 'Rank of the process; -1 if Darshan combined all processes of the job.';
COMMENT ON COLUMN io_files.opens IS 'Open calls, independent and collective.';
COMMENT ON COLUMN io_files.reads IS 'Read calls of all kinds.';
COMMENT ON COLUMN io_files.writes IS 'Write calls of all kinds.';
COMMENT ON COLUMN io_files.bytes_read IS 'Bytes read.';
COMMENT ON COLUMN io_files.bytes_written IS 'Bytes written.';
COMMENT ON COLUMN io_files.read_seconds IS 'Time in read calls, summed over processes.';
COMMENT ON COLUMN io_files.write_seconds IS 'Time in write calls, summed over processes.';
COMMENT ON COLUMN io_files.metadata_seconds IS 'Time in metadata calls such as open, stat and seek, summed over processes.';
COMMENT ON COLUMN io_files.start_t IS 'First access, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_files.stop_t IS 'Last access, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_files.host IS 'Host name from Darshan. Recorded only with extended tracing (DXT).';
COMMENT ON COLUMN io_files.pid IS 'Process id, if the job was a single process: from the name of the log, otherwise the job number, which is the process id without a batch system.';
COMMENT ON COLUMN io_files.worker IS 'Address of the worker process. See io_jobs for how it is determined.';
COMMENT ON COLUMN io_files.counters IS 'All nonzero counters of the layer, by Darshan''s names, as JSON.';
COMMENT ON COLUMN io_files.log IS 'Log file name.';
COMMENT ON COLUMN io_files.source IS 'ID of the log, as in io_jobs.';
COMMENT ON COLUMN io_files.trace_id IS 'ID of the trace.';
