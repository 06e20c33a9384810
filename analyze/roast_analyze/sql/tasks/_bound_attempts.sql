-- Needs: _chained_attempts, _task_runs, _unexplained_attempts
-- Attempts of _unexplained_attempts that could not have started earlier, whatever the order of tasks:
-- they have no dependency, several ones, or a single one that has several, or they are a part of a
-- chain. Chunks are left out: their number follows from their size. A single one has no dependency, and no other task
-- needs it.
CREATE VIEW _bound_attempts AS
WITH attempts AS (
    SELECT *
    FROM _unexplained_attempts AS attempt
    WHERE ready_seconds < greatest(0.25 * seconds, 0.02)
        AND (role IS NULL OR role = 'merge')
        AND (
            dependencies <> 1
            OR seq IN (SELECT seq FROM _chained_attempts)
            OR seq IN (
                SELECT run.seq
                FROM _unexplained_attempts AS single
                INNER JOIN _task_runs AS run USING (seq)
                INNER JOIN raw.task AS task ON run.submission = task.rowid
                INNER JOIN raw.task AS merged
                    ON task.trace_id = merged.trace_id AND task.dependencies[1] = merged.key
                WHERE single.dependencies = 1 AND len(merged.dependencies) > 1
            )
        )
),
-- Few of the keys are compared with the dependencies of all tasks.
needed AS (
    SELECT DISTINCT trace_id, key
    FROM (SELECT trace_id, unnest(dependencies) AS key FROM raw.task)
    SEMI JOIN (FROM attempts WHERE dependencies = 0) USING (trace_id, key)
)
SELECT attempts.*, dependencies = 0 AND needed.key IS NULL AS is_single
FROM attempts
LEFT JOIN needed USING (trace_id, key);
