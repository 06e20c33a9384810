-- Needs: _coffea_roles, _tasks
CREATE VIEW tasks AS
SELECT
    key,
    prefix,
    "group" AS task_group,
    span_id,
    submitted_span IS NOT NULL AS is_other_span,
    json_transform(submitted_span -> '$.name', '["VARCHAR"]') AS submitted_span_path,
    submitted_span ->> '$.ids[#-1]' AS submitted_span_id,
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
COMMENT ON COLUMN tasks.span_id IS 'Span of the task: that of its group, which Dask files under the span of its first task.';
COMMENT ON COLUMN tasks.is_other_span IS 'Whether the task was submitted in a span other than span_id, which is that of an earlier task of its group. Known for tasks that were submitted during the recording, from trace format 2.3 on.';
COMMENT ON COLUMN tasks.submitted_span_path IS 'Names of the span in which it was submitted, from the outermost one; default outside of spans. Null unless is_other_span.';
COMMENT ON COLUMN tasks.submitted_span_id IS 'ID of that span. Null outside of spans and unless is_other_span.';
COMMENT ON COLUMN tasks.dependencies IS 'Keys of the tasks whose results it needs.';
COMMENT ON COLUMN tasks.n_dependencies IS 'Number of dependencies.';
COMMENT ON COLUMN tasks.priority IS 'Dask priority. Lower values run first.';
COMMENT ON COLUMN tasks.annotations IS 'Dask annotations, as JSON.';
COMMENT ON COLUMN tasks.submitted_t IS 'First submission, in seconds since the epoch.';
COMMENT ON COLUMN tasks.client IS 'Client that submitted it.';
COMMENT ON COLUMN tasks.submissions IS 'Number of times the key was submitted.';
COMMENT ON COLUMN tasks.role IS 'Role in a coffea run, as in task_roles: chunk, merge, file metadata or processor broadcast. Null for all other tasks.';
COMMENT ON COLUMN tasks.trace_id IS 'ID of the trace.';
