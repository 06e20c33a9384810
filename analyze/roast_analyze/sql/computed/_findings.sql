-- Needs: nothing
-- Filled by computed/findings.py.
CREATE TABLE _findings (
    rank BIGINT,
    id VARCHAR,
    title VARCHAR,
    severity VARCHAR,
    confidence VARCHAR,
    entity VARCHAR,
    sentence VARCHAR,
    core_seconds DOUBLE,
    core_share DOUBLE,
    wall_seconds_min DOUBLE,
    wall_seconds_max DOUBLE,
    wall_share DOUBLE,
    change VARCHAR,
    evidence VARCHAR,
    documentation VARCHAR,
    trace_id VARCHAR
);
