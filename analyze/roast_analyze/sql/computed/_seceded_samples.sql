-- Needs: nothing
-- Filled by computed/seceded_samples.py.
CREATE TABLE _seceded_samples (
    process BIGINT,
    prefix VARCHAR,
    start_t DOUBLE,
    stop_t DOUBLE,
    working_samples DOUBLE,
    samples DOUBLE,
    trace_id VARCHAR
);
