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
            WHEN presence IS NULL THEN 0
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

CREATE VIEW concurrency AS FROM concurrency_by(NULL);

COMMENT ON MACRO TABLE concurrency_by IS 'The view concurrency with buckets of a given length in seconds.';
COMMENT ON VIEW concurrency IS 'Tasks by state, workers and threads over time. One row per time bucket, in order. Bucket lengths are 1, 2 or 5 times a power of ten seconds, the shortest that gives at most 400 buckets; concurrency_by(10) uses 10 s. Values are exact means over the bucket. Time outside the recording is cut off.';
COMMENT ON COLUMN concurrency.t IS 'Start of the bucket, in seconds since the epoch.';
COMMENT ON COLUMN concurrency.seconds IS 'Length of the bucket. Only the last one, which ends with the recording, can be shorter.';
COMMENT ON COLUMN concurrency.executing IS 'Tasks computing.';
COMMENT ON COLUMN concurrency.transferring IS 'Transfers of dependencies in progress, as reported by task attempts.';
COMMENT ON COLUMN concurrency.processing IS 'Tasks assigned to a worker and not finished: computing or waiting there.';
COMMENT ON COLUMN concurrency.queued IS 'Tasks that were ready and queued on the scheduler until a worker had a free thread.';
COMMENT ON COLUMN concurrency.no_worker IS 'Tasks that were ready, but no worker could run them.';
COMMENT ON COLUMN concurrency.waiting IS 'Tasks waiting for dependencies.';
COMMENT ON COLUMN concurrency.workers IS 'Number of workers.';
COMMENT ON COLUMN concurrency.nthreads IS 'Number of threads. Workers with an unknown number of threads count 0; null if it is unknown for all.';
COMMENT ON COLUMN concurrency.compute_seconds IS 'Compute time in the bucket. The sum over all buckets is that of task_runs.';
COMMENT ON COLUMN concurrency.thread_seconds IS 'Available thread time. The sum over all buckets is core_seconds of run.';
COMMENT ON COLUMN concurrency.trace_id IS 'Trace identity.';
