-- Needs: nothing
-- Filled by computed/scarce_attempts.py.
-- Attempts that computed while threads lacked tasks: `idle_seconds` is their part of the thread
-- time that was idle, as `tail` or `dependencies`, in these time buckets. `ready_seconds` is the
-- time by which an attempt could have started earlier.
CREATE TABLE _scarce_attempts (
    trace_id VARCHAR,
    seq BIGINT,
    key VARCHAR,
    prefix VARCHAR,
    role VARCHAR,
    attempt BIGINT,
    worker VARCHAR,
    seconds DOUBLE,
    ready_seconds DOUBLE,
    dependencies BIGINT,
    compute_start_t DOUBLE,
    compute_stop_t DOUBLE,
    idle_seconds DOUBLE
);
