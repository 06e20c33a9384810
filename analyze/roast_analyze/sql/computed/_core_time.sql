-- Needs: nothing
-- Filled by computed/core_time.py.
CREATE TABLE _core_time (
    process BIGINT,
    t DOUBLE,
    use VARCHAR,
    prefix VARCHAR,
    dataset VARCHAR,
    span_id VARCHAR,
    seconds DOUBLE,
    trace_id VARCHAR
);
