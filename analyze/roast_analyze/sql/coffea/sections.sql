-- Needs: _chunks, _clip_negative, _task_runs
CREATE VIEW sections AS
WITH attempts AS (
    SELECT
        trace_id,
        key,
        run_id,
        first(attempt ORDER BY seq NULLS LAST) AS attempt,
        -- For a task that reads several chunks, the chunk of a section is unknown.
        CASE WHEN count(DISTINCT dataset) = 1 THEN any_value(dataset) END AS dataset,
        CASE WHEN count(DISTINCT filename) = 1 THEN any_value(filename) END AS filename,
        first(outcome ORDER BY seq NULLS LAST) AS outcome
    FROM _chunks
    WHERE run_id IS NOT NULL
    GROUP BY trace_id, key, run_id
),
runs AS (
    SELECT trace_id, key, run_id, attempt, outcome
    FROM _task_runs
    SEMI JOIN raw.section USING (trace_id, key)
    WHERE run_id IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY trace_id, key, run_id ORDER BY seq) = 1
)
SELECT
    section.key,
    section.name,
    _clip_negative(section.stop_t - section.start_t) AS seconds,
    section.measured.cpu_seconds,
    section.measured.memory_delta AS memory_delta_bytes,
    section.measured.bytes_read,
    section.start_t,
    section.stop_t,
    section.worker,
    section.thread,
    section.run_id,
    coalesce(attempts.attempt, runs.attempt) AS attempt,
    coalesce(attempts.outcome, runs.outcome) AS outcome,
    attempts.dataset,
    attempts.filename,
    section.exception,
    section.trace_id
FROM raw.section AS section
LEFT JOIN attempts USING (trace_id, key, run_id)
LEFT JOIN runs USING (trace_id, key, run_id)
ORDER BY section.trace_id, section.rowid;

COMMENT ON VIEW sections IS 'User-named sections of chunks and other tasks. One row per execution of a section. Empty if no sections were used.';
COMMENT ON COLUMN sections.key IS 'Task key.';
COMMENT ON COLUMN sections.name IS 'Section name.';
COMMENT ON COLUMN sections.seconds IS 'Wall time.';
COMMENT ON COLUMN sections.cpu_seconds IS 'CPU time of the thread.';
COMMENT ON COLUMN sections.memory_delta_bytes IS 'Change of process memory during the section, other threads included.';
COMMENT ON COLUMN sections.bytes_read IS 'Bytes requested from the source.';
COMMENT ON COLUMN sections.start_t IS 'Start, in seconds since the epoch.';
COMMENT ON COLUMN sections.stop_t IS 'End, in seconds since the epoch.';
COMMENT ON COLUMN sections.worker IS 'Worker address.';
COMMENT ON COLUMN sections.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN sections.run_id IS 'Dask''s run id of the attempt. Without a cluster, assigned by the recorder.';
COMMENT ON COLUMN sections.attempt IS 'Attempt number within the key, as in task_runs and chunks.';
COMMENT ON COLUMN sections.outcome IS 'Outcome of the attempt, as in chunks, or task_runs for other tasks.';
COMMENT ON COLUMN sections.dataset IS 'Dataset of the chunk. Null for other tasks and tasks that read several datasets.';
COMMENT ON COLUMN sections.filename IS 'File of the chunk. Null for other tasks and tasks that read several files.';
COMMENT ON COLUMN sections.exception IS 'Text of the exception that ended the section.';
COMMENT ON COLUMN sections.trace_id IS 'ID of the trace.';
