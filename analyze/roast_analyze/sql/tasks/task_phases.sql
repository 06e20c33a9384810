-- Needs: _clip_negative, _task_phases, _task_runs
CREATE VIEW task_phases AS
SELECT
    run.key,
    run.prefix,
    run.attempt,
    run.worker,
    run.thread,
    run.outcome,
    phase.action,
    phase.start_t,
    phase.stop_t,
    _clip_negative(phase.stop_t - phase.start_t) AS seconds,
    phase.source,
    run.trace_id
FROM _task_runs AS run
INNER JOIN _task_phases AS phase USING (end_seq)
ORDER BY run.trace_id, run.seq, phase.start_t;

COMMENT ON VIEW task_phases IS 'Phases of task attempts, such as transfer and compute. One row per attempt and phase, as timed by the worker. Phases of attempts whose worker was lost are not recorded.';
COMMENT ON COLUMN task_phases.key IS 'Task key.';
COMMENT ON COLUMN task_phases.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN task_phases.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN task_phases.worker IS 'Worker address.';
COMMENT ON COLUMN task_phases.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN task_phases.outcome IS 'Outcome of the attempt, as in task_runs.';
COMMENT ON COLUMN task_phases.action IS 'compute, transfer (fetching a dependency from another worker), deserialize, disk-read or disk-write.';
COMMENT ON COLUMN task_phases.start_t IS 'Start, in seconds since the epoch.';
COMMENT ON COLUMN task_phases.stop_t IS 'End, in seconds since the epoch.';
COMMENT ON COLUMN task_phases.seconds IS 'Duration. Transfers can overlap each other.';
COMMENT ON COLUMN task_phases.source IS 'Address of the worker that a transfer fetched from. Null for other phases.';
COMMENT ON COLUMN task_phases.trace_id IS 'ID of the trace.';
