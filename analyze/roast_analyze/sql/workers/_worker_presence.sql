-- Needs: _trace_range, _workers
-- Lifetime of each process within the recording, and its number of threads.
CREATE VIEW _worker_presence AS
WITH sampled_threads AS (
    SELECT trace_id, worker, max(nthreads) AS nthreads
    FROM raw.worker_sample
    GROUP BY trace_id, worker
)
SELECT
    workers.process,
    coalesce(workers.nthreads, sampled_threads.nthreads) AS nthreads,
    coalesce(workers.added_t, recording.start_t) AS from_t,
    coalesce(workers.removed_t, recording.stop_t) AS to_t,
    workers.trace_id
FROM _workers AS workers
INNER JOIN _trace_range AS recording USING (trace_id)
LEFT JOIN sampled_threads USING (trace_id, worker);
