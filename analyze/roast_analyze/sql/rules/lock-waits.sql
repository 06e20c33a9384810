-- Threads waiting for a lock.
-- Stacks of the profiler show which functions acquire a lock. Locks of C without a function of Python are
-- not visible. If a lock belongs to a process, as those of file libraries do, threads of other processes
-- do not wait for it: at most one process per core then computes without waiting. A lock of the cluster
-- or of a file is shared by the tasks of all workers.
-- Records: profile
-- Applies: EXISTS (FROM raw.profile WHERE list_bool_or(list_transform(tree.frames, lambda frame: _is_lock_wait(frame))))
-- Source: innermost functions of statistical profiles
-- Documentation: https://docs.dask.org/en/stable/best-practices.html#processes-and-threads
-- $min_lock_share = 0.2: share of the samples of tasks in which threads acquire a lock
-- $min_seconds = 1: sampled time in which threads acquire a lock
-- $entity_share = 0.6: share of the waiting that makes a prefix the entity
WITH waits AS MATERIALIZED (
    FROM _lock_waits
),
profiles AS (
    SELECT trace_id, worker, sum(interval_seconds * slice.counts[list_position(slice.nodes, 0)]) AS seconds
    FROM (
        SELECT trace_id, worker, interval_seconds, unnest(tree.slices) AS slice
        FROM raw.profile
        WHERE worker IN (SELECT worker FROM waits)
            AND rowid NOT IN (SELECT record FROM _damaged_profiles)
    )
    GROUP BY trace_id, worker
),
machine_cores AS (
    SELECT
        trace_id,
        worker,
        -- Of a host with equal workers.
        max(least(cgroup_cores, usable_cores) / len(workers)) AS cores
    FROM (SELECT *, unnest(workers) AS worker FROM machines WHERE process = 'worker')
    GROUP BY trace_id, worker
),
threads AS (
    SELECT trace_id, worker, max(nthreads) AS nthreads
    FROM _workers
    GROUP BY trace_id, worker
),
by_worker AS (
    SELECT
        waits.trace_id,
        waits.worker,
        is_shared,
        threads.nthreads,
        -- Number of processes that could compute at the same time in place of this one.
        least(greatest(coalesce(machine_cores.cores, nthreads), 1), nthreads) AS processes,
        sum(waits.seconds) AS wait_seconds,
        any_value(profiles.seconds) AS seconds,
        greatest(any_value(profiles.seconds) / nthreads - (any_value(profiles.seconds) - wait_seconds) / processes, 0)
            AS saved_seconds
    FROM waits
    INNER JOIN profiles USING (trace_id, worker)
    INNER JOIN threads USING (trace_id, worker)
    LEFT JOIN machine_cores USING (trace_id, worker)
    GROUP BY waits.trace_id, waits.worker, is_shared, nthreads, machine_cores.cores
    HAVING wait_seconds >= $min_lock_share * any_value(profiles.seconds)
),
totals AS (
    SELECT
        trace_id,
        is_shared,
        count(*) AS workers,
        min(nthreads) AS min_nthreads,
        max(nthreads) AS max_nthreads,
        sum(wait_seconds) AS wait_seconds,
        sum(seconds) AS seconds,
        -- Workers save at the same time.
        avg(saved_seconds) AS saved_seconds,
        sum(processes) AS processes
    FROM by_worker
    GROUP BY trace_id, is_shared
    HAVING sum(wait_seconds) >= $min_seconds
),
places AS (
    SELECT
        trace_id,
        is_shared,
        arg_max(frame, seconds) AS frame,
        arg_max(caller, seconds) AS caller
    FROM (
        SELECT trace_id, is_shared, frame, caller, sum(seconds) AS seconds
        FROM waits
        GROUP BY ALL
    )
    GROUP BY trace_id, is_shared
),
prefixes AS (
    SELECT trace_id, is_shared, prefix
    FROM waits
    GROUP BY trace_id, is_shared, prefix
    QUALIFY sum(seconds) >= $entity_share * sum(sum(seconds)) OVER (PARTITION BY trace_id, is_shared)
)
SELECT
    prefixes.prefix AS entity,
    CASE WHEN is_shared OR max_nthreads = 1 THEN 'medium' ELSE 'high' END AS confidence,
    format(
        'For {:.1f} of {:.1f} sampled seconds, tasks wait for a lock in {}{}.',
        wait_seconds, seconds, _frame_place(frame),
        coalesce(format(', called by {}', caller.name), '')
    ) AS sentence,
    wait_seconds AS core_seconds,
    CASE WHEN NOT is_shared AND max_nthreads > 1 AND saved_seconds > 0 THEN 0.5 * saved_seconds END AS wall_seconds_min,
    CASE
        WHEN NOT is_shared AND max_nthreads > 1 AND saved_seconds > 0
            THEN least(1.5 * saved_seconds, cluster.stop_t - cluster.start_t)
    END AS wall_seconds_max,
    CASE
        WHEN is_shared AND trace_id IN (SELECT trace_id FROM _worker_removals WHERE is_lost)
            THEN 'A worker was lost during the run: if it held the lock, others wait until it is released. Check that a'
                ' lock is not held when its task ends otherwise, and wait with a timeout; else hold it for less time.'
        WHEN is_shared
            THEN 'Hold the lock for less time, or use a lock for each file or resource: more workers do not help,'
            ' since they share it.'
        WHEN max_nthreads = 1
            THEN 'Find out which other thread of the worker holds the lock.'
        WHEN saved_seconds = 0
            THEN 'Hold the lock for less time: the hosts have too few cores for more processes to gain.'
        ELSE format(
            'Use more workers with fewer threads, such as {} with 1 (now {} with {}): threads of other processes do not'
            ' wait for the lock of a process. If all workers share it, hold it for less time.',
            round(totals.processes)::BIGINT, totals.workers,
            CASE WHEN min_nthreads = max_nthreads THEN max_nthreads::VARCHAR
                ELSE format('{} to {}', min_nthreads, max_nthreads) END
        )
    END AS change,
    format(
        'SELECT prefix, stack[-4:] AS innermost, sum(seconds) AS seconds FROM profile_stacks WHERE list_contains('
        '[split_part(label, '' ('', 1) FOR label IN stack], ''{}'') GROUP BY ALL ORDER BY seconds DESC LIMIT 20',
        replace(frame.name, '''', '''''')
    ) AS evidence,
    trace_id
FROM totals
INNER JOIN places USING (trace_id, is_shared)
INNER JOIN _cluster_size AS cluster USING (trace_id)
LEFT JOIN prefixes USING (trace_id, is_shared);
