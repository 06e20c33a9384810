-- Needs: nothing
-- Clipped later, in _changes_by.
CREATE VIEW _task_states AS FROM trace._task_states;
