-- Needs: _tasks
CREATE VIEW graph_edges AS
SELECT
    edge.key,
    edge.dependency,
    edge.prefix,
    there.prefix AS dependency_prefix,
    edge."group" AS task_group,
    there."group" AS dependency_group,
    edge.stimulus_id,
    edge.trace_id
FROM (
    SELECT seq, trace_id, key, prefix, "group", stimulus_id, unnest(dependencies) AS dependency
    FROM _tasks
) AS edge
LEFT JOIN _tasks AS there
    ON edge.trace_id = there.trace_id AND edge.dependency = there.key
ORDER BY edge.trace_id, edge.seq, edge.dependency;

COMMENT ON VIEW graph_edges IS 'Edges of the graph as it was submitted: one row per task and dependency. Where the two ran and what was moved is in dependencies.';
COMMENT ON COLUMN graph_edges.key IS 'Key of the task that takes the result.';
COMMENT ON COLUMN graph_edges.dependency IS 'Key of the task whose result it takes.';
COMMENT ON COLUMN graph_edges.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN graph_edges.dependency_prefix IS 'Key prefix of the dependency; null if it was not recorded as a task.';
COMMENT ON COLUMN graph_edges.task_group IS 'Task group of the task.';
COMMENT ON COLUMN graph_edges.dependency_group IS 'Task group of the dependency; null if it was not recorded as a task.';
COMMENT ON COLUMN graph_edges.stimulus_id IS 'Graph that the task came with, as in graph_updates.';
COMMENT ON COLUMN graph_edges.trace_id IS 'Identity of the recording.';
