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

COMMENT ON VIEW io_files IS 'What processes did to their files, as Darshan counted: one row per log, layer of I/O, file and rank. A file that is read through MPI-IO or HDF5 has a row of each layer and counts in each, so that sums are for one module at a time. Empty unless a log was imported.';
COMMENT ON COLUMN io_files.filename IS 'File, by its path; its number in the log if Darshan does not know it.';
COMMENT ON COLUMN io_files.module IS 'Layer of I/O, as Darshan names it: POSIX, MPI-IO, STDIO, H5F, H5D and others.';
COMMENT ON COLUMN io_files.rank IS 'Rank of the process; -1 if Darshan put all processes of the job together.';
COMMENT ON COLUMN io_files.opens IS 'Times that it was opened, alone or collectively.';
COMMENT ON COLUMN io_files.reads IS 'Calls that read, of all sorts that the layer has.';
COMMENT ON COLUMN io_files.writes IS 'Calls that wrote, of all sorts that the layer has.';
COMMENT ON COLUMN io_files.bytes_read IS 'Bytes that were read.';
COMMENT ON COLUMN io_files.bytes_written IS 'Bytes that were written.';
COMMENT ON COLUMN io_files.read_seconds IS 'Time in calls that read, of all processes together.';
COMMENT ON COLUMN io_files.write_seconds IS 'Time in calls that wrote, of all processes together.';
COMMENT ON COLUMN io_files.metadata_seconds IS 'Time in calls such as open, stat and seek, of all processes together.';
COMMENT ON COLUMN io_files.start_t IS 'When it was first in use, in seconds since the epoch, by the clock of the host.';
COMMENT ON COLUMN io_files.stop_t IS 'When it was last in use.';
COMMENT ON COLUMN io_files.host IS 'Host, as Darshan names it; known only if it traced segments.';
COMMENT ON COLUMN io_files.pid IS 'Process id, if the job was one process: by the name of the log, or else the number of the job, which is that of the process where there was no batch system.';
COMMENT ON COLUMN io_files.worker IS 'Address of the worker process that did it; io_jobs says how it is known.';
COMMENT ON COLUMN io_files.counters IS 'All counters of the layer that are not 0, by Darshan''s names, as JSON.';
COMMENT ON COLUMN io_files.log IS 'Name of the log.';
COMMENT ON COLUMN io_files.source IS 'Identity of the log, as in io_jobs.';
COMMENT ON COLUMN io_files.trace_id IS 'Identity of the recording.';
