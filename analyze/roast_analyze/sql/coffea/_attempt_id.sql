-- Needs: nothing
-- Return the identity of an attempt, given that of _task_runs, or else of a chunk that no task
-- computed: those are numbered after all attempts, from FIRST_CHUNK of computed/waits.py.
CREATE MACRO _attempt_id(seq, local_id) AS coalesce(seq, 4611686018427387904 + local_id);
