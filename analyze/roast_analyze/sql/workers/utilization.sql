-- Needs: _utilization_by
CREATE VIEW utilization AS FROM utilization_by(NULL);

COMMENT ON VIEW utilization IS 'Thread utilization of each worker over time. One row per time bucket and worker process, in order of time, with the buckets of concurrency, or wider ones if these would make more than about a million rows; utilization_by(10) uses 10 s. Times are exact: attempts that cross buckets are divided between them. Time outside the recording is cut off.';
COMMENT ON COLUMN utilization.t IS 'Start of the bucket, in seconds since the epoch.';
COMMENT ON COLUMN utilization.seconds IS 'Length of the bucket. Only the last one, which ends with the recording, can be shorter.';
COMMENT ON COLUMN utilization.worker IS 'Worker address.';
COMMENT ON COLUMN utilization.name IS 'Worker name, which a restarted worker keeps.';
COMMENT ON COLUMN utilization.compute_seconds IS 'Compute time in the bucket, summed over threads.';
COMMENT ON COLUMN utilization.failed_seconds IS 'Part of compute_seconds of attempts that did not succeed (outcome other than memory).';
COMMENT ON COLUMN utilization.transfer_seconds IS 'Time to fetch dependencies from other workers. Transfers overlap each other and computations.';
COMMENT ON COLUMN utilization.thread_seconds IS 'Available thread time. Null if the number of threads is unknown.';
COMMENT ON COLUMN utilization.idle_seconds IS 'thread_seconds - compute_seconds.';
COMMENT ON COLUMN utilization.utilization IS 'compute_seconds / thread_seconds. Slightly more than 1 is due to the worker''s clock; much more, to tasks that secede from the thread pool.';
COMMENT ON COLUMN utilization.server_id IS 'ID of the process.';
COMMENT ON COLUMN utilization.trace_id IS 'ID of the trace.';
