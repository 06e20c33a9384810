-- Needs: datasets, environment, jobs, run, sessions, trace_info, workers
-- A row is computed when its trace is added, and committed after all its other rows.
CREATE VIEW runs AS
WITH facts AS (
    SELECT
        trace_id,
        -- A recorder that is attached from a shell is not the program.
        nullif(
            min(value) FILTER (section = 'client' AND name = 'program'), 'roast-record'
        ) AS program,
        min(value) FILTER (section = 'client' AND name = 'arguments') AS arguments,
        min(value) FILTER (section = 'client' AND name = 'git commit') AS git_commit,
        min(value) FILTER (section = 'client' AND name = 'git branch') AS git_branch,
        min(value) FILTER (section = 'client' AND name = 'git dirty') = 'true' AS git_dirty,
        min(value) FILTER (section = 'client machine' AND name = 'host') AS client_host,
        min(value) FILTER (section = 'cluster' AND name = 'type') AS cluster_type,
        min(value) FILTER (section LIKE '% versions' AND name = 'python') AS python_version,
        min(value) FILTER (section LIKE '% versions' AND name = 'dask') AS dask_version,
        min(value) FILTER (section LIKE '% versions' AND name = 'distributed')
            AS distributed_version,
        min(value) FILTER (section LIKE '% versions' AND name = 'coffea') AS coffea_version,
        min(value) FILTER (section LIKE '% versions' AND name = 'uproot') AS uproot_version
    FROM environment
    GROUP BY trace_id
),
recordings AS (
    SELECT
        trace_id,
        min(label) AS label,
        min(scheduler) AS scheduler,
        max(schema_version) AS schema_version,
        max(recorder_version) AS recorder_version,
        coalesce(bool_and(clean_end), false) AS clean_end,
        try_cast(sum(records) AS BIGINT) AS records
    FROM trace_info
    GROUP BY trace_id
),
inputs AS (
    SELECT
        trace_id,
        coalesce(list(DISTINCT dataset ORDER BY dataset) FILTER (dataset IS NOT NULL), [])
            AS datasets
    FROM datasets
    GROUP BY trace_id
),
programs AS (
    -- A recorder that is attached submits no tasks. A part of the programs is not all of them.
    SELECT
        trace_id,
        string_agg(DISTINCT program, ', ' ORDER BY program)
            || if(bool_and(program IS NOT NULL), '', ', unknown') AS program,
        count(DISTINCT (program, user_name, host, pid)) > 1 AS are_several,
        if(
            count(DISTINCT user_name) = 1 AND bool_and(user_name IS NOT NULL),
            min(user_name), NULL
        ) AS user_name
    FROM sessions
    WHERE tasks > 0
    GROUP BY trace_id
),
machines AS (
    SELECT
        trace_id,
        coalesce(list(DISTINCT host ORDER BY host) FILTER (host IS NOT NULL), []) AS hosts
    FROM workers
    GROUP BY trace_id
),
batch_jobs AS (
    SELECT
        trace_id,
        min("system") AS batch_system,
        min(account) AS account,
        min("cluster") AS batch_cluster
    FROM jobs
    GROUP BY trace_id
)
SELECT
    run.start_t,
    run.stop_t,
    coalesce(facts.program, programs.program) AS program,
    facts.arguments,
    recordings.label,
    facts.git_commit,
    facts.git_branch,
    facts.git_dirty,
    batch_jobs.account,
    facts.client_host,
    recordings.scheduler,
    facts.cluster_type,
    batch_jobs.batch_system,
    batch_jobs.batch_cluster,
    coalesce(machines.hosts, []) AS hosts,
    coalesce(inputs.datasets, []) AS datasets,
    run.wall_seconds,
    run.busy_seconds,
    run.core_seconds / 3600 AS core_hours,
    -- Unknown if attempts were not recorded; 0 if all of them failed.
    if(run.tasks = 0 OR run.task_runs > 0, coalesce(run.compute_seconds, 0) / 3600, NULL)
        AS compute_hours,
    if(run.tasks = 0 OR run.task_runs > 0, coalesce(run.kept_seconds, 0) / 3600, NULL)
        AS kept_hours,
    run.core_efficiency AS utilization,
    run.workers,
    run.peak_workers,
    run.peak_nthreads,
    run.tasks,
    run.task_runs,
    run.failures,
    run.erred,
    run.retried,
    run.lost,
    run.chunks,
    run.failed_chunks,
    run.skipped_files,
    run.events,
    run.events_per_second,
    run.events_per_core_second,
    run.bytes_read,
    run.bytes_per_second,
    run.output_bytes,
    run.transfer_seconds,
    run.peak_worker_memory_bytes,
    run.lost_records,
    recordings.clean_end,
    recordings.records,
    facts.python_version,
    facts.dask_version,
    facts.distributed_version,
    facts.coffea_version,
    facts.uproot_version,
    recordings.recorder_version,
    recordings.schema_version,
    programs.user_name,
    facts.program IS NULL AND coalesce(programs.are_several, false) AS is_shared,
    run.trace_id
FROM run
LEFT JOIN programs USING (trace_id)
LEFT JOIN recordings USING (trace_id)
LEFT JOIN facts USING (trace_id)
LEFT JOIN inputs USING (trace_id)
LEFT JOIN machines USING (trace_id)
LEFT JOIN batch_jobs USING (trace_id);

COMMENT ON VIEW runs IS 'Runs in the store. One row per trace.';
COMMENT ON COLUMN runs.start_t IS 'First record, in seconds since the epoch.';
COMMENT ON COLUMN runs.stop_t IS 'Last record, in seconds since the epoch.';
COMMENT ON COLUMN runs.program IS 'File name of the program of the recording client or, if a scheduler or roast-record attach recorded it, names of the programs that submitted tasks, in alphabetical order, where clients report them: fit.py, hist.py. With unknown as the last one if not all of them are known.';
COMMENT ON COLUMN runs.arguments IS 'Arguments of the program, as a JSON list.';
COMMENT ON COLUMN runs.label IS 'Label that the user gave the recording.';
COMMENT ON COLUMN runs.git_commit IS 'Commit of the working directory of the program.';
COMMENT ON COLUMN runs.git_branch IS 'Branch of that folder.';
COMMENT ON COLUMN runs.git_dirty IS 'Whether tracked files of that folder differed from the commit.';
COMMENT ON COLUMN runs.account IS 'Account that the batch system charged.';
COMMENT ON COLUMN runs.client_host IS 'Host of the recording client.';
COMMENT ON COLUMN runs.scheduler IS 'Address of the scheduler.';
COMMENT ON COLUMN runs.cluster_type IS 'Class of the cluster object of the recording client.';
COMMENT ON COLUMN runs.batch_system IS 'Batch system of the workers.';
COMMENT ON COLUMN runs.batch_cluster IS 'Name of the cluster in the batch system, or of the submitting machine.';
COMMENT ON COLUMN runs.hosts IS 'Hosts of the workers, in alphabetical order.';
COMMENT ON COLUMN runs.datasets IS 'Datasets of the chunks, in alphabetical order.';
COMMENT ON COLUMN runs.wall_seconds IS 'Duration of the recording.';
COMMENT ON COLUMN runs.busy_seconds IS 'Time from the first dispatch of a task to the last end.';
COMMENT ON COLUMN runs.core_hours IS 'Available thread time in hours.';
COMMENT ON COLUMN runs.compute_hours IS 'Compute time of all attempts in hours.';
COMMENT ON COLUMN runs.kept_hours IS 'Compute time in hours of attempts whose result was kept.';
COMMENT ON COLUMN runs.utilization IS 'compute_hours / core_hours.';
COMMENT ON COLUMN runs.workers IS 'Number of worker processes.';
COMMENT ON COLUMN runs.peak_workers IS 'Maximum number of workers at a time.';
COMMENT ON COLUMN runs.peak_nthreads IS 'Maximum number of threads at a time.';
COMMENT ON COLUMN runs.tasks IS 'Keys submitted. Null if there are attempts, but no record of a task.';
COMMENT ON COLUMN runs.task_runs IS 'Task attempts.';
COMMENT ON COLUMN runs.failures IS 'Rows of the view failures.';
COMMENT ON COLUMN runs.erred IS 'Attempts that failed for good.';
COMMENT ON COLUMN runs.retried IS 'Attempts that failed and were retried.';
COMMENT ON COLUMN runs.lost IS 'Attempts lost with their worker.';
COMMENT ON COLUMN runs.chunks IS 'Chunks with a result.';
COMMENT ON COLUMN runs.failed_chunks IS 'Failed attempts at chunks.';
COMMENT ON COLUMN runs.skipped_files IS 'Files that coffea skipped because it could not read them.';
COMMENT ON COLUMN runs.events IS 'Events of all chunks with a result.';
COMMENT ON COLUMN runs.events_per_second IS 'Events per second of the time in which chunks were processed.';
COMMENT ON COLUMN runs.events_per_core_second IS 'Events per second of available thread time.';
COMMENT ON COLUMN runs.bytes_read IS 'Bytes that chunks read.';
COMMENT ON COLUMN runs.bytes_per_second IS 'Bytes read per second of the time in which chunks were processed.';
COMMENT ON COLUMN runs.output_bytes IS 'Size of all results.';
COMMENT ON COLUMN runs.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN runs.peak_worker_memory_bytes IS 'Maximum memory of a worker.';
COMMENT ON COLUMN runs.lost_records IS 'Records that are known to be missing.';
COMMENT ON COLUMN runs.clean_end IS 'Whether all segments of the trace ended cleanly. False while it is being recorded.';
COMMENT ON COLUMN runs.records IS 'Records in the trace.';
COMMENT ON COLUMN runs.python_version IS 'Version of Python.';
COMMENT ON COLUMN runs.dask_version IS 'Version of dask.';
COMMENT ON COLUMN runs.distributed_version IS 'Version of distributed.';
COMMENT ON COLUMN runs.coffea_version IS 'Version of coffea.';
COMMENT ON COLUMN runs.uproot_version IS 'Version of uproot.';
COMMENT ON COLUMN runs.recorder_version IS 'Version of the recorder.';
COMMENT ON COLUMN runs.schema_version IS 'Version of the trace format.';
COMMENT ON COLUMN runs.user_name IS 'User of the programs that submitted tasks, if it is the same and known of all.';
COMMENT ON COLUMN runs.is_shared IS 'Whether several programs submitted tasks, and none of them recorded: program_history has a row for each that is known.';
COMMENT ON COLUMN runs.trace_id IS 'ID of the trace.';
