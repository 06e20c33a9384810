-- Needs: _bucket_sums, _clip_negative, _worker_presence, _workers
CREATE MACRO utilisation_by(bucket_seconds) AS TABLE
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
    -- A bucket between two in which it was there, or did something, is none of its own.
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
    totals.compute_seconds / nullif(thread_seconds, 0) AS utilisation,
    workers.server_id,
    workers.trace_id
FROM totals
INNER JOIN _workers AS workers USING (process)
INNER JOIN _worker_presence AS presence USING (process)
ORDER BY workers.trace_id, totals.t, process;

CREATE VIEW utilisation AS FROM utilisation_by(NULL);

COMMENT ON MACRO TABLE utilisation_by IS 'The view utilisation with buckets of so many seconds.';
COMMENT ON VIEW utilisation IS 'How busy each worker was at a time: one row per bucket of time and process that was there or did something, in order of time, with the buckets of concurrency; utilisation_by(10) has buckets of 10 s. Times are exact, attempts that cross buckets are divided between them. What lies before or after the recording is cut off.';
COMMENT ON COLUMN utilisation.t IS 'Begin of the bucket, in seconds since the epoch.';
COMMENT ON COLUMN utilisation.seconds IS 'Its length: the same for all, but for the last one, which ends with the recording.';
COMMENT ON COLUMN utilisation.worker IS 'Address of the worker.';
COMMENT ON COLUMN utilisation.name IS 'Its name, which a restarted worker keeps.';
COMMENT ON COLUMN utilisation.compute_seconds IS 'Time that tasks computed in the bucket, threads added up.';
COMMENT ON COLUMN utilisation.failed_seconds IS 'Part of it that came to nothing: of attempts whose outcome is not memory.';
COMMENT ON COLUMN utilisation.transfer_seconds IS 'Time of fetching dependencies from other workers; transfers overlap, and threads compute meanwhile.';
COMMENT ON COLUMN utilisation.thread_seconds IS 'Time of its threads while it was there; null if their number is not known.';
COMMENT ON COLUMN utilisation.idle_seconds IS 'thread_seconds minus compute_seconds: time in which its threads computed nothing.';
COMMENT ON COLUMN utilisation.utilisation IS 'compute_seconds / thread_seconds. A little more than 1 is the clock of the worker, much more are tasks that leave their thread to others.';
COMMENT ON COLUMN utilisation.server_id IS 'Identity of the process.';
COMMENT ON COLUMN utilisation.trace_id IS 'Identity of the recording.';
