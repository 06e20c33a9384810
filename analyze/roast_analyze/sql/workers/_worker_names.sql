-- Needs: _workers
-- What is shown for the address of a worker: its name, with the address if another worker of the trace had the
-- same name.
CREATE VIEW _worker_names AS
SELECT
    trace_id,
    worker,
    CASE
        WHEN name IS NULL THEN worker
        WHEN count(*) OVER (PARTITION BY trace_id, name) > 1 THEN format('{} ({})', name, worker)
        ELSE name
    END AS shown
FROM (SELECT trace_id, worker, max_by(name, added_t) AS name FROM _workers GROUP BY ALL);
