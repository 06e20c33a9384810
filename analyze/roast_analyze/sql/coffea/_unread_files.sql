-- Needs: _coffea_keys, _task_runs
-- Records: chunk
-- Files whose number of entries coffea could not read, without a failed task: their events are
-- missing. With skipbadfiles the task succeeds. Without a cluster there is no task, and the file
-- was skipped if chunks of others were processed later.
CREATE TABLE _unread_files AS
WITH chunks AS (
    SELECT trace_id, max(chunk.rowid) AS last_record
    FROM raw.chunk AS chunk
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk') AS keys USING (trace_id, key)
    GROUP BY trace_id
)
SELECT
    coalesce(run.end_t, chunk.stop_t) AS t,
    chunk.key,
    chunk.dataset,
    chunk.filename,
    chunk.treename,
    chunk.worker,
    chunk.exception,
    run.attempt,
    run.prefix,
    run.seq,
    coalesce(run.compute_seconds, chunk.stop_t - chunk.start_t) AS compute_seconds,
    run.seq IS NOT NULL OR coalesce(chunk.rowid < chunks.last_record, false) AS is_skipped,
    chunk.trace_id
FROM raw.chunk AS chunk
LEFT JOIN _task_runs AS run
    ON chunk.trace_id = run.trace_id AND chunk.key = run.key AND chunk.run_id = run.run_id
LEFT JOIN chunks ON chunk.trace_id = chunks.trace_id
WHERE chunk.measured.until = 'metadata'
    AND chunk.exception IS NOT NULL
    AND coalesce(run.outcome = 'memory', true)
-- The last attempt: without a cluster, coffea itself retries.
QUALIFY row_number() OVER (PARTITION BY chunk.trace_id, chunk.key ORDER BY chunk.rowid DESC) = 1;
