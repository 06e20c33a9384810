-- Needs: _task_runs
-- Records without run_id say what a chunk is, those with run_id what an attempt at it did.
-- An attempt that was measured is found by (key, run_id); what a chunk is may be repeated.
-- A record with neither is a file that coffea asked for its entries: no chunk.
CREATE TABLE _chunks AS
WITH identity AS (
    SELECT *
    FROM raw.chunk
    WHERE entry_start IS NOT NULL OR run_id IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, key ORDER BY run_id IS NOT NULL, rowid
    ) = 1
),
measured AS (
    SELECT *
    FROM raw.chunk
    WHERE run_id IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY trace_id, key, run_id ORDER BY rowid DESC) = 1
)
SELECT
    run.key,
    run.attempt,
    identity.dataset,
    identity.filename,
    identity.treename,
    identity.entry_start,
    identity.entry_stop,
    coalesce(
        measured.events,
        CASE WHEN run.outcome = 'memory' THEN identity.entry_stop - identity.entry_start END
    ) AS events,
    measured.bytes_read,
    measured.columns,
    measured.branches,
    measured.process_seconds,
    measured.open_seconds,
    measured.cpu_seconds,
    run.worker,
    run.outcome,
    -- A result that was lost with its worker is computed again, and is still one chunk; a
    -- key that was submitted again is another one.
    run.outcome = 'memory' AND row_number() OVER (
        PARTITION BY run.trace_id, run.key, run.submission, run.outcome ORDER BY run.seq
    ) = 1 AS is_first_result,
    run.nbytes AS output_bytes,
    coalesce(run.exception, measured.exception) AS exception,
    run.compute_seconds,
    run.processing_t,
    run.end_t,
    identity.file_uuid,
    identity.usermeta,
    run.run_id,
    run.seq,
    run.trace_id
FROM _task_runs AS run
INNER JOIN identity USING (trace_id, key)
LEFT JOIN measured
    ON run.trace_id = measured.trace_id
    AND run.key = measured.key
    AND run.run_id = measured.run_id;
