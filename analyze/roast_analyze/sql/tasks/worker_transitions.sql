-- Needs: nothing
CREATE VIEW worker_transitions AS
SELECT
    t,
    worker,
    key,
    "start",
    finish,
    coalesce(state, finish) AS state,
    stimulus_id,
    server_id,
    rowid AS seq,
    trace_id
FROM raw.worker_transition
ORDER BY trace_id, t, rowid;

COMMENT ON VIEW worker_transitions IS 'State changes of tasks on workers. One row per change. Workers use other states than the scheduler, and track results that they fetch as tasks. Empty unless recorded with worker_transitions=True.';
COMMENT ON COLUMN worker_transitions.t IS 'Time, in seconds since the epoch, as the worker estimates the scheduler''s clock.';
COMMENT ON COLUMN worker_transitions.worker IS 'Worker address.';
COMMENT ON COLUMN worker_transitions.key IS 'Task key.';
COMMENT ON COLUMN worker_transitions.start IS 'State before.';
COMMENT ON COLUMN worker_transitions.finish IS 'Requested state.';
COMMENT ON COLUMN worker_transitions.state IS 'State after: finish, or cancelled or resumed if the change has to wait.';
COMMENT ON COLUMN worker_transitions.stimulus_id IS 'Stimulus: Dask''s ID of what caused the transition. For →waiting of a dispatched task, compute-task- and the time at which the scheduler sent it.';
COMMENT ON COLUMN worker_transitions.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN worker_transitions.seq IS 'Position in the trace. Ordered within a worker.';
COMMENT ON COLUMN worker_transitions.trace_id IS 'ID of the trace.';
