-- Needs: _keys
-- A key is submitted again when the scheduler has forgotten it; the first record describes it.
CREATE VIEW _tasks AS
SELECT
    task.rowid AS seq,
    task.*,
    keys.submissions
FROM raw.task AS task
INNER JOIN _keys AS keys ON task.rowid = keys.submission;
