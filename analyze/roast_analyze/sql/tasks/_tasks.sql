-- Needs: nothing
-- A key is submitted again when the scheduler has forgotten it; the first record describes it.
CREATE TABLE _tasks AS
SELECT
    rowid AS seq,
    *,
    count(*) OVER (PARTITION BY trace_id, key) AS submissions
FROM raw.task
QUALIFY row_number() OVER (PARTITION BY trace_id, key ORDER BY rowid) = 1;
