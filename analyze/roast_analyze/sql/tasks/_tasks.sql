-- Needs: _key_summaries
-- A key can be submitted again after the scheduler has forgotten it; the first record describes
-- the task.
CREATE VIEW _tasks AS
SELECT
    task.rowid AS seq,
    task.*,
    task.value -> '$.submitted_span' AS submitted_span,
    keys.submissions
FROM raw.task AS task
INNER JOIN _key_summaries AS keys ON task.rowid = keys.submission;
