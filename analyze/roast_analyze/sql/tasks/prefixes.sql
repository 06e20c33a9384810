-- Needs: _coffea_roles, _task_runs, _tasks
CREATE VIEW prefixes AS
WITH submitted AS (
    SELECT
        trace_id,
        prefix,
        count(*) AS tasks,
        string_agg(DISTINCT roles.role, ', ' ORDER BY roles.role) AS roles
    FROM _tasks
    LEFT JOIN _coffea_roles AS roles USING (trace_id, key)
    GROUP BY trace_id, prefix
),
done AS (
    SELECT
        trace_id,
        prefix,
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
        try_cast(sum(nbytes) AS BIGINT) AS output_bytes
    FROM _task_runs
    GROUP BY trace_id, prefix
)
SELECT
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
    roles,
    coalesce(submitted.trace_id, done.trace_id) AS trace_id
FROM submitted
FULL JOIN done
    ON submitted.trace_id = done.trace_id AND submitted.prefix IS NOT DISTINCT FROM done.prefix
ORDER BY trace_id, compute_seconds DESC NULLS LAST, prefix;

COMMENT ON VIEW prefixes IS 'Totals by key prefix. One row per prefix, highest compute time first.';
COMMENT ON COLUMN prefixes.prefix IS 'Key prefix. Null for attempts whose task was not recorded.';
COMMENT ON COLUMN prefixes.tasks IS 'Keys submitted.';
COMMENT ON COLUMN prefixes.task_runs IS 'Task attempts.';
COMMENT ON COLUMN prefixes.memory IS 'Attempts that succeeded.';
COMMENT ON COLUMN prefixes.erred IS 'Attempts that failed for good.';
COMMENT ON COLUMN prefixes.retried IS 'Attempts that failed and were retried.';
COMMENT ON COLUMN prefixes.lost IS 'Attempts lost with their worker.';
COMMENT ON COLUMN prefixes.rescheduled IS 'Attempts that raised Reschedule.';
COMMENT ON COLUMN prefixes.cancelled IS 'Attempts cancelled because the result was no longer needed.';
COMMENT ON COLUMN prefixes.unfinished IS 'Attempts without an end in the trace.';
COMMENT ON COLUMN prefixes.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN prefixes.mean_compute_seconds IS 'Mean compute time of an attempt.';
COMMENT ON COLUMN prefixes.median_compute_seconds IS 'Median compute time of an attempt.';
COMMENT ON COLUMN prefixes.max_compute_seconds IS 'Maximum compute time of an attempt.';
COMMENT ON COLUMN prefixes.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN prefixes.deserialize_seconds IS 'Time to deserialize the tasks.';
COMMENT ON COLUMN prefixes.disk_seconds IS 'Time to spill to disk and read back.';
COMMENT ON COLUMN prefixes.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN prefixes.roles IS 'Roles of these tasks in a coffea run, as in task_roles. Null if there are none.';
COMMENT ON COLUMN prefixes.trace_id IS 'ID of the trace.';
