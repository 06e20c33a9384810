-- Needs: nothing
-- Clipped later, in _bucket_sums.
CREATE VIEW _task_states AS FROM trace._task_states;
