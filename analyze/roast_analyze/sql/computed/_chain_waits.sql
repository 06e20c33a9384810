-- Needs: nothing
-- Filled by computed/chain_waits.py: the time that the tasks before an attempt waited, each of
-- which was the only dependency of the next one. seq is that of _task_runs.
CREATE TABLE _chain_waits (seq BIGINT, before_seconds DOUBLE);
