-- Needs: computations, config, environment, graph_layers, graph_updates, io_jobs, jobs, machines, packages, pauses, restrictions, task_groups, trace_info, transfers
CREATE VIEW metadata_map AS
WITH cells(step, level, metadata, cell, "view", hint) AS (
    VALUES
        (1, 'job', 'jobs of the batch system', 'jobs', 'jobs', 'Recorded for scheduler, workers and the recording client in a job of SLURM, HTCondor, PBS, LSF, SGE, OAR or Kubernetes.'),
        (1, 'job', 'cluster and its arguments', 'cluster', 'environment', 'Recorded if the client was created from a cluster object: Client(cluster).'),
        (1, 'configuration', 'Dask''s configuration and its differences from the defaults', 'configuration', 'config', 'Recorded unless environment is excluded from kinds.'),
        (1, 'job', 'machines, cores, memory and limits', 'machines', 'machines', 'Recorded unless environment is excluded from kinds.'),
        (1, 'job', 'versions of packages', 'packages', 'packages', 'Recorded unless environment is excluded from kinds.'),
        (2, 'client', 'clients', 'clients', 'environment', 'Always recorded.'),
        (2, 'client', 'program, arguments and git commit', 'program', 'environment', 'Recorded by a client: roast_recorder.record or roast-record run.'),
        (2, 'client', 'submitting code', 'code', 'computations', 'Recorded with this setting: code=True.'),
        (2, 'graph', 'layers of submitted graphs, before and after fusion', 'layers sent', 'graph_layers', 'Recorded for the recording client, from Dask 2025.4 on.'),
        (2, 'graph', 'layers of graphs on the scheduler', 'layers', 'graph_layers', 'Recorded unless task is excluded from kinds.'),
        (2, 'graph', 'annotations', 'annotations', 'tasks', 'Recorded for annotated tasks: dask.annotate.'),
        (3, 'scheduler', 'cost of graphs on the scheduler', 'graph updates', 'graph_updates', 'Recorded unless event is excluded from kinds.'),
        (3, 'graph', 'tasks', 'tasks', 'tasks', 'Recorded unless task is excluded from kinds.'),
        (3, 'graph', 'dependencies', 'dependencies', 'dependencies', 'Recorded unless task is excluded from kinds.'),
        (3, 'graph', 'priorities', 'priorities', 'tasks', 'Recorded unless task is excluded from kinds.'),
        (3, 'graph', 'restrictions', 'restrictions', 'restrictions', 'Recorded for tasks annotated with workers or resources. Dask does not report the restrictions that it sets itself.'),
        (3, 'graph', 'groups and prefixes', 'groups', 'task_groups', 'Recorded unless task is excluded from kinds.'),
        (3, 'graph', 'spans', 'spans', 'spans', 'Recorded unless span is excluded from kinds; from Dask 2023.6 on.'),
        (3, 'scheduler', 'transitions of tasks', 'transitions', 'transitions', 'Recorded unless transition is excluded from kinds.'),
        (3, 'scheduler', 'queued tasks', 'queueing', 'latencies', 'Recorded if tasks were queued: distributed.scheduler.worker-saturation.'),
        (3, 'scheduler', 'steals', 'steals', 'events', 'Recorded if tasks were stolen: distributed.scheduler.work-stealing.'),
        (3, 'scheduler', 'keys that each client wants', 'wanted keys', 'wanted_keys', 'Recorded unless wanted_keys is excluded from kinds.'),
        (3, 'scheduler', 'plugins', 'plugins', 'environment', 'Recorded unless environment is excluded from kinds.'),
        (3, 'scheduler', 'events', 'events', 'events', 'Recorded unless event is excluded from kinds.'),
        (4, 'worker', 'workers, joined and left', 'workers', 'workers', 'Always recorded.'),
        (4, 'worker', 'CPU, memory and states over time', 'samples', 'worker_samples', 'Recorded unless worker_sample is excluded from kinds.'),
        (4, 'worker', 'states of tasks on workers', 'worker transitions', 'worker_transitions', 'Recorded with this setting: worker_transitions=True.'),
        (4, 'worker', 'transfers of results', 'transfers', 'transfers', 'Recorded with this setting: transfers=True. Dask does not log shards of P2P shuffles.'),
        (4, 'worker', 'spills to disk', 'spills', 'spills', 'Recorded with this setting, if any occur: worker_transitions=True.'),
        (4, 'worker', 'pauses', 'pauses', 'pauses', 'Recorded if a worker pauses.'),
        (4, 'thread', 'thread of each task', 'threads', 'task_runs', 'Recorded for finished tasks.'),
        (5, 'worker', 'attempts and their phases', 'attempts', 'task_runs', 'Recorded unless transition is excluded from kinds.'),
        (5, 'worker', 'fine metrics', 'fine metrics', 'fine_metrics', 'Recorded unless fine_metric is excluded from kinds.'),
        (5, 'I/O', 'coffea''s chunks', 'chunks', 'chunks', 'Recorded for coffea and uproot: measure_chunks.'),
        (5, 'I/O', 'named sections of tasks', 'sections', 'sections', 'Recorded in blocks of code: with roast_recorder.section("name").'),
        (5, 'thread', 'stacks of threads, by Dask''s profiler', 'profiles', 'profile_stacks', 'Recorded unless profile is excluded from kinds.'),
        (5, 'process', 'stacks of the scheduler''s event loop', 'scheduler''s profile', 'profile_stacks', 'Recorded if Dask profiles event loops: not on Python 3.11 and not with distributed.worker.profile.enabled off.'),
        (5, 'process', 'functions, by Yappi', 'yappi', 'yappi_functions', 'roast-analyze import yappi FILE… --into TRACE'),
        (5, 'coroutine', 'coroutines among the functions of an event loop, by Yappi', 'code flags', 'yappi_functions', 'roast-analyze import yappi FILE… --into TRACE, of a file with code flags (docs: how-to/yappi).'),
        (5, 'process', 'processes, by Darshan', 'darshan', 'io_jobs', 'Recorded by Darshan, as with roast-record run --darshan LIB. roast-analyze import darshan LOG… --into TRACE'),
        (5, 'I/O', 'files that were read and written, by Darshan', 'io files', 'io_files', 'Recorded by Darshan, as with roast-record run --darshan LIB. roast-analyze import darshan LOG… --into TRACE'),
        (5, 'I/O', 'single reads and writes, by Darshan''s DXT', 'io segments', 'io_segments', 'roast-analyze import darshan LOG… --into TRACE, of a log with DXT: roast-record run --darshan LIB, or DXT_ENABLE_IO_TRACE=1.'),
        (2, 'client', 'layers of graphs of other clients', NULL, NULL, 'Cannot be recorded. The scheduler receives tasks; only the sending client has the layers.'),
        (2, 'graph', 'steps of an expression before optimization', NULL, NULL, 'Cannot be recorded. Expressions are optimized before the client receives them; graph_layers names what was fused.'),
        (3, 'graph', 'restrictions set by Dask, as for P2P shuffles', NULL, NULL, 'Cannot be recorded. Dask sets them on tasks later and emits no event.'),
        (4, 'worker', 'shards of P2P shuffles, one by one', NULL, NULL, 'Cannot be recorded. Dask does not log them; fine_metrics contains the total size, with the context p2p.'),
        (4, 'coroutine', 'coroutines of a worker''s event loop, over time', NULL, NULL, 'Cannot be recorded. Neither Dask nor Yappi records when a coroutine ran; Yappi has total times.')
),
steps(step, step_name) AS (
    VALUES
        (1, 'configure and launch'),
        (2, 'create and submit'),
        (3, 'populate the scheduler'),
        (4, 'receive on the worker'),
        (5, 'execute and profile')
),
-- Frequent kinds are counted as records, because computing the rows of their views takes long.
counts AS (
    SELECT trace_id, 'jobs' AS cell, count(*) AS records FROM jobs GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        CASE section WHEN 'cluster' THEN 'cluster' WHEN 'client' THEN 'program' ELSE 'plugins' END,
        count(*)
    FROM environment
    WHERE section IN ('cluster', 'client') OR name LIKE '%plugins%'
    GROUP BY ALL
    UNION ALL
    SELECT trace_id, 'configuration', count(*) FROM config GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'machines', count(*) FROM machines GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'packages', count(*) FROM packages GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'clients', count(*) FROM raw.client_added GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'code', count(*) FROM computations WHERE code IS NOT NULL GROUP BY trace_id
    UNION ALL
    SELECT trace_id, CASE stage WHEN 'sent' THEN 'layers sent' ELSE 'layers' END, count(*)
    FROM graph_layers
    GROUP BY ALL
    UNION ALL
    SELECT trace_id, 'graph updates', count(*) FROM graph_updates GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        unnest(['tasks', 'annotations', 'dependencies', 'priorities']),
        unnest([
            count(*),
            count(annotations),
            coalesce(sum(len(dependencies)), 0)::BIGINT,
            count(priority)
        ])
    FROM raw.task
    GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'restrictions', count(*) FROM restrictions GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'groups', count(*) FROM task_groups GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'spans', count(*) FROM raw.span GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        unnest(['transitions', 'queueing', 'threads', 'attempts']),
        unnest([
            count(*),
            count(*) FILTER (finish = 'queued'),
            count(thread),
            count(*) FILTER (finish = 'processing')
        ])
    FROM raw.transition
    GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        unnest(['events', 'steals']),
        unnest([count(*), count(*) FILTER (topic = 'stealing')])
    FROM raw.event
    GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'wanted keys', count(*) FROM raw.wanted_keys GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'workers', count(*) FROM raw.worker_added GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'samples', count(*) FROM raw.worker_sample GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'worker transitions', count(*) FROM raw.worker_transition GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'transfers', count(*) FROM transfers GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'spills', count(*) FROM raw.spill GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'pauses', count(*) FROM pauses GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'fine metrics', count(*) FROM raw.fine_metric GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'chunks', count(*) FROM raw.chunk GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'sections', count(*) FROM raw.section GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        CASE WHEN worker IS NULL THEN 'scheduler''s profile' ELSE 'profiles' END,
        count(*)
    FROM raw.profile
    GROUP BY ALL
    UNION ALL
    SELECT
        trace_id,
        unnest(['yappi', 'code flags']),
        unnest([count(*), count(value ->> 'code_flags')])
    FROM raw."function"
    GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'darshan', count(*) FROM io_jobs GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'io files', count(*) FROM raw.io_file GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'io segments', count(*) FROM raw.io_segment GROUP BY trace_id
),
partial AS (
    SELECT
        trace_id,
        CASE WHEN starts_with(module, 'DXT_') THEN 'io segments' ELSE 'io files' END AS cell,
        count(DISTINCT source) AS logs
    FROM (SELECT trace_id, source, unnest(partial_modules) AS module FROM io_jobs)
    GROUP BY ALL
)
SELECT
    cells.step,
    step_name,
    level,
    metadata,
    coalesce(records, 0) > 0 AS is_recorded,
    CASE WHEN cells.cell IS NOT NULL THEN coalesce(records, 0) END AS records,
    "view",
    CASE
        WHEN coalesce(records, 0) = 0 THEN hint
        WHEN partial.logs > 0
            THEN 'Incomplete: Darshan reached its limit of records or memory (partial logs: '
                || partial.logs || '). DARSHAN_CONFIG_PATH names a file with higher limits '
                || '(docs: how-to/darshan).'
    END AS hint,
    traces.trace_id
FROM (SELECT DISTINCT trace_id FROM trace_info) AS traces
CROSS JOIN cells
INNER JOIN steps ON cells.step = steps.step
LEFT JOIN counts ON counts.trace_id = traces.trace_id AND counts.cell = cells.cell
LEFT JOIN partial ON partial.trace_id = traces.trace_id AND partial.cell = cells.cell
ORDER BY traces.trace_id, cells.step, cells.cell IS NULL, level, metadata;

COMMENT ON VIEW metadata_map IS 'Metadata that a trace contains or lacks. One row per step of a run (launch, submission, scheduling, receipt, execution), level (from the job to the coroutine) and kind of metadata. The hint describes how to record missing metadata, or why that is impossible.';
COMMENT ON COLUMN metadata_map.step IS 'Number of the step, from 1 to 5, in the order of the run.';
COMMENT ON COLUMN metadata_map.step_name IS 'Name of the step.';
COMMENT ON COLUMN metadata_map.level IS 'Subject: job, configuration, client, graph, scheduler, worker, process, thread, coroutine or I/O.';
COMMENT ON COLUMN metadata_map.metadata IS 'Kind of metadata.';
COMMENT ON COLUMN metadata_map.is_recorded IS 'Whether this trace contains the metadata.';
COMMENT ON COLUMN metadata_map.records IS 'Number of records or rows; null if it cannot be recorded.';
COMMENT ON COLUMN metadata_map."view" IS 'View with the metadata; null if it cannot be recorded.';
COMMENT ON COLUMN metadata_map.hint IS 'How to record missing or incomplete metadata, or why that is impossible.';
COMMENT ON COLUMN metadata_map.trace_id IS 'ID of the trace.';
