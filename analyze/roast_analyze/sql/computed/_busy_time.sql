-- Needs: nothing
-- Filled by computed/busy_time.py.
CREATE TABLE _busy_time (
    process BIGINT,
    t DOUBLE,
    prefix VARCHAR,
    dataset VARCHAR,
    span_id VARCHAR,
    category VARCHAR,
    kind VARCHAR,
    detail VARCHAR,
    seconds DOUBLE,
    samples DOUBLE,
    trace_id VARCHAR
);
