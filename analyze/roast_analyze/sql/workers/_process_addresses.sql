-- Needs: _workers
-- Times in which the records of an address belong to a process. A join with them is faster than
-- an ASOF join of many attempts.
CREATE VIEW _process_addresses AS
SELECT
    trace_id,
    worker,
    process,
    from_t,
    -- coalesce instead of the default of lead(), which is lost in a database written by
    -- DuckDB 1.5.
    coalesce(lead(from_t) OVER (PARTITION BY trace_id, worker ORDER BY from_t), 'infinity') AS until_t
FROM _workers;
