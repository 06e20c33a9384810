-- Needs: computations, config, environment, graph_layers, graph_updates, io_jobs, jobs, machines, packages, pauses, restrictions, task_groups, trace_info, transfers
CREATE VIEW metadata_map AS
WITH cells(step, level, metadata, cell, "view", hint) AS (
    VALUES
        (1, 'job', 'jobs of the batch system', 'jobs', 'jobs', 'Is recorded of scheduler, workers and recording client that run in a job of SLURM, HTCondor, PBS, LSF, SGE, OAR or Kubernetes.'),
        (1, 'job', 'cluster and its arguments', 'cluster', 'environment', 'Is recorded if the recording client knows its cluster: Client(cluster).'),
        (1, 'configuration', 'Dask''s configuration, and what differs from the defaults', 'configuration', 'config', 'Is recorded unless environment is left out of kinds.'),
        (1, 'job', 'machines, cores, memory and limits', 'machines', 'machines', 'Is recorded unless environment is left out of kinds.'),
        (1, 'job', 'versions of packages', 'packages', 'packages', 'Is recorded unless environment is left out of kinds.'),
        (2, 'client', 'clients', 'clients', 'environment', 'Is recorded always.'),
        (2, 'client', 'program, its arguments, its git commit', 'program', 'environment', 'Is recorded by a client: roast_recorder.record or roast-record run.'),
        (2, 'client', 'code that submits', 'code', 'computations', 'Is recorded if it is asked for: code=True.'),
        (2, 'graph', 'layers of graphs as the client sends them, before and after they are fused', 'layers sent', 'graph_layers', 'Is recorded of the client that records, from Dask 2025.4 on.'),
        (2, 'graph', 'layers of graphs as tasks came of them', 'layers', 'graph_layers', 'Is recorded unless task is left out of kinds.'),
        (2, 'graph', 'annotations', 'annotations', 'tasks', 'Is recorded of tasks that are annotated: dask.annotate.'),
        (3, 'scheduler', 'what graphs cost the scheduler', 'graph updates', 'graph_updates', 'Is recorded unless event is left out of kinds.'),
        (3, 'graph', 'tasks', 'tasks', 'tasks', 'Is recorded unless task is left out of kinds.'),
        (3, 'graph', 'dependencies', 'dependencies', 'dependencies', 'Is recorded unless task is left out of kinds.'),
        (3, 'graph', 'priorities', 'priorities', 'tasks', 'Is recorded unless task is left out of kinds.'),
        (3, 'graph', 'restrictions', 'restrictions', 'restrictions', 'Is recorded of tasks that are annotated with workers or resources. Those that Dask sets itself are not told to anybody.'),
        (3, 'graph', 'groups and prefixes', 'groups', 'task_groups', 'Is recorded unless task is left out of kinds.'),
        (3, 'graph', 'spans', 'spans', 'spans', 'Is recorded unless span is left out of kinds; from Dask 2023.6 on.'),
        (3, 'scheduler', 'transitions of tasks', 'transitions', 'transitions', 'Is recorded unless transition is left out of kinds.'),
        (3, 'scheduler', 'tasks held back in the queue', 'queueing', 'latencies', 'Is recorded if tasks were queued: distributed.scheduler.worker-saturation.'),
        (3, 'scheduler', 'steals', 'steals', 'events', 'Is recorded if a worker stole: distributed.scheduler.work-stealing.'),
        (3, 'scheduler', 'plugins', 'plugins', 'environment', 'Is recorded unless environment is left out of kinds.'),
        (3, 'scheduler', 'events', 'events', 'events', 'Is recorded unless event is left out of kinds.'),
        (4, 'worker', 'workers, from when to when', 'workers', 'workers', 'Is recorded always.'),
        (4, 'worker', 'CPU, memory and states over time', 'samples', 'worker_samples', 'Is recorded unless worker_sample is left out of kinds.'),
        (4, 'worker', 'states of tasks on workers', 'worker transitions', 'worker_transitions', 'Is recorded if it is asked for: worker_transitions=True.'),
        (4, 'worker', 'transfers of results', 'transfers', 'transfers', 'Is recorded if it is asked for: transfers=True. Shards of P2P shuffles are in no log of Dask''s.'),
        (4, 'worker', 'spills to disk', 'spills', 'spills', 'Is recorded if it is asked for and happens: worker_transitions=True.'),
        (4, 'worker', 'pauses', 'pauses', 'pauses', 'Is recorded if a worker pauses.'),
        (4, 'thread', 'thread of each task', 'threads', 'task_runs', 'Is recorded of tasks that ended.'),
        (5, 'worker', 'attempts at tasks, and their parts', 'attempts', 'task_runs', 'Is recorded unless transition is left out of kinds.'),
        (5, 'worker', 'fine metrics', 'fine metrics', 'fine_metrics', 'Is recorded unless fine_metric is left out of kinds.'),
        (5, 'I/O', 'coffea''s chunks', 'chunks', 'chunks', 'Is recorded of coffea and uproot: measure_chunks.'),
        (5, 'I/O', 'named parts of tasks', 'sections', 'sections', 'Is recorded where the code says so: with roast_recorder.section("name").'),
        (5, 'thread', 'what threads were at, by Dask''s profiler', 'profiles', 'profile_stacks', 'Is recorded unless profile is left out of kinds.'),
        (5, 'process', 'what the scheduler''s event loop was at', 'scheduler''s profile', 'profile_stacks', 'Is recorded where Dask watches event loops: not on Python 3.11, nor with distributed.worker.profile.enabled off.'),
        (5, 'process', 'functions, by Yappi', 'yappi', 'yappi_functions', 'roast-analyze import yappi FILE… --into TRACE'),
        (5, 'coroutine', 'coroutines among the functions of an event loop, by Yappi', 'yappi', 'yappi_functions', 'roast-analyze import yappi FILE… --into TRACE'),
        (5, 'process', 'processes that Darshan looked at', 'darshan', 'io_jobs', 'roast-analyze import darshan LOG… --into TRACE'),
        (5, 'I/O', 'files that were read and written, by Darshan', 'io files', 'io_files', 'roast-analyze import darshan LOG… --into TRACE'),
        (5, 'I/O', 'single reads and writes, by Darshan''s DXT', 'io segments', 'io_segments', 'roast-analyze import darshan LOG… --into TRACE, of a log with DXT: DXT_ENABLE_IO_TRACE=1'),
        (2, 'client', 'graphs that clients other than the recording one make, by layer', NULL, NULL, 'Cannot be had. The scheduler gets a graph and makes tasks of it; its layers are known to who sends it alone.'),
        (2, 'graph', 'steps of an expression before its own optimisation', NULL, NULL, 'Cannot be had. It is optimised before the client has it; what was fused is named in graph_layers.'),
        (3, 'graph', 'restrictions that Dask sets itself, as for P2P shuffles', NULL, NULL, 'Cannot be had. It keeps them on tasks, later and without notice.'),
        (4, 'worker', 'shards of P2P shuffles, one by one', NULL, NULL, 'Cannot be had. They are no results, and in no log of Dask''s; how much was moved is in fine_metrics, context p2p.'),
        (4, 'coroutine', 'coroutines of a worker''s event loop, over time', NULL, NULL, 'Cannot be had. Neither Dask nor Yappi notes when a coroutine ran; Yappi has their sums.')
),
steps(step, step_name) AS (
    VALUES
        (1, 'configure and launch'),
        (2, 'create and submit'),
        (3, 'populate the scheduler'),
        (4, 'receive on the worker'),
        (5, 'execute and profile')
),
-- Of what there is much, records are counted, not rows of views that work something out.
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
    SELECT trace_id, 'yappi', count(*) FROM raw."function" GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'darshan', count(*) FROM io_jobs GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'io files', count(*) FROM raw.io_file GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'io segments', count(*) FROM raw.io_segment GROUP BY trace_id
)
SELECT
    cells.step,
    step_name,
    level,
    metadata,
    coalesce(records, 0) > 0 AS is_recorded,
    CASE WHEN cells.cell IS NOT NULL THEN coalesce(records, 0) END AS records,
    "view",
    CASE WHEN coalesce(records, 0) = 0 THEN hint END AS hint,
    traces.trace_id
FROM (SELECT DISTINCT trace_id FROM trace_info) AS traces
CROSS JOIN cells
INNER JOIN steps ON cells.step = steps.step
LEFT JOIN counts ON counts.trace_id = traces.trace_id AND counts.cell = cells.cell
ORDER BY traces.trace_id, cells.step, cells.cell IS NULL, level, metadata;

COMMENT ON VIEW metadata_map IS 'What a trace knows of a run, cell by cell: five steps in time, from launching a cluster to profiling its tasks, by levels from the job to the coroutine. A cell without records says how to get them, or why nobody can.';
COMMENT ON COLUMN metadata_map.step IS 'Step in time, from 1 to 5.';
COMMENT ON COLUMN metadata_map.step_name IS 'What happens then.';
COMMENT ON COLUMN metadata_map.level IS 'Whose metadata it is: job, configuration, client, graph, scheduler, worker, process, thread, coroutine or I/O.';
COMMENT ON COLUMN metadata_map.metadata IS 'What the cell is about.';
COMMENT ON COLUMN metadata_map.is_recorded IS 'Whether this trace has it.';
COMMENT ON COLUMN metadata_map.records IS 'How many records, or rows of the view, tell of it; null of what cannot be had.';
COMMENT ON COLUMN metadata_map."view" IS 'View that shows it; null of what cannot be had.';
COMMENT ON COLUMN metadata_map.hint IS 'Where it is not there: how to get it, or why it cannot be had.';
COMMENT ON COLUMN metadata_map.trace_id IS 'Identity of the recording.';
