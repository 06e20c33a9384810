-- Needs: nothing
-- In file order, trace by trace, which is the scheduler's order. Sorting would take longer than
-- most queries.
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

COMMENT ON VIEW transitions IS 'Scheduler transitions, as recorded. One row per state change of a task.';
COMMENT ON COLUMN transitions.t IS 'Time, in seconds since the epoch.';
COMMENT ON COLUMN transitions.key IS 'Task key.';
COMMENT ON COLUMN transitions.start IS 'State before.';
COMMENT ON COLUMN transitions.finish IS 'State after.';
COMMENT ON COLUMN transitions.stimulus_id IS 'Stimulus: Dask''s ID of what caused the transition.';
COMMENT ON COLUMN transitions.worker IS 'Worker that the task was sent to, or that reported its end.';
COMMENT ON COLUMN transitions.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN transitions.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN transitions.nbytes IS 'Size of the result.';
COMMENT ON COLUMN transitions.typename IS 'Type of the result.';
COMMENT ON COLUMN transitions.startstops IS 'Phases of the attempt: action, start, stop, source. task_phases has one row per phase.';
COMMENT ON COLUMN transitions.cause IS 'Key of the task whose failure caused this one.';
COMMENT ON COLUMN transitions.exception IS 'Exception text.';
COMMENT ON COLUMN transitions.traceback IS 'Traceback text.';
COMMENT ON COLUMN transitions.seq IS 'Position in the scheduler''s order within the trace.';
COMMENT ON COLUMN transitions.trace_id IS 'ID of the trace.';
