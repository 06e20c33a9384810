-- Needs: _io_clocks, _io_jobs, _trace_range
CREATE VIEW io_jobs AS
SELECT
    try_cast(jobs.value ->> '$.job_id' AS BIGINT) AS job_id,
    jobs.value ->> '$.executable' AS executable,
    try_cast(jobs.value ->> '$.processes' AS BIGINT) AS processes,
    jobs.start_t,
    jobs.stop_t,
    try_cast(jobs.value ->> '$.run_seconds' AS DOUBLE) AS run_seconds,
    jobs.start_t <= recording.stop_t AND jobs.stop_t >= recording.start_t AS within_run,
    json_keys(jobs.value -> '$.modules') AS modules,
    jobs.partial_modules,
    (jobs.value ->> '$.left_out[*]') AS skipped_modules,
    jobs.host,
    jobs.pid,
    jobs.worker,
    jobs.candidate_workers,
    (clock.least_offset + clock.most_offset) / 2 AS clock_offset_seconds,
    (clock.most_offset - clock.least_offset) / 2 AS clock_offset_error_seconds,
    jobs.versions ->> 'darshan' AS darshan_version,
    jobs.filename AS log,
    jobs.source,
    jobs.trace_id
FROM _io_jobs AS jobs
INNER JOIN _trace_range AS recording USING (trace_id)
LEFT JOIN _io_clocks AS clock USING (trace_id, source)
ORDER BY jobs.trace_id, jobs.start_t, jobs.source;

COMMENT ON VIEW io_jobs IS 'Jobs whose I/O was measured by Darshan. One row per imported log. Without MPI, each process is a job.';
COMMENT ON COLUMN io_jobs.job_id IS 'Job number of the batch system. Without one, the process id.';
COMMENT ON COLUMN io_jobs.executable IS 'Executable. Its arguments are not imported, since they can contain secrets.';
COMMENT ON COLUMN io_jobs.processes IS 'Processes of the job.';
COMMENT ON COLUMN io_jobs.start_t IS 'Start, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_jobs.stop_t IS 'End, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_jobs.run_seconds IS 'Duration reported by Darshan: at least 1 s in older versions.';
COMMENT ON COLUMN io_jobs.within_run IS 'True if the job overlaps the recording. If not, the log may belong to another run.';
COMMENT ON COLUMN io_jobs.modules IS 'I/O layers measured.';
COMMENT ON COLUMN io_jobs.partial_modules IS 'Layers for which Darshan reached its limit of records or memory, so that files opened later are missing. Also in loss.';
COMMENT ON COLUMN io_jobs.skipped_modules IS 'Layers that were not imported, since they do not describe file access.';
COMMENT ON COLUMN io_jobs.host IS 'Host name from Darshan. Recorded only with extended tracing (DXT).';
COMMENT ON COLUMN io_jobs.pid IS 'Process id, if the job was a single process: from the name of the log, otherwise the job number, which is the process id without a batch system.';
COMMENT ON COLUMN io_jobs.worker IS 'Address of the worker process: the only one with this process id during the job, or the only one of these on the same host.';
COMMENT ON COLUMN io_jobs.candidate_workers IS 'Number of worker processes with this process id during the job.';
COMMENT ON COLUMN io_jobs.clock_offset_seconds IS 'Estimated offset to add to the times of traced calls (DXT) so that they lie within the worker''s tasks. Null without such calls.';
COMMENT ON COLUMN io_jobs.clock_offset_error_seconds IS 'Half the width of the range of plausible offsets.';
COMMENT ON COLUMN io_jobs.darshan_version IS 'Darshan version.';
COMMENT ON COLUMN io_jobs.log IS 'Log file name.';
COMMENT ON COLUMN io_jobs.source IS 'ID of the log: the first 16 hexadecimal digits of its SHA-256.';
COMMENT ON COLUMN io_jobs.trace_id IS 'ID of the trace.';
