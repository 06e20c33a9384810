-- Needs: _not_negative, _task_runs
CREATE VIEW task_phases AS
WITH parts AS (
    SELECT
        run.key,
        run.prefix,
        run.attempt,
        run.worker,
        run.thread,
        run.outcome,
        run.seq,
        unnest(ending.startstops) AS part,
        run.trace_id
    FROM _task_runs AS run
    INNER JOIN raw.transition AS ending ON run.end_seq = ending.rowid
)
SELECT
    key,
    prefix,
    attempt,
    worker,
    thread,
    outcome,
    part.action AS action,
    part.start AS start_t,
    part.stop AS stop_t,
    _not_negative(part.stop - part.start) AS seconds,
    trace_id
FROM parts
ORDER BY trace_id, seq, start_t;

COMMENT ON VIEW task_phases IS 'What attempts at tasks did from when to when, as their workers timed it: one row per attempt and part. Parts of attempts whose worker was lost are not known.';
COMMENT ON COLUMN task_phases.key IS 'Key of the task.';
COMMENT ON COLUMN task_phases.prefix IS 'Key prefix; null if the task was not recorded.';
COMMENT ON COLUMN task_phases.attempt IS 'Number of the attempt within its key, from 1.';
COMMENT ON COLUMN task_phases.worker IS 'Address of the worker.';
COMMENT ON COLUMN task_phases.thread IS 'Thread that computed, within its worker.';
COMMENT ON COLUMN task_phases.outcome IS 'How the attempt ended, as in task_runs.';
COMMENT ON COLUMN task_phases.action IS 'What was done: compute, transfer (fetching a dependency from another worker), deserialize, disk-read, disk-write.';
COMMENT ON COLUMN task_phases.start_t IS 'When it began, in seconds since the epoch.';
COMMENT ON COLUMN task_phases.stop_t IS 'When it ended, in seconds since the epoch.';
COMMENT ON COLUMN task_phases.seconds IS 'How long it took. Transfers overlap each other.';
COMMENT ON COLUMN task_phases.trace_id IS 'Identity of the recording.';
