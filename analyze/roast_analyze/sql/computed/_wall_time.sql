-- Needs: nothing
-- Filled by computed/wall_time.py.
CREATE TABLE _wall_time (
    start_t DOUBLE,
    stop_t DOUBLE,
    seconds DOUBLE,
    state VARCHAR,
    trace_id VARCHAR
);
