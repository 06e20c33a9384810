-- Needs: _task_runs, _worker_removals, _worker_statuses, _workers
-- Times in which a worker process was paused, leaving, silent or joining. A worker that the scheduler
-- removed after a time without heartbeats was silent since its last heartbeat. A worker that joined
-- during the run counts as joining until its first task is dispatched, but no longer than it takes to move tasks to it.
CREATE VIEW _worker_conditions AS
SELECT
    process.process,
    CASE WHEN status.status = 'paused' THEN 'paused' ELSE 'leaving' END AS condition,
    status.start_t,
    coalesce(status.stop_t, process.removed_t, 'infinity'::DOUBLE) AS stop_t,
    process.trace_id
FROM _worker_statuses AS status
ASOF INNER JOIN _workers AS process
    ON status.trace_id = process.trace_id
    AND status.worker = process.worker
    AND status.start_t >= process.from_t
WHERE status.status IN ('paused', 'closing_gracefully', 'closing')
UNION ALL
SELECT process.process, 'silent', max(seen.last_seen), process.removed_t, process.trace_id
FROM _workers AS process
INNER JOIN raw.worker_sample AS seen
    ON process.trace_id = seen.trace_id
    AND process.worker = seen.worker
    AND seen.t BETWEEN process.from_t AND process.removed_t
WHERE process.process IN (SELECT process FROM _worker_removals WHERE reason = 'check-worker-ttl')
GROUP BY ALL
UNION ALL
SELECT
    process.process,
    'joining',
    process.added_t,
    least(coalesce(min(run.processing_t), process.removed_t, 'infinity'::DOUBLE), process.added_t + 5),
    process.trace_id
FROM _workers AS process
INNER JOIN (SELECT trace_id, min(t) AS t FROM raw.task GROUP BY trace_id) AS submitted
    ON process.trace_id = submitted.trace_id AND process.added_t > submitted.t
LEFT JOIN _task_runs AS run
    ON process.trace_id = run.trace_id
    AND process.worker = run.worker
    AND run.processing_t >= process.added_t
GROUP BY process.process, process.added_t, process.removed_t, process.trace_id;
