-- Needs: _bucket_sums, _clip_negative, _worker_presence, _workers
CREATE MACRO utilization_by(bucket_seconds) AS TABLE
WITH totals AS (
    SELECT
        process,
        any_value(t) AS t,
        any_value(seconds) AS seconds,
        coalesce(sum(amount) FILTER (what = 'compute'), 0) AS compute_seconds,
        coalesce(sum(amount) FILTER (what = 'failed'), 0) AS failed_seconds,
        coalesce(sum(amount) FILTER (what = 'transfer'), 0) AS transfer_seconds,
        coalesce(sum(amount) FILTER (what = 'threads'), 0) AS threads
    FROM _bucket_sums(bucket_seconds, true)
    -- Exclude buckets between two presences of the process.
    WHERE process > 0 AND amount > 0
    GROUP BY process, bucket
)
SELECT
    totals.t,
    totals.seconds,
    workers.worker,
    workers.name,
    totals.compute_seconds,
    totals.failed_seconds,
    totals.transfer_seconds,
    CASE WHEN presence.nthreads IS NOT NULL THEN totals.threads END AS thread_seconds,
    _clip_negative(thread_seconds - totals.compute_seconds) AS idle_seconds,
    totals.compute_seconds / nullif(thread_seconds, 0) AS utilization,
    workers.server_id,
    workers.trace_id
FROM totals
INNER JOIN _workers AS workers USING (process)
INNER JOIN _worker_presence AS presence USING (process)
ORDER BY workers.trace_id, totals.t, process;

COMMENT ON MACRO TABLE utilization_by IS 'The view utilization with buckets of a given length in seconds.';
