-- Needs: _utilisation_by
CREATE VIEW utilisation AS FROM utilisation_by(NULL);

COMMENT ON VIEW utilisation IS 'Thread utilization of each worker over time. One row per time bucket and worker process, in order of time, with the buckets of concurrency; utilisation_by(10) uses 10 s. Times are exact: attempts that cross buckets are divided between them. Time outside the recording is cut off.';
COMMENT ON COLUMN utilisation.t IS 'Start of the bucket, in seconds since the epoch.';
COMMENT ON COLUMN utilisation.seconds IS 'Length of the bucket. Only the last one, which ends with the recording, can be shorter.';
COMMENT ON COLUMN utilisation.worker IS 'Worker address.';
COMMENT ON COLUMN utilisation.name IS 'Worker name, which a restarted worker keeps.';
COMMENT ON COLUMN utilisation.compute_seconds IS 'Compute time in the bucket, summed over threads.';
COMMENT ON COLUMN utilisation.failed_seconds IS 'Part of compute_seconds of attempts that did not succeed (outcome other than memory).';
COMMENT ON COLUMN utilisation.transfer_seconds IS 'Time to fetch dependencies from other workers. Transfers overlap each other and computations.';
COMMENT ON COLUMN utilisation.thread_seconds IS 'Available thread time. Null if the number of threads is unknown.';
COMMENT ON COLUMN utilisation.idle_seconds IS 'thread_seconds - compute_seconds.';
COMMENT ON COLUMN utilisation.utilisation IS 'compute_seconds / thread_seconds. Slightly more than 1 is due to the worker''s clock; much more, to tasks that secede from their thread.';
COMMENT ON COLUMN utilisation.server_id IS 'Process identity.';
COMMENT ON COLUMN utilisation.trace_id IS 'Trace identity.';
