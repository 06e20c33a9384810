-- Needs: _time_range, _workers
CREATE VIEW _worker_presence AS
SELECT
    presence.process,
    presence.nthreads,
    greatest(presence.from_t, time_range.from_t) AS from_t,
    least(presence.to_t, time_range.until_t) AS to_t,
    trace_id
FROM trace._worker_presence AS presence
SEMI JOIN _workers AS worker USING (process)
INNER JOIN _time_range AS time_range USING (trace_id);
