-- Needs: _task_runs, _task_slack
CREATE VIEW task_slack AS
SELECT
    run.key,
    run.attempt,
    run.worker,
    run.prefix,
    run.end_t,
    slack.slack_seconds,
    run.trace_id
FROM _task_runs AS run
INNER JOIN _task_slack AS slack USING (seq)
ORDER BY run.trace_id, run.seq;

COMMENT ON VIEW task_slack IS 'How much later attempts could have ended without moving the end of the run. One row per attempt, as in task_runs. Held fixed are dependencies, the order of attempts on each thread, their durations, and the delays between what an attempt waited for last and its start (dispatch, transfer, client). The client is assumed to wait, before it submits a graph, for all results that it wanted and that ended before.';
COMMENT ON COLUMN task_slack.key IS 'Task key.';
COMMENT ON COLUMN task_slack.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN task_slack.worker IS 'Address of the worker that ran the attempt, or was assigned it if it never ended.';
COMMENT ON COLUMN task_slack.prefix IS 'Key prefix.';
COMMENT ON COLUMN task_slack.end_t IS 'End recorded by the scheduler, in seconds since the epoch. Null if unfinished.';
COMMENT ON COLUMN task_slack.slack_seconds IS 'Slack: 0 for the attempts of critical_path. Null if the end was not recorded.';
COMMENT ON COLUMN task_slack.trace_id IS 'ID of the trace.';
