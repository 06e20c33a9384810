-- Needs: _scarce_attempts, _task_runs
-- Attempts of _scarce_attempts that follow each other: the only dependency of one is the other.
-- Attempts that were ready for a quarter of their duration are left out.
CREATE VIEW _chained_attempts AS
WITH bound AS (
    SELECT trace_id, seq, key, dependencies
    FROM _scarce_attempts
    WHERE ready_seconds < greatest(0.25 * seconds, 0.02)
),
links AS (
    SELECT attempt.seq, before.seq AS before_seq
    FROM bound AS attempt
    INNER JOIN _task_runs AS run USING (seq)
    INNER JOIN raw.task AS task ON run.submission = task.rowid
    INNER JOIN bound AS before
        ON attempt.trace_id = before.trace_id AND task.dependencies[1] = before.key
    WHERE attempt.dependencies = 1
)
SELECT seq FROM links
UNION
SELECT before_seq FROM links;
