-- Needs: _concurrency_by
CREATE VIEW concurrency AS FROM concurrency_by(NULL);

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
COMMENT ON COLUMN concurrency.trace_id IS 'ID of the trace.';
