-- Needs: _core_time, _workers
CREATE VIEW core_time AS
SELECT
    t,
    CASE
        WHEN use IN ('silent worker', 'actor method', 'seceded task') THEN 'unknown'
        WHEN use IN ('transfer', 'dispatch', 'paused worker') THEN 'assigned'
        WHEN use IN (
            'kept result', 'recomputed result', 'failed attempt', 'lost attempt', 'rescheduled attempt',
            'cancelled attempt', 'unfinished attempt', 'deserialize', 'disk'
        ) THEN 'busy'
        ELSE 'idle'
    END AS category,
    use,
    worker,
    name,
    prefix,
    dataset,
    span_id,
    seconds,
    server_id,
    _core_time.trace_id
FROM _core_time
LEFT JOIN _workers USING (process);

COMMENT ON VIEW core_time IS 'Use of the thread time of the cluster. One row per time bucket, worker, use, prefix, dataset and span. The seconds of all rows add up to run.core_seconds.';
COMMENT ON COLUMN core_time.t IS 'Start of the time bucket, in seconds since the epoch.';
COMMENT ON COLUMN core_time.category IS 'busy: a thread computed a result or prepared to · assigned: a thread was free, and a task assigned to its worker did not compute yet · idle: no assigned task · unknown.';
COMMENT ON COLUMN core_time.use IS 'busy: kept result, recomputed result (it was lost and computed again), failed attempt, lost attempt, rescheduled attempt, cancelled attempt, unfinished attempt, deserialize, disk · assigned: transfer (of inputs), dispatch (being sent to the worker or delayed there), paused worker · idle: scheduler (ready tasks wait for it), imbalance (ready tasks are queued on other workers), dependencies (tasks wait for others), tail (fewer tasks are left than threads), before first graph, between graphs, after last result, joining worker, leaving worker · unknown: silent worker, actor method (a thread was free, and samples show a method of an actor of its worker, which has a thread beside those of tasks; the prefix is its name), seceded task (a thread was free, and a task of its worker that had left the threads computed or waited). A lost attempt computes from task_runs.execute_start_t on; if that is null, it is assumed to compute as soon as a thread is free, unless the worker is leaving. A cancelled attempt computes until the worker has finished it, if fine metrics were recorded. Of attempts that report nothing, no more compute than the worker has threads; the others waited on the worker. A chunk without a task, as without a cluster, counts like an unfinished task while it computes.';
COMMENT ON COLUMN core_time.worker IS 'Worker address.';
COMMENT ON COLUMN core_time.name IS 'Worker name, which a restarted worker keeps.';
COMMENT ON COLUMN core_time.prefix IS 'Prefix of the task, if there is one (busy, transfer and dispatch), or method of the actor.';
COMMENT ON COLUMN core_time.dataset IS 'Dataset of the chunk, if there is one.';
COMMENT ON COLUMN core_time.span_id IS 'Span of the task.';
COMMENT ON COLUMN core_time.seconds IS 'Thread time.';
COMMENT ON COLUMN core_time.server_id IS 'ID of the process.';
COMMENT ON COLUMN core_time.trace_id IS 'ID of the trace.';
