-- Needs: nothing
-- Filled by computed/critical_path.py.
CREATE TABLE _critical_path (
    step BIGINT,
    start_t DOUBLE,
    stop_t DOUBLE,
    seconds DOUBLE,
    share DOUBLE,
    cause VARCHAR,
    key VARCHAR,
    prefix VARCHAR,
    attempt BIGINT,
    worker VARCHAR,
    name VARCHAR,
    dataset VARCHAR,
    detail VARCHAR,
    trace_id VARCHAR
);
