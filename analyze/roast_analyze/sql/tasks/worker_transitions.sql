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

COMMENT ON VIEW worker_transitions IS 'Changes of the states of tasks on workers: one row per change. Workers know other states than the scheduler, and have tasks of their own for the results that they fetch. Empty unless the recorder was asked for it (worker_transitions=True).';
COMMENT ON COLUMN worker_transitions.t IS 'When, in seconds since the epoch, as the worker estimates the clock of the scheduler.';
COMMENT ON COLUMN worker_transitions.worker IS 'Address of the worker.';
COMMENT ON COLUMN worker_transitions.key IS 'Key of the task.';
COMMENT ON COLUMN worker_transitions.start IS 'State before.';
COMMENT ON COLUMN worker_transitions.finish IS 'State that was asked for.';
COMMENT ON COLUMN worker_transitions.state IS 'State after: finish, unless the task can only be marked for it: cancelled or resumed.';
COMMENT ON COLUMN worker_transitions.stimulus_id IS 'What made the worker do this. That of →waiting of a task that the scheduler has sent is compute-task- and when the scheduler wrote the message, by its own clock.';
COMMENT ON COLUMN worker_transitions.server_id IS 'Identity of the worker process.';
COMMENT ON COLUMN worker_transitions.seq IS 'Place in the order of the trace: of one worker, what is smaller came first.';
COMMENT ON COLUMN worker_transitions.trace_id IS 'Identity of the recording.';
