-- Needs: _io_jobs, _trace_range
CREATE VIEW io_jobs AS
SELECT
    (jobs.value ->> '$.job_id')::BIGINT AS job_id,
    jobs.value ->> '$.executable' AS executable,
    (jobs.value ->> '$.processes')::BIGINT AS processes,
    jobs.start_t,
    jobs.stop_t,
    (jobs.value ->> '$.run_seconds')::DOUBLE AS run_seconds,
    jobs.start_t <= recording.stop_t AND jobs.stop_t >= recording.start_t AS within_run,
    json_keys(jobs.value -> '$.modules') AS modules,
    list_filter(
        json_keys(jobs.value -> '$.modules'),
        lambda module: coalesce(
            (jobs.value -> '$.modules' -> module ->> 'partial')::BOOLEAN, false
        )
    ) AS partial_modules,
    (jobs.value ->> '$.left_out[*]') AS skipped_modules,
    jobs.host,
    jobs.pid,
    jobs.worker,
    jobs.candidate_workers,
    jobs.versions ->> 'darshan' AS darshan_version,
    jobs.filename AS log,
    jobs.source,
    jobs.trace_id
FROM _io_jobs AS jobs
INNER JOIN _trace_range AS recording USING (trace_id)
ORDER BY jobs.trace_id, jobs.start_t, jobs.source;

COMMENT ON VIEW io_jobs IS 'Jobs whose input and output Darshan measured: one row per log that was imported. Without MPI each process is a job of its own.';
COMMENT ON COLUMN io_jobs.job_id IS 'Number of the job: of the batch system, or of the process if there was none.';
COMMENT ON COLUMN io_jobs.executable IS 'What ran. Its arguments are not imported: they can hold secrets.';
COMMENT ON COLUMN io_jobs.processes IS 'Processes of the job.';
COMMENT ON COLUMN io_jobs.start_t IS 'When it began, in seconds since the epoch, by the clock of its host.';
COMMENT ON COLUMN io_jobs.stop_t IS 'When it ended.';
COMMENT ON COLUMN io_jobs.run_seconds IS 'How long it ran, as Darshan counts: at least 1 s in older versions.';
COMMENT ON COLUMN io_jobs.within_run IS 'Whether it ran while the trace was recorded; if not, the log may be another run''s.';
COMMENT ON COLUMN io_jobs.modules IS 'Layers that Darshan measured.';
COMMENT ON COLUMN io_jobs.partial_modules IS 'Those of them of which Darshan says that it ran out of memory and did not measure all.';
COMMENT ON COLUMN io_jobs.skipped_modules IS 'Those of them that were not imported: what they hold is not about calls on files.';
COMMENT ON COLUMN io_jobs.host IS 'Host, as Darshan names it; known only if it traced segments.';
COMMENT ON COLUMN io_jobs.pid IS 'Process id, if the job was one process: by the name of the log, or else the number of the job, which is that of the process where there was no batch system.';
COMMENT ON COLUMN io_jobs.worker IS 'Address of the worker process that it was: the only one with that process id that was there meanwhile, or the only one of these on that host.';
COMMENT ON COLUMN io_jobs.candidate_workers IS 'Worker processes with that process id that were there meanwhile.';
COMMENT ON COLUMN io_jobs.darshan_version IS 'Version of Darshan that measured.';
COMMENT ON COLUMN io_jobs.log IS 'Name of the log.';
COMMENT ON COLUMN io_jobs.source IS 'Identity of the log: the first 16 hexadecimal digits of its SHA-256.';
COMMENT ON COLUMN io_jobs.trace_id IS 'Identity of the recording.';
