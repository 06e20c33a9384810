-- Needs: _time_range, _workers
CREATE VIEW _worker_presence AS
SELECT
    presence.process,
    presence.nthreads,
    greatest(presence.from_t, excerpt.from_t) AS from_t,
    least(presence.to_t, excerpt.until_t) AS to_t,
    trace_id
FROM trace._worker_presence AS presence
SEMI JOIN _workers AS worker USING (process)
INNER JOIN _time_range AS excerpt USING (trace_id);
