-- Needs: _task_group_medians, _task_group_workers, _task_runs, _tasks
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
        -- Group of the submission that the attempt belongs to.
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
        max(whole_seconds) AS max_compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(deserialize_seconds) AS deserialize_seconds,
        sum(disk_seconds) AS disk_seconds,
        try_cast(sum(nbytes) AS BIGINT) AS output_bytes,
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
LEFT JOIN _task_group_medians AS middle
    ON done.trace_id = middle.trace_id AND done.task_group IS NOT DISTINCT FROM middle.task_group
LEFT JOIN _task_group_workers AS used
    ON done.trace_id = used.trace_id AND done.task_group IS NOT DISTINCT FROM used.task_group
ORDER BY trace_id, compute_seconds DESC NULLS LAST, task_group;

COMMENT ON VIEW task_groups IS 'Totals by task group (graph layer). One row per group, highest compute time first.';
COMMENT ON COLUMN task_groups.task_group IS 'Task group, as Dask names it. Null for tasks without a group and attempts whose task was not recorded. A key submitted in several groups counts as a task of the first one; its attempts count in the group at that time.';
COMMENT ON COLUMN task_groups.prefix IS 'Key prefix of the tasks.';
COMMENT ON COLUMN task_groups.tasks IS 'Keys submitted.';
COMMENT ON COLUMN task_groups.task_runs IS 'Task attempts.';
COMMENT ON COLUMN task_groups.memory IS 'Attempts that succeeded.';
COMMENT ON COLUMN task_groups.erred IS 'Attempts that failed for good.';
COMMENT ON COLUMN task_groups.retried IS 'Attempts that failed and were retried.';
COMMENT ON COLUMN task_groups.lost IS 'Attempts lost with their worker.';
COMMENT ON COLUMN task_groups.rescheduled IS 'Attempts that raised Reschedule.';
COMMENT ON COLUMN task_groups.cancelled IS 'Attempts cancelled because the result was no longer needed.';
COMMENT ON COLUMN task_groups.unfinished IS 'Attempts without an end in the trace.';
COMMENT ON COLUMN task_groups.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN task_groups.mean_compute_seconds IS 'Mean compute time of an attempt.';
COMMENT ON COLUMN task_groups.median_compute_seconds IS 'Median compute time of an attempt.';
COMMENT ON COLUMN task_groups.max_compute_seconds IS 'Maximum compute time of an attempt.';
COMMENT ON COLUMN task_groups.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN task_groups.deserialize_seconds IS 'Time to deserialize the tasks.';
COMMENT ON COLUMN task_groups.disk_seconds IS 'Time to spill to disk and read back.';
COMMENT ON COLUMN task_groups.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN task_groups.workers IS 'Number of workers that ran attempts or were assigned them.';
COMMENT ON COLUMN task_groups.submitted_t IS 'First submission of a task, in seconds since the epoch.';
COMMENT ON COLUMN task_groups.first_t IS 'First dispatch of an attempt to a worker, in seconds since the epoch.';
COMMENT ON COLUMN task_groups.last_t IS 'Last end of an attempt as recorded by the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN task_groups.wall_seconds IS 'last_t - first_t. Groups run concurrently, so this does not add up.';
COMMENT ON COLUMN task_groups.trace_id IS 'ID of the trace.';
