-- Needs: nothing
-- Filled by computed/slow_workers.py.
-- Worker processes that are slower than others at the same work. A host is slow if it has
-- several processes that computed, nearly all of them are slow, and on other hosts few are.
CREATE TABLE _slow_workers (
    trace_id VARCHAR,
    process BIGINT,
    tasks BIGINT,
    prefix VARCHAR,
    seconds DOUBLE,
    relative_duration DOUBLE,
    name VARCHAR,
    worker VARCHAR,
    host VARCHAR,
    nthreads BIGINT,
    is_of_slow_host BOOLEAN
);
