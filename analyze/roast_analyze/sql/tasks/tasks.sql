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

COMMENT ON VIEW tasks IS 'Tasks of all submitted graphs. One row per key, as first submitted.';
COMMENT ON COLUMN tasks.key IS 'Task key.';
COMMENT ON COLUMN tasks.prefix IS 'Key prefix.';
COMMENT ON COLUMN tasks.task_group IS 'Task group: the tasks of one graph layer.';
COMMENT ON COLUMN tasks.span_id IS 'Span of the task.';
COMMENT ON COLUMN tasks.dependencies IS 'Keys of the tasks whose results it needs.';
COMMENT ON COLUMN tasks.n_dependencies IS 'Number of dependencies.';
COMMENT ON COLUMN tasks.priority IS 'Dask priority. Lower values run first.';
COMMENT ON COLUMN tasks.annotations IS 'Dask annotations, as JSON.';
COMMENT ON COLUMN tasks.submitted_t IS 'First submission, in seconds since the epoch.';
COMMENT ON COLUMN tasks.client IS 'Client that submitted it.';
COMMENT ON COLUMN tasks.submissions IS 'Number of times the key was submitted.';
COMMENT ON COLUMN tasks.role IS 'Role in a coffea run, as in task_roles: chunk, merge, file metadata or processor broadcast. Null for all other tasks.';
COMMENT ON COLUMN tasks.trace_id IS 'Trace identity.';
