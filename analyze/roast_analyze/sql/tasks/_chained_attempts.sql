-- Needs: _scarce_attempts, _task_runs
-- Attempts of _scarce_attempts that follow each other: the only dependency of one is the other.
-- Attempts that were ready for a quarter of their duration are left out, and so are those that take
-- more than ten times as long as the one or two before and after them: their own duration is the
-- cause, not the chain.
CREATE VIEW _chained_attempts AS
WITH bound AS (
    SELECT trace_id, seq, key, dependencies, seconds
    FROM _scarce_attempts
    WHERE ready_seconds < greatest(0.25 * seconds, 0.02)
),
links AS (
    SELECT
        attempt.seq,
        attempt.seconds,
        before.seq AS before_seq,
        before.seconds AS before_seconds
    FROM bound AS attempt
    INNER JOIN _task_runs AS run USING (seq)
    INNER JOIN raw.task AS task ON run.submission = task.rowid
    INNER JOIN bound AS before
        ON attempt.trace_id = before.trace_id AND task.dependencies[1] = before.key
    WHERE attempt.dependencies = 1
),
pairs AS (
    FROM links
    UNION ALL
    SELECT
        after.seq,
        after.seconds,
        before.before_seq,
        before.before_seconds
    FROM links AS after
    INNER JOIN links AS before ON after.before_seq = before.seq
)
SELECT seq FROM pairs WHERE before_seconds >= 0.1 * seconds
UNION
SELECT before_seq FROM pairs WHERE seconds >= 0.1 * before_seconds;
