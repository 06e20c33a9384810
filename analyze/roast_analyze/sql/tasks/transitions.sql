-- Needs: nothing
-- As they lie in the files, trace by trace, which is the scheduler's order: sorting them would
-- take longer than all else that is asked of them.
CREATE VIEW transitions AS
SELECT
    t,
    key,
    "start",
    finish,
    stimulus_id,
    worker,
    run_id,
    thread,
    nbytes,
    typename,
    startstops,
    cause,
    exception,
    traceback,
    rowid AS seq,
    trace_id
FROM raw.transition;

COMMENT ON VIEW transitions IS 'Scheduler transitions as they were recorded: one row per change of state of a task.';
COMMENT ON COLUMN transitions.t IS 'When, in seconds since the epoch.';
COMMENT ON COLUMN transitions.key IS 'Key of the task.';
COMMENT ON COLUMN transitions.start IS 'State before.';
COMMENT ON COLUMN transitions.finish IS 'State after.';
COMMENT ON COLUMN transitions.stimulus_id IS 'What made Dask do this.';
COMMENT ON COLUMN transitions.worker IS 'Worker that the task was sent to, or that reported its end.';
COMMENT ON COLUMN transitions.run_id IS 'Number that Dask gave the attempt.';
COMMENT ON COLUMN transitions.thread IS 'Thread that computed, within its worker.';
COMMENT ON COLUMN transitions.nbytes IS 'Size of the result.';
COMMENT ON COLUMN transitions.typename IS 'Type of the result.';
COMMENT ON COLUMN transitions.startstops IS 'Parts of the attempt: action, start, stop, source.';
COMMENT ON COLUMN transitions.cause IS 'Key of the task whose failure made this one fail.';
COMMENT ON COLUMN transitions.exception IS 'Text of the exception.';
COMMENT ON COLUMN transitions.traceback IS 'Text of the traceback.';
COMMENT ON COLUMN transitions.seq IS 'Place in the scheduler''s order: within a trace, what is smaller came first.';
COMMENT ON COLUMN transitions.trace_id IS 'Identity of the recording.';
