-- Needs: _bucket_sums, _buckets
CREATE MACRO concurrency_by(bucket_seconds) AS TABLE
WITH buckets AS (
    SELECT trace_id, start_t, width, extent, unnest(range(buckets)) AS bucket
    FROM _buckets(bucket_seconds)
),
totals AS (
    SELECT
        trace_id,
        bucket,
        sum(amount) FILTER (what = 'compute') AS compute,
        sum(amount) FILTER (what = 'transfer') AS transfer,
        sum(amount) FILTER (what = 'processing') AS processing,
        sum(amount) FILTER (what = 'queued') AS queued,
        sum(amount) FILTER (what = 'no-worker') AS no_worker,
        sum(amount) FILTER (what = 'waiting') AS waiting,
        sum(amount) FILTER (what = 'presence') AS presence,
        -- Without workers there are 0 threads; otherwise their number can be unknown.
        CASE
            WHEN coalesce(presence, 0) = 0 THEN 0
            ELSE sum(amount) FILTER (what = 'threads')
        END AS threads
    FROM _bucket_sums(bucket_seconds, false)
    GROUP BY trace_id, bucket
)
SELECT
    start_t + bucket * width AS t,
    least(width, extent - bucket * width) AS seconds,
    coalesce(compute, 0) / seconds AS executing,
    coalesce(transfer, 0) / seconds AS transferring,
    coalesce(processing, 0) / seconds AS processing,
    coalesce(queued, 0) / seconds AS queued,
    coalesce(no_worker, 0) / seconds AS no_worker,
    coalesce(waiting, 0) / seconds AS waiting,
    coalesce(presence, 0) / seconds AS workers,
    CASE WHEN totals.bucket IS NULL THEN 0 ELSE threads END / seconds AS nthreads,
    coalesce(compute, 0) AS compute_seconds,
    nthreads * seconds AS thread_seconds,
    trace_id
FROM buckets
LEFT JOIN totals USING (trace_id, bucket)
ORDER BY trace_id, t;

COMMENT ON MACRO TABLE concurrency_by IS 'The view concurrency with buckets of a given length in seconds.';
