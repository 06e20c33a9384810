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
        -- Without workers there are no threads; of workers they may not be known.
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

COMMENT ON MACRO TABLE concurrency_by IS 'The view concurrency with buckets of so many seconds.';
COMMENT ON VIEW concurrency IS 'How many tasks were in which state at a time, and how many threads there were: one row per bucket of time, in order. Buckets are as short as they can be so that there are no more than 400, of 1, 2 or 5 times a power of ten seconds; concurrency_by(10) has buckets of 10 s. Means over the bucket, exact: each is the time that tasks spent so, by the length of the bucket. What lies before or after the recording is cut off.';
COMMENT ON COLUMN concurrency.t IS 'Begin of the bucket, in seconds since the epoch.';
COMMENT ON COLUMN concurrency.seconds IS 'Its length: the same for all, but for the last one, which ends with the recording.';
COMMENT ON COLUMN concurrency.executing IS 'Tasks that computed.';
COMMENT ON COLUMN concurrency.transferring IS 'Transfers of dependencies between workers that were under way, as attempts tell of them.';
COMMENT ON COLUMN concurrency.processing IS 'Tasks that the scheduler had sent to a worker and heard nothing of yet: those that computed, and those that waited there.';
COMMENT ON COLUMN concurrency.queued IS 'Tasks that were ready and that the scheduler held back until a worker had a thread for them.';
COMMENT ON COLUMN concurrency.no_worker IS 'Tasks that were ready, with no worker that could take them.';
COMMENT ON COLUMN concurrency.waiting IS 'Tasks that waited for the results of others.';
COMMENT ON COLUMN concurrency.workers IS 'Workers that were there.';
COMMENT ON COLUMN concurrency.nthreads IS 'Their threads; of workers whose threads are not known none, and null if those of none are known.';
COMMENT ON COLUMN concurrency.compute_seconds IS 'Computing time in the bucket; over all buckets, that of task_runs.';
COMMENT ON COLUMN concurrency.thread_seconds IS 'Time of the threads that were there; over all buckets, core_seconds of run.';
COMMENT ON COLUMN concurrency.trace_id IS 'Identity of the recording.';
