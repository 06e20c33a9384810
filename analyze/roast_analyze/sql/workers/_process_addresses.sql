-- Needs: _workers
-- Times in which the records of an address belong to a process. A join with them is faster than
-- an ASOF join of many attempts.
CREATE VIEW _process_addresses AS
SELECT
    trace_id,
    worker,
    process,
    from_t,
    coalesce(lead(from_t) OVER (PARTITION BY trace_id, worker ORDER BY from_t), 'infinity') AS until_t
FROM _workers;
