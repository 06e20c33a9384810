-- Needs: nothing
-- Filled by computed/chain_waits.py: total waiting time of the tasks before an attempt, each of
-- which is the only dependency of the next one. seq is that of _task_runs.
CREATE TABLE _chain_waits (seq BIGINT, before_seconds DOUBLE);
