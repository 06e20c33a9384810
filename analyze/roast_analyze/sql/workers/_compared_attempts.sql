-- Needs: _chunk_ratios, _process_addresses, _relative_duration, _task_runs
-- Durations of attempts that are compared with those of other workers. Chunks of the whole run are
-- compared by _relative_duration, which accounts for events and files, and those of parts of the run
-- in the same way as attempts.
CREATE VIEW _compared_attempts AS
SELECT
    run.trace_id,
    run.prefix,
    false AS is_chunk,
    process.process,
    run.compute_start_t,
    run.whole_seconds,
    run.whole_seconds AS duration
FROM _task_runs AS run
INNER JOIN _process_addresses AS process
    ON run.trace_id = process.trace_id
    AND run.worker = process.worker
    AND run.processing_t >= process.from_t
    AND run.processing_t < process.until_t
-- The durations of shorter tasks are dominated by noise.
WHERE run.outcome = 'memory' AND run.whole_seconds >= 0.01 AND run.role IS DISTINCT FROM 'chunk'
UNION ALL
SELECT
    chunk.trace_id,
    'chunks',
    true,
    chunk.process,
    chunk.begin_t,
    chunk.whole_seconds,
    chunk.ratio / coalesce(file.relative_duration, 1)
FROM _chunk_ratios AS chunk
LEFT JOIN (FROM _relative_duration WHERE process IS NULL AND is_slow) AS file
    ON chunk.trace_id = file.trace_id
    AND chunk.dataset IS NOT DISTINCT FROM file.dataset
    AND chunk.filename IS NOT DISTINCT FROM file.filename
    AND chunk.treename IS NOT DISTINCT FROM file.treename
WHERE chunk.whole_seconds >= 0.01;
