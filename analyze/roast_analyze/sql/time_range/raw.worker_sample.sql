-- Needs: _excerpt
CREATE VIEW raw.worker_sample AS
SELECT record.rowid, record.*
FROM trace.raw.worker_sample AS record
INNER JOIN _excerpt AS excerpt USING (trace_id)
WHERE record.t >= from_t AND record.t < until_t;
