-- Needs: nothing
CREATE VIEW _task_files AS FROM trace._task_files;
