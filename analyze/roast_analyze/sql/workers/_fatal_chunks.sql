-- Needs: _chunks, _task_runs, _worker_removals
-- The chunk, or else the file, that each worker had when it was killed for memory or lost for an
-- unknown reason: one row per trace, or none if there is no such chunk or file, or several. Which of
-- the tasks of a lost worker were running is not recorded.
CREATE VIEW _fatal_chunks AS
WITH deaths AS (
    SELECT trace_id, process, worker, stimulus_id, count(*) OVER (PARTITION BY trace_id) AS workers
    FROM _worker_removals
    WHERE kill IS NOT NULL OR (NOT expected AND closing IS NULL)
    -- Of a single worker, the cause must be its memory.
    QUALIFY workers > 1 OR kill IS NOT NULL
),
files AS (
    SELECT trace_id, count(DISTINCT filename) AS files FROM _chunks GROUP BY trace_id
),
shared AS (
    SELECT
        death.trace_id,
        death.workers,
        chunk.filename,
        any_value(chunk.treename) AS treename,
        any_value(chunk.dataset) AS dataset,
        chunk.key,
        CASE WHEN chunk.key IS NOT NULL THEN min(chunk.entry_start) END AS entry_start,
        CASE WHEN chunk.key IS NOT NULL THEN max(chunk.entry_stop) END AS entry_stop
    FROM deaths AS death
    INNER JOIN _task_runs AS attempt
        ON death.trace_id = attempt.trace_id
        AND death.worker = attempt.worker
        AND attempt.outcome IN ('lost', 'erred')
    INNER JOIN raw.transition AS ending
        ON attempt.end_seq = ending.rowid AND death.stimulus_id = ending.stimulus_id
    INNER JOIN _chunks AS chunk ON attempt.seq = chunk.seq
    INNER JOIN files ON death.trace_id = files.trace_id
    GROUP BY GROUPING SETS (
        (death.trace_id, death.workers, files, chunk.filename, chunk.key),
        (death.trace_id, death.workers, files, chunk.filename)
    )
    HAVING count(DISTINCT death.process) = death.workers AND (chunk.key IS NOT NULL OR files > 1)
    QUALIFY count(*) OVER (PARTITION BY death.trace_id, chunk.key IS NULL) = 1
)
FROM shared
QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY key IS NULL) = 1;
