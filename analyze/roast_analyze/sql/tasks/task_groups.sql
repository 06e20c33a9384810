-- Needs: _task_runs, _tasks
CREATE VIEW task_groups AS
WITH submitted AS (
    SELECT
        trace_id,
        "group" AS task_group,
        any_value(prefix) AS prefix,
        count(*) AS tasks,
        min(t) AS submitted_t
    FROM _tasks
    GROUP BY trace_id, task_group
),
done AS (
    SELECT
        run.trace_id,
        -- That of the submission which the attempt belongs to.
        task."group" AS task_group,
        any_value(run.prefix) AS prefix,
        count(*) AS task_runs,
        count(*) FILTER (outcome = 'memory') AS memory,
        count(*) FILTER (outcome = 'erred') AS erred,
        count(*) FILTER (outcome = 'retried') AS retried,
        count(*) FILTER (outcome = 'lost') AS lost,
        count(*) FILTER (outcome = 'rescheduled') AS rescheduled,
        count(*) FILTER (outcome = 'cancelled') AS cancelled,
        count(*) FILTER (outcome = 'unfinished') AS unfinished,
        sum(compute_seconds) AS compute_seconds,
        avg(whole_seconds) AS mean_compute_seconds,
        median(whole_seconds) AS median_compute_seconds,
        max(whole_seconds) AS max_compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(deserialize_seconds) AS deserialize_seconds,
        sum(disk_seconds) AS disk_seconds,
        sum(nbytes)::BIGINT AS output_bytes,
        count(DISTINCT run.worker) AS workers,
        min(processing_t) AS first_t,
        max(end_t) AS last_t
    FROM _task_runs AS run
    LEFT JOIN raw.task AS task ON run.submission = task.rowid
    GROUP BY run.trace_id, task."group"
)
SELECT
    coalesce(submitted.task_group, done.task_group) AS task_group,
    coalesce(submitted.prefix, done.prefix) AS prefix,
    coalesce(tasks, 0) AS tasks,
    coalesce(task_runs, 0) AS task_runs,
    coalesce(memory, 0) AS memory,
    coalesce(erred, 0) AS erred,
    coalesce(retried, 0) AS retried,
    coalesce(lost, 0) AS lost,
    coalesce(rescheduled, 0) AS rescheduled,
    coalesce(cancelled, 0) AS cancelled,
    coalesce(unfinished, 0) AS unfinished,
    compute_seconds,
    mean_compute_seconds,
    median_compute_seconds,
    max_compute_seconds,
    transfer_seconds,
    deserialize_seconds,
    disk_seconds,
    output_bytes,
    coalesce(workers, 0) AS workers,
    submitted_t,
    first_t,
    last_t,
    last_t - first_t AS wall_seconds,
    coalesce(submitted.trace_id, done.trace_id) AS trace_id
FROM submitted
FULL JOIN done
    ON submitted.trace_id = done.trace_id
    AND submitted.task_group IS NOT DISTINCT FROM done.task_group
ORDER BY trace_id, compute_seconds DESC NULLS LAST, task_group;

COMMENT ON VIEW task_groups IS 'Totals by task group, the layers of the graphs: one row per group, the costliest first.';
COMMENT ON COLUMN task_groups.task_group IS 'Task group, as Dask names it; null for tasks of no group and attempts whose task was not recorded. A key that entered the graph in several groups is a task of the first; its attempts are of the one that it had then.';
COMMENT ON COLUMN task_groups.prefix IS 'Key prefix of its tasks.';
COMMENT ON COLUMN task_groups.tasks IS 'Keys that entered the graph.';
COMMENT ON COLUMN task_groups.task_runs IS 'Attempts at them.';
COMMENT ON COLUMN task_groups.memory IS 'Attempts that ended well.';
COMMENT ON COLUMN task_groups.erred IS 'Attempts that failed for good.';
COMMENT ON COLUMN task_groups.retried IS 'Attempts that failed and were tried again.';
COMMENT ON COLUMN task_groups.lost IS 'Attempts whose worker went away.';
COMMENT ON COLUMN task_groups.rescheduled IS 'Attempts that asked for another worker.';
COMMENT ON COLUMN task_groups.cancelled IS 'Attempts that nobody wanted any more.';
COMMENT ON COLUMN task_groups.unfinished IS 'Attempts that outlast the trace.';
COMMENT ON COLUMN task_groups.compute_seconds IS 'Computing time of all attempts.';
COMMENT ON COLUMN task_groups.mean_compute_seconds IS 'Mean computing time of an attempt.';
COMMENT ON COLUMN task_groups.median_compute_seconds IS 'Median computing time of an attempt.';
COMMENT ON COLUMN task_groups.max_compute_seconds IS 'Longest computing time of an attempt.';
COMMENT ON COLUMN task_groups.transfer_seconds IS 'Time of fetching dependencies from other workers.';
COMMENT ON COLUMN task_groups.deserialize_seconds IS 'Time of deserializing the tasks.';
COMMENT ON COLUMN task_groups.disk_seconds IS 'Time of spilling and reading back.';
COMMENT ON COLUMN task_groups.output_bytes IS 'Size of all results.';
COMMENT ON COLUMN task_groups.workers IS 'Addresses of workers that its attempts were sent to or ran on.';
COMMENT ON COLUMN task_groups.submitted_t IS 'When its first task entered the graph, in seconds since the epoch.';
COMMENT ON COLUMN task_groups.first_t IS 'When its first attempt was sent to a worker, in seconds since the epoch.';
COMMENT ON COLUMN task_groups.last_t IS 'When the scheduler heard of the end of its last attempt, in seconds since the epoch.';
COMMENT ON COLUMN task_groups.wall_seconds IS 'Time from first_t to last_t; groups run side by side, so these do not add up.';
COMMENT ON COLUMN task_groups.trace_id IS 'Identity of the recording.';
