-- Needs: _activity_deltas, _task_runs
-- Prefixes of tasks that are coroutines (async def). Dask computes all others in an executor, which has an
-- activity of its own in the fine metrics of each task, and samples their stacks; coroutines run in the thread of
-- the event loop, which is the same for all of a worker.
CREATE VIEW _coroutine_prefixes AS
SELECT trace_id, prefix
FROM (
    SELECT trace_id, prefix
    FROM _activity_deltas
    WHERE context = 'execute' AND unit = 'seconds' AND prefix IS NOT NULL
    GROUP BY trace_id, prefix
    HAVING bool_or(activity = 'thread-noncpu') AND NOT bool_or(activity IN ('executor', 'thread-cpu'))
)
ANTI JOIN (SELECT trace_id, prefix FROM raw.profile WHERE worker IS NOT NULL) AS sampled USING (trace_id, prefix)
SEMI JOIN (
    SELECT trace_id, prefix
    FROM (
        SELECT trace_id, prefix, worker, count(DISTINCT thread) AS threads
        FROM _task_runs
        WHERE thread IS NOT NULL
        GROUP BY trace_id, prefix, worker
    )
    GROUP BY trace_id, prefix
    HAVING max(threads) = 1
) AS attempts USING (trace_id, prefix);
