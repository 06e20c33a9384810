-- Inputs of tasks on one worker.
-- Dask assigns a task to the worker that has its inputs, unless moving them takes less time than waiting there. If the
-- inputs of many tasks are on one worker, such as the one that was there first, tasks are queued on it while others have
-- nothing to do. The cost is the time of free threads while ready tasks were queued on other workers. If work stealing
-- is off, that is the reason (no-stealing).
-- Records: transition
-- Applies: (SELECT sum(seconds) FROM _core_time WHERE use = 'imbalance') >= $min_share * (SELECT min(run_core_seconds) FROM _run_size)
-- Explains: imbalance
-- Source: workers of tasks and of their inputs; uses of core_time
-- Documentation: https://distributed.dask.org/en/stable/locality.html
-- $min_share = 0.05: free threads while tasks were queued on other workers, as a share of the core time
-- $min_inputs = 10: inputs of the tasks of a prefix
-- $local_share = 0.8: share of the bytes of these inputs that is on one worker
-- $busy_ratio = 1.3: tasks of the prefix that this worker computed, relative to an equal share
-- $least_saved = 0.4: part of the cost, on all threads, that is saved at least; assumed
-- $most_saved = 1.1: ratio of the largest saving to the cost; assumed
WITH imbalance AS (
    SELECT trace_id, sum(seconds) AS idle_seconds
    FROM _core_time
    INNER JOIN _run_size USING (trace_id)
    WHERE use = 'imbalance'
    GROUP BY trace_id, run_core_seconds
    HAVING sum(seconds) >= $min_share * run_core_seconds
),
inputs AS (
    SELECT
        trace_id,
        prefix,
        dependency_worker AS worker,
        count(DISTINCT dependency) AS keys,
        sum(bytes) AS nbytes
    FROM (
        SELECT DISTINCT trace_id, prefix, dependency, dependency_worker, bytes
        FROM (FROM dependencies SEMI JOIN imbalance USING (trace_id))
        WHERE dependency_worker IS NOT NULL
    )
    GROUP BY trace_id, prefix, dependency_worker
),
largest AS (
    SELECT *, sum(keys) OVER of_prefix AS all_keys, sum(nbytes) OVER of_prefix AS all_nbytes
    FROM inputs
    WINDOW of_prefix AS (PARTITION BY trace_id, prefix)
    QUALIFY row_number() OVER (of_prefix ORDER BY nbytes DESC, worker) = 1
),
computed AS (
    SELECT trace_id, prefix, worker, count(*) AS tasks, sum(whole_seconds) AS seconds
    FROM (FROM _task_runs SEMI JOIN imbalance USING (trace_id))
    WHERE outcome = 'memory'
    GROUP BY trace_id, prefix, worker
),
found AS (
    SELECT
        largest.trace_id,
        largest.prefix,
        coalesce(names.shown, largest.worker) AS worker,
        largest.keys,
        largest.all_keys,
        largest.nbytes,
        sum(computed.tasks) FILTER (computed.worker = largest.worker) AS tasks,
        sum(computed.tasks) AS all_tasks,
        sum(computed.seconds) FILTER (computed.worker = largest.worker) AS seconds
    FROM largest
    INNER JOIN computed
        ON largest.trace_id = computed.trace_id AND largest.prefix = computed.prefix
    LEFT JOIN _worker_names AS names
        ON largest.trace_id = names.trace_id AND largest.worker = names.worker
    WHERE all_keys >= $min_inputs AND largest.nbytes >= $local_share * all_nbytes
    GROUP BY ALL
)
SELECT
    prefix AS entity,
    'medium' AS confidence,
    format(
        '{} {:,} inputs of {} ({}) were results of worker {}, which computed {:,} of {:,} of these tasks. Threads of other'
        ' workers were free for {:,.1f} core-seconds while ready tasks were queued.',
        if(keys = all_keys, 'All', format('{:,} of the', keys)), all_keys, prefix, _byte_size(nbytes), worker, tasks,
        all_tasks, idle_seconds
    ) AS sentence,
    idle_seconds AS core_seconds,
    $least_saved * idle_seconds / mean_nthreads AS wall_seconds_min,
    $most_saved * idle_seconds / mean_nthreads AS wall_seconds_max,
    format(
        'Distribute the inputs: wait for all workers before the tasks that make them are submitted'
        ' (client.wait_for_workers), or call client.rebalance() before {} begins.', prefix
    ) AS change,
    format(
        'SELECT worker, count(*) AS tasks, sum(compute_seconds) AS seconds FROM task_runs WHERE prefix = ''{}'' GROUP BY ALL',
        replace(prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM found
INNER JOIN imbalance USING (trace_id)
INNER JOIN _run_size USING (trace_id)
INNER JOIN _cluster_size AS cluster USING (trace_id)
WHERE cluster.peak_workers > 1
    AND tasks * cluster.peak_workers >= $busy_ratio * all_tasks
    AND trace_id NOT IN (
        SELECT trace_id FROM config WHERE name = 'distributed.scheduler.work-stealing' AND value = 'false'
    )
QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY seconds DESC, prefix) = 1;
