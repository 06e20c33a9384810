-- Needs: _coffea_roles, _tasks
CREATE VIEW tasks AS
SELECT
    key,
    prefix,
    "group" AS task_group,
    span_id,
    dependencies,
    len(dependencies) AS n_dependencies,
    priority,
    annotations,
    t AS submitted_t,
    client,
    submissions,
    roles.role,
    trace_id
FROM _tasks
LEFT JOIN _coffea_roles AS roles USING (trace_id, key)
ORDER BY trace_id, seq;

COMMENT ON VIEW tasks IS 'The tasks of the graphs: one row per key, as it was when it first entered one.';
COMMENT ON COLUMN tasks.key IS 'Key of the task.';
COMMENT ON COLUMN tasks.prefix IS 'Key prefix: what kind of task it is.';
COMMENT ON COLUMN tasks.task_group IS 'Task group: the tasks of one layer of a graph.';
COMMENT ON COLUMN tasks.span_id IS 'Span that it belongs to.';
COMMENT ON COLUMN tasks.dependencies IS 'Keys of the tasks whose results it takes.';
COMMENT ON COLUMN tasks.n_dependencies IS 'Number of these.';
COMMENT ON COLUMN tasks.priority IS 'Priority; the smaller goes first.';
COMMENT ON COLUMN tasks.annotations IS 'Dask annotations, as JSON.';
COMMENT ON COLUMN tasks.submitted_t IS 'When it first entered the graph, in seconds since the epoch.';
COMMENT ON COLUMN tasks.client IS 'Client that submitted it.';
COMMENT ON COLUMN tasks.submissions IS 'How many times the key entered the graph.';
COMMENT ON COLUMN tasks.role IS 'Chunk, merge, file metadata or processor broadcast: what it does for coffea, as in task_roles; null for all others.';
COMMENT ON COLUMN tasks.trace_id IS 'Identity of the recording.';
