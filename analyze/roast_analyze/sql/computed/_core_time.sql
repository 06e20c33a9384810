-- Needs: nothing
-- Filled by computed/core_time.py, in the order of the view: sorting takes longer than summing.
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
