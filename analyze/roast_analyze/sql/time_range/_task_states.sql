-- Needs: nothing
-- What begins or ends outside is cut off where it is counted (_amounts).
CREATE VIEW _task_states AS FROM trace._task_states;
