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
    -- Of fewer a median says little.
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

COMMENT ON MACRO TABLE stragglers_by IS 'The view stragglers with another factor.';
COMMENT ON VIEW stragglers IS 'Attempts that computed at least twice as long as is usual for their prefix, the most excess first: one row per attempt. Usual is the median of the attempts that ended well, of 10 at least; attempts whose prefix is not known have none. stragglers_by(1.5) asks for another factor.';
COMMENT ON COLUMN stragglers.key IS 'Key of the task.';
COMMENT ON COLUMN stragglers.prefix IS 'Key prefix: what kind of task it is.';
COMMENT ON COLUMN stragglers.attempt IS 'Number of the attempt within its key, from 1.';
COMMENT ON COLUMN stragglers.worker IS 'Address of the worker that it ran on.';
COMMENT ON COLUMN stragglers.thread IS 'Thread that computed, within its worker.';
COMMENT ON COLUMN stragglers.outcome IS 'How it ended, as in task_runs.';
COMMENT ON COLUMN stragglers.compute_seconds IS 'Time of the computation.';
COMMENT ON COLUMN stragglers.median_seconds IS 'Median computing time of the attempts of its prefix that ended well.';
COMMENT ON COLUMN stragglers.relative_duration IS 'compute_seconds / median_seconds.';
COMMENT ON COLUMN stragglers.excess_seconds IS 'compute_seconds - median_seconds: what it took longer than usual.';
COMMENT ON COLUMN stragglers.prefix_runs IS 'Attempts that the median is of.';
COMMENT ON COLUMN stragglers.compute_start_t IS 'When the computation began, in seconds since the epoch.';
COMMENT ON COLUMN stragglers.compute_stop_t IS 'When the computation ended, in seconds since the epoch.';
COMMENT ON COLUMN stragglers.dataset IS 'Dataset of the chunk that it read; null if it read none, or of several datasets.';
COMMENT ON COLUMN stragglers.filename IS 'File of the chunk that it read; null if it read none, or several files.';
COMMENT ON COLUMN stragglers.entry_start IS 'First entry that it read of the file.';
COMMENT ON COLUMN stragglers.entry_stop IS 'Entry after the last that it read of the file.';
COMMENT ON COLUMN stragglers.run_id IS 'Number that Dask gave the attempt.';
COMMENT ON COLUMN stragglers.trace_id IS 'Identity of the recording.';
