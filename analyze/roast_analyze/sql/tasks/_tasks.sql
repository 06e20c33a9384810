-- Needs: _key_summaries
-- A key is submitted again when the scheduler has forgotten it; the first record describes it.
CREATE VIEW _tasks AS
SELECT
    task.rowid AS seq,
    task.*,
    keys.submissions
FROM raw.task AS task
INNER JOIN _key_summaries AS keys ON task.rowid = keys.submission;
