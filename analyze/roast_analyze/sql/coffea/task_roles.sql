-- Needs: _coffea_roles, _is_failed, _task_runs, _tasks
CREATE VIEW task_roles AS
WITH submitted AS (
    SELECT
        trace_id,
        roles.role,
        string_agg(DISTINCT task.prefix, ', ' ORDER BY task.prefix)
            FILTER (roles.role IS NOT NULL) AS prefixes,
        count(*) AS tasks
    FROM _tasks AS task
    LEFT JOIN _coffea_roles AS roles USING (trace_id, key)
    GROUP BY trace_id, roles.role
),
done AS (
    SELECT
        trace_id,
        role,
        count(*) AS task_runs,
        count(*) FILTER (_is_failed(outcome)) AS failed_attempts,
        sum(compute_seconds) AS compute_seconds,
        avg(whole_seconds) AS mean_compute_seconds,
        max(whole_seconds) AS max_compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(deserialize_seconds) AS deserialize_seconds,
        sum(disk_seconds) AS disk_seconds,
        try_cast(sum(nbytes) AS BIGINT) AS output_bytes,
        min(processing_t) AS first_t,
        max(end_t) AS last_t
    FROM _task_runs
    GROUP BY trace_id, role
)
SELECT
    coalesce(submitted.role, done.role) AS role,
    submitted.prefixes,
    coalesce(submitted.tasks, 0) AS tasks,
    coalesce(done.task_runs, 0) AS task_runs,
    coalesce(done.failed_attempts, 0) AS failed_attempts,
    done.compute_seconds,
    done.compute_seconds / nullif(
        sum(done.compute_seconds) OVER (PARTITION BY coalesce(submitted.trace_id, done.trace_id)),
        0
    ) AS compute_share,
    done.mean_compute_seconds,
    done.max_compute_seconds,
    done.transfer_seconds,
    done.deserialize_seconds,
    done.disk_seconds,
    done.output_bytes,
    done.first_t,
    done.last_t,
    coalesce(submitted.trace_id, done.trace_id) AS trace_id
FROM submitted
FULL JOIN done
    ON submitted.trace_id = done.trace_id AND submitted.role IS NOT DISTINCT FROM done.role
ORDER BY trace_id, compute_seconds DESC NULLS LAST, role;

COMMENT ON VIEW task_roles IS 'Totals by role in a coffea run, such as chunk or merge. One row per role, highest compute time first.';
COMMENT ON COLUMN task_roles.role IS 'chunk, merge (of chunk results), file metadata (reading the number of entries of files, and merging the answers) or processor broadcast. Null for all other tasks. Derived from the graph: tasks of coffea''s prefix reduce that depend on chunks or files merge them.';
COMMENT ON COLUMN task_roles.prefixes IS 'Key prefixes of these tasks. Null for other tasks.';
COMMENT ON COLUMN task_roles.tasks IS 'Keys submitted.';
COMMENT ON COLUMN task_roles.task_runs IS 'Task attempts.';
COMMENT ON COLUMN task_roles.failed_attempts IS 'Attempts that erred, were retried, or were lost with their worker.';
COMMENT ON COLUMN task_roles.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN task_roles.compute_share IS 'Share of the compute time of all task attempts.';
COMMENT ON COLUMN task_roles.mean_compute_seconds IS 'Mean compute time of an attempt.';
COMMENT ON COLUMN task_roles.max_compute_seconds IS 'Maximum compute time of an attempt.';
COMMENT ON COLUMN task_roles.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN task_roles.deserialize_seconds IS 'Time to deserialize the tasks.';
COMMENT ON COLUMN task_roles.disk_seconds IS 'Time to spill to disk and read back.';
COMMENT ON COLUMN task_roles.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN task_roles.first_t IS 'First dispatch to a worker, in seconds since the epoch.';
COMMENT ON COLUMN task_roles.last_t IS 'Last end of an attempt, in seconds since the epoch.';
COMMENT ON COLUMN task_roles.trace_id IS 'ID of the trace.';
