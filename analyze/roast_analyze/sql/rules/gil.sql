-- Threads waiting for the GIL or for cores.
-- Threads of one worker that compute in Python take turns holding the GIL: the process uses about one
-- core, however many threads it has. Threads that libraries start themselves compete for cores with
-- those of other workers: the process uses more CPU time than its tasks, whose own threads wait. On a
-- busy machine the CPU use is lower, but the event loop stalls whenever it does not get the lock. A call
-- into a library can hold the lock without using the CPU: then the profiler, which runs in the event
-- loop, misses many of its samples. If stalls of the event loop explain the missing samples, whatever
-- blocks the loop is an equally likely cause (rule blocked-event-loop). The time to open and read chunks
-- is left out. A saving of wall time is limited by the cores of the host, unless such calls hold the
-- lock: with only one core per process, waiting for the GIL cannot be distinguished from waiting for a
-- core, and more processes save nothing, so the finding is a remark.
-- Records: worker_sample
-- Source: CPU time of task threads (fine metrics) and of processes (samples of workers), number of profile samples
-- Documentation: https://docs.dask.org/en/stable/best-practices.html#processes-and-threads
-- $min_wait_share = 0.35: share of compute time in which threads use no CPU, without opening and reading
-- $min_cores = 0.6: lowest mean CPU use, in cores, of a process whose threads take turns
-- $max_cores = 1.3: highest mean CPU use
-- $min_stall_share = 0.1: stalls of the event loop relative to the time of the run, if CPU use is lower
-- $min_task_cpu_share = 0.05: CPU time of tasks relative to compute time in this case
-- $max_sampled_share = 0.8: sampled relative to compute time, if calls hold the lock without using the CPU
-- $max_stalled_sampled_share = 0.5: the same, if the event loop stalls
-- $max_explained_share = 0.85: sampled share plus stalls, above which stalls explain the missing samples
-- $min_hidden_share = 0.4: share of a process's CPU time outside of its task threads
-- $min_core_use = 0.6: CPU use of a process relative to its share of the host's cores, if libraries have threads
-- $min_cpu_share = 0.1: CPU time of processes relative to compute time, if libraries have threads
-- $entity_share = 0.6: share of the waiting that makes a prefix the entity
-- $own_cores = 0.1: CPU use of a worker apart from its tasks, in cores, which is subtracted
-- $min_busy_share = 0.5: compute time relative to thread time in this case; else Dask itself uses the CPU
WITH slices AS (
    SELECT trace_id, worker, prefix, interval_seconds, unnest(tree.slices) AS slice
    FROM raw.profile
    WHERE worker IS NOT NULL AND rowid NOT IN (SELECT record FROM _damaged_profiles)
),
-- Coroutines run in the event loop, which is not sampled.
profiled AS (SELECT DISTINCT trace_id, prefix, true AS is_profiled FROM slices),
threads AS (
    SELECT
        trace_id,
        worker,
        sum(delta) FILTER (activity = 'thread-cpu') AS cpu_seconds,
        sum(delta) FILTER (activity IN ('thread-cpu', 'thread-noncpu')) AS seconds,
        sum(delta) FILTER (activity IN ('thread-cpu', 'thread-noncpu') AND is_profiled)
            AS profiled_seconds
    FROM _activity_deltas
    LEFT JOIN profiled USING (trace_id, prefix)
    WHERE unit = 'seconds' AND context = 'execute'
    GROUP BY trace_id, worker
),
-- The prefix whose threads wait.
prefixes AS (
    SELECT trace_id, prefix
    FROM _activity_deltas
    WHERE unit = 'seconds' AND context = 'execute' AND activity = 'thread-noncpu'
    GROUP BY trace_id, prefix
    QUALIFY sum(delta) >= $entity_share * sum(sum(delta)) OVER (PARTITION BY trace_id)
),
inputs AS (
    SELECT trace_id, worker, sum(coalesce(open_seconds, 0) + coalesce(read_seconds, 0)) AS seconds
    FROM _chunks
    GROUP BY ALL
),
samples AS (
    SELECT
        trace_id,
        worker,
        avg(metrics.cpu) / 100 AS mean_cores,
        avg(metrics.cpu) FILTER (executing > 0) / 100 AS cores,
        any_value(nthreads) AS nthreads
    FROM raw.worker_sample
    GROUP BY ALL
),
profiles AS (
    SELECT trace_id, worker, sum(interval_seconds * slice.counts[list_position(slice.nodes, 0)]) AS seconds
    FROM slices
    GROUP BY ALL
),
stalls AS (
    SELECT trace_id, worker, sum(stop_t - start_t) AS seconds FROM raw.stall GROUP BY ALL
),
presence AS (
    SELECT
        workers.trace_id,
        workers.worker,
        min(presence.from_t) AS from_t,
        max(presence.to_t) AS to_t,
        sum(presence.to_t - presence.from_t) AS seconds
    FROM _worker_presence AS presence
    INNER JOIN _workers AS workers USING (process)
    GROUP BY ALL
),
hosts AS (
    -- Several processes can have the same address.
    SELECT trace_id, worker, max(host) AS host, max(cores) AS cores
    FROM (
        SELECT trace_id, host, least(cgroup_cores, usable_cores) AS cores, unnest(workers) AS worker
        FROM machines
        WHERE process = 'worker'
    )
    GROUP BY trace_id, worker
),
by_host AS (
    -- Of the workers that were there at the same time, on average.
    SELECT
        hosts.*,
        cores * (max(to_t) OVER same - min(from_t) OVER same) / sum(seconds) OVER same AS worker_cores
    FROM hosts
    INNER JOIN presence USING (trace_id, worker)
    WINDOW same AS (PARTITION BY trace_id, host)
),
by_worker AS (
    SELECT
        threads.trace_id,
        threads.worker,
        threads.cpu_seconds,
        threads.seconds,
        threads.profiled_seconds,
        greatest(threads.seconds - threads.cpu_seconds - coalesce(inputs.seconds, 0), 0)
            AS wait_seconds,
        samples.cores,
        samples.nthreads,
        profiles.seconds AS sampled_seconds,
        coalesce(stalls.seconds, 0) / presence.seconds AS stall_share,
        greatest(samples.mean_cores - $own_cores, 0) * presence.seconds AS process_cpu_seconds,
        samples.nthreads * presence.seconds AS thread_seconds,
        -- Number of processes that could compute at the same time in place of this one.
        least(coalesce(by_host.worker_cores, samples.nthreads), samples.nthreads) AS processes,
        by_host.worker_cores
    FROM threads
    INNER JOIN samples USING (trace_id, worker)
    INNER JOIN presence USING (trace_id, worker)
    LEFT JOIN inputs USING (trace_id, worker)
    LEFT JOIN stalls USING (trace_id, worker)
    LEFT JOIN profiles USING (trace_id, worker)
    LEFT JOIN by_host USING (trace_id, worker)
),
totals AS (
    SELECT
        trace_id,
        count(*) AS workers,
        max(nthreads) AS nthreads,
        sum(seconds) AS seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(wait_seconds) AS wait_seconds,
        sum(process_cpu_seconds) AS process_cpu_seconds,
        sum(thread_seconds) AS thread_seconds,
        avg(cores) AS cores,
        avg(stall_share) AS stall_share,
        avg(processes) AS core_processes,
        avg(worker_cores) AS worker_cores,
        -- The profiles of a lost worker can be missing.
        sum(sampled_seconds)
            / nullif(sum(profiled_seconds) FILTER (sampled_seconds IS NOT NULL), 0) AS sampled_share,
        sum(wait_seconds) / nullif(sum(seconds), 0) AS wait_share
    FROM by_worker
    GROUP BY trace_id
),
judged AS (
    SELECT
        totals.* EXCLUDE (workers),
        -- A worker and its replacement count once.
        least(totals.workers, cluster.peak_workers) AS workers,
        cluster.peak_nthreads,
        cluster.stop_t - cluster.start_t AS wall_seconds,
        cores BETWEEN $min_cores AND $max_cores AS is_one_core,
        -- Calls that use no CPU need no cores.
        coalesce(
            nthreads > 1
            AND cores < $min_cores
            AND CASE
                WHEN stall_share >= $min_stall_share THEN sampled_share <= $max_stalled_sampled_share
                -- On a busy machine, the profiler waits for a core.
                ELSE sampled_share <= $max_sampled_share AND cpu_seconds < $min_task_cpu_share * seconds
            END,
            false
        ) AS is_held,
        is_held AND stall_share >= $min_stall_share AND sampled_share + stall_share > $max_explained_share
            AS is_explained,
        CASE WHEN is_held THEN nthreads ELSE core_processes END AS processes,
        nthreads > 1 AND processes > 1.1 AND (
            is_held OR is_one_core OR (
                cores < $min_cores
                AND stall_share >= $min_stall_share
                AND cpu_seconds >= $min_task_cpu_share * seconds
            )
        ) AS is_gil,
        process_cpu_seconds - cpu_seconds >= $min_hidden_share * process_cpu_seconds
        AND process_cpu_seconds >= $min_cpu_share * seconds
        -- Threads wait for a core only if all cores are in use.
        AND coalesce(cores >= $min_core_use * worker_cores, true)
        AND seconds >= $min_busy_share * thread_seconds AS has_other_threads,
        -- At most one process per core computes at a time.
        CASE
            WHEN is_gil THEN seconds / cluster.peak_nthreads * (1 - 1 / processes)
            WHEN has_other_threads THEN wait_seconds / cluster.peak_nthreads
        END AS saved_seconds
    FROM totals
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    WHERE wait_share >= $min_wait_share
        AND (is_gil OR has_other_threads OR (is_one_core AND nthreads > 1))
)
SELECT
    prefixes.prefix AS entity,
    CASE
        WHEN is_explained THEN 'low'
        WHEN is_gil AND is_one_core THEN 'high'
        WHEN is_gil OR has_other_threads THEN 'medium'
        ELSE 'low'
    END AS confidence,
    CASE
        WHEN is_explained
            THEN format(
                'Threads of workers with {} threads wait for {:.0f} % of their time, and the profiler took only'
                ' {:.0f} % of its samples: calls into a library hold the GIL, or the event loops are blocked.',
                nthreads, 100 * wait_share, 100 * sampled_share
            )
        WHEN is_held
            THEN format(
                'Calls into a library hold the GIL: threads of workers with {} threads wait for {:.0f} % of their'
                ' time. The profiler, which needs the GIL, took only {:.0f} % of its samples.', nthreads,
                100 * wait_share, 100 * sampled_share
            )
        WHEN is_gil
            THEN format(
                'Workers with {} threads use {:.1f} cores while they compute: threads spend {:.0f} % of the'
                ' time waiting for the GIL.', nthreads, cores, 100 * wait_share
            )
        WHEN has_other_threads THEN format(
            'Task threads use a core for {:.0f} % of their time, while their processes use {:.1f} times as much'
            ' CPU time: libraries have threads of their own, which compete for cores.',
            100 * cpu_seconds / seconds, process_cpu_seconds / cpu_seconds
        )
        ELSE format(
            'Workers with {} threads use {:.1f} cores while they compute, and their hosts have {:.1f} cores for'
            ' each worker: threads spend {:.0f} % of the time waiting for the GIL or for a core.', nthreads, cores, processes,
            100 * wait_share
        )
    END AS sentence,
    saved_seconds * peak_nthreads AS core_seconds,
    0.4 * saved_seconds AS wall_seconds_min,
    -- least() ignores nulls, and an unknown saving must stay null.
    CASE WHEN saved_seconds IS NOT NULL THEN least(1.6 * saved_seconds, wall_seconds) END
        AS wall_seconds_max,
    CASE
        WHEN is_gil
            THEN format(
                'Use {} workers with 1 thread (now {} with {}), or code that releases the GIL.',
                round(workers * processes)::BIGINT, workers, nthreads
            )
        WHEN has_other_threads THEN 'Set OMP_NUM_THREADS, OPENBLAS_NUM_THREADS and MKL_NUM_THREADS of workers to 1, in'
            ' distributed.nanny.pre-spawn-environ.'
        ELSE 'Replace loops in Python with array functions, or use more cores: further workers on these hosts'
            ' gain nothing.'
    END AS change,
    'SELECT worker, prefix, seconds, cpu_seconds, noncpu_seconds FROM activities WHERE context = ''execute'''
        AS evidence,
    judged.trace_id
FROM judged
LEFT JOIN prefixes ON judged.trace_id = prefixes.trace_id;
