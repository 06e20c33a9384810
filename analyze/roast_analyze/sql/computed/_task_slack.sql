-- Needs: nothing
-- Filled by computed/task_slack.py: seq is that of _task_runs.
CREATE TABLE _task_slack (seq BIGINT, slack_seconds DOUBLE);
