-- Needs: _chunks, _task_runs
CREATE MACRO stragglers_by(min_relative_duration) AS TABLE
WITH usual AS (
    SELECT
        trace_id,
        prefix,
        count(whole_seconds) AS prefix_runs,
        median(whole_seconds) AS median_seconds
    FROM _task_runs
    WHERE outcome = 'memory' AND prefix IS NOT NULL
    GROUP BY trace_id, prefix
    -- With fewer attempts the median is not meaningful.
    HAVING count(whole_seconds) >= 10
),
slow AS (
    SELECT run.*, usual.median_seconds, usual.prefix_runs
    FROM _task_runs AS run
    INNER JOIN usual USING (trace_id, prefix)
    WHERE run.whole_seconds >= min_relative_duration * usual.median_seconds
        AND run.whole_seconds > usual.median_seconds
),
read AS (
    SELECT
        seq,
        CASE WHEN count(DISTINCT dataset) = 1 THEN any_value(dataset) END AS dataset,
        CASE WHEN count(DISTINCT filename) = 1 THEN any_value(filename) END AS filename,
        min(entry_start) AS entry_start,
        max(entry_stop) AS entry_stop
    FROM _chunks
    WHERE seq IN (SELECT seq FROM slow)
    GROUP BY seq
)
SELECT
    slow.key,
    slow.prefix,
    slow.attempt,
    slow.worker,
    slow.thread,
    slow.outcome,
    slow.whole_seconds AS compute_seconds,
    slow.median_seconds,
    slow.whole_seconds / nullif(slow.median_seconds, 0) AS relative_duration,
    slow.whole_seconds - slow.median_seconds AS excess_seconds,
    slow.prefix_runs,
    slow.compute_start_t,
    slow.compute_stop_t,
    read.dataset,
    read.filename,
    CASE WHEN read.filename IS NOT NULL THEN read.entry_start END AS entry_start,
    CASE WHEN read.filename IS NOT NULL THEN read.entry_stop END AS entry_stop,
    slow.run_id,
    slow.trace_id
FROM slow
LEFT JOIN read USING (seq)
ORDER BY slow.trace_id, excess_seconds DESC, slow.seq;

CREATE VIEW stragglers AS FROM stragglers_by(2);

COMMENT ON MACRO TABLE stragglers_by IS 'The view stragglers with another minimum of relative_duration.';
COMMENT ON VIEW stragglers IS 'Attempts that took at least twice the median of their prefix. One row per attempt, largest excess first. The median is that of the successful attempts of the prefix, of which there must be at least 10. stragglers_by(1.5) uses another minimum of relative_duration.';
COMMENT ON COLUMN stragglers.key IS 'Task key.';
COMMENT ON COLUMN stragglers.prefix IS 'Key prefix.';
COMMENT ON COLUMN stragglers.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN stragglers.worker IS 'Address of the worker that ran the attempt.';
COMMENT ON COLUMN stragglers.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN stragglers.outcome IS 'Outcome of the attempt, as in task_runs.';
COMMENT ON COLUMN stragglers.compute_seconds IS 'Compute time.';
COMMENT ON COLUMN stragglers.median_seconds IS 'Median compute time of the successful attempts of the prefix.';
COMMENT ON COLUMN stragglers.relative_duration IS 'compute_seconds / median_seconds.';
COMMENT ON COLUMN stragglers.excess_seconds IS 'compute_seconds - median_seconds.';
COMMENT ON COLUMN stragglers.prefix_runs IS 'Number of attempts that the median is computed from.';
COMMENT ON COLUMN stragglers.compute_start_t IS 'Start of the computation, in seconds since the epoch.';
COMMENT ON COLUMN stragglers.compute_stop_t IS 'End of the computation, in seconds since the epoch.';
COMMENT ON COLUMN stragglers.dataset IS 'Dataset of the chunk. Null without a chunk, or with chunks of several datasets.';
COMMENT ON COLUMN stragglers.filename IS 'File of the chunk. Null without a chunk, or with chunks of several files.';
COMMENT ON COLUMN stragglers.entry_start IS 'First entry read.';
COMMENT ON COLUMN stragglers.entry_stop IS 'Entry after the last one read.';
COMMENT ON COLUMN stragglers.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN stragglers.trace_id IS 'ID of the trace.';
