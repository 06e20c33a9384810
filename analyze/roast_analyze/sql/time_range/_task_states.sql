-- Needs: nothing
-- What begins or ends outside is cut off where it is counted (_bucket_sums).
CREATE VIEW _task_states AS FROM trace._task_states;
