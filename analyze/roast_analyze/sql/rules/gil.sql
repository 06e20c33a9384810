-- Threads waiting for the GIL or for cores.
-- Threads of one worker that compute in Python take turns holding the GIL, and so does its event loop,
-- which then skips ticks while several tasks run. The interval of the loop is compared with those of
-- other processes on its host, which a lack of cores would delay as well. Few samples of the profiler,
-- which needs the GIL as well, prove nothing: on a busy host they are late, too; if other processes are
-- punctual and threads hardly use the CPU, they are a sign, with a low confidence. If the stalls of
-- the loop explain all missing samples, code that blocks the loop is an equally likely cause (rule
-- blocked-event-loop). Threads that libraries start themselves compete for cores with those of other
-- workers: the process uses more CPU time than its tasks, whose own threads wait, and than it can have used for
-- transfers, which is at most their duration. The time to open and
-- read chunks, and time in which stacks show that a lock is acquired (rule lock-waits), is left out. A
-- saving of wall time is limited by the cores of the host, unless calls hold the GIL without using the
-- CPU: with only one core per process, more processes save nothing, so the finding is a remark.
-- Records: worker_sample
-- Applies: EXISTS (FROM _activity_deltas WHERE context = 'execute' AND activity = 'thread-noncpu')
-- Source: intervals of event loops, CPU time of task threads (fine metrics) and of processes (samples of workers)
-- Documentation: https://docs.dask.org/en/stable/best-practices.html#processes-and-threads
-- $min_wait_share = 0.35: share of the compute time without opening, reading and locks in which threads use no CPU
-- $min_lateness = 1.15: interval of the event loop while several tasks run, relative to that of other processes
-- $sure_lateness = 1.5: the same, if other processes are late as well or were not recorded
-- $max_quiet_seconds = 0.0203: interval of the loops of other processes, if too few samples of the profiler are a sign
-- $max_sampled_share = 0.8: sampled relative to compute time in this case
-- $max_task_cpu_share = 0.05: CPU time of tasks relative to compute time in this case
-- $min_samples = 2: samples of a worker with several tasks
-- $max_cores = 0.6: CPU use of a process, in cores, if calls hold the GIL without using the CPU
-- $min_stall_share = 0.1: stalls of the event loop relative to the time of the run, if they can explain missing samples
-- $max_explained_share = 0.85: sampled share of compute time plus stalls, above which stalls explain the missing samples
-- $min_hidden_share = 0.35: share of a process's CPU time outside of its task threads
-- $min_core_use = 0.6: CPU use of a process relative to its share of the host's cores, if libraries have threads
-- $min_cpu_share = 0.1: CPU time of processes relative to compute time, if libraries have threads
-- $entity_share = 0.6: share of the waiting that makes a prefix the entity
-- $own_cores = 0.1: CPU use of a worker apart from its tasks, in cores, which is subtracted
-- $min_busy_share = 0.5: compute time relative to thread time in this case; else Dask itself uses the CPU
-- $least_saved = 0.4: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.6: ratio of the largest saving to the cost; calibrated as well
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
inputs AS (
    SELECT trace_id, worker, sum(coalesce(open_seconds, 0) + coalesce(read_seconds, 0)) AS seconds
    FROM _chunks
    GROUP BY ALL
),
locks AS (
    SELECT trace_id, worker, sum(seconds) AS seconds FROM _lock_waits GROUP BY ALL
),
samples AS (
    SELECT
        trace_id,
        worker,
        avg(metrics.cpu) / 100 AS mean_cores,
        avg(metrics.cpu) FILTER (executing > 0) / 100 AS cores,
        count(*) FILTER (executing > 1) AS shared_samples,
        any_value(nthreads) AS nthreads
    FROM raw.worker_sample
    GROUP BY ALL
),
-- The most punctual loop of a host. Threads of a process delay its own loop only.
hosts AS (
    SELECT trace_id, host, min(other_interval_seconds) AS interval_seconds
    FROM _loop_intervals
    WHERE host IS NOT NULL
        AND trace_id NOT IN (SELECT trace_id FROM _workers WHERE worker LIKE 'inproc://%')
    GROUP BY trace_id, host
),
loops AS (
    SELECT
        loop.trace_id,
        loop.worker,
        loop.threads_interval_seconds AS interval_seconds,
        hosts.interval_seconds AS host_seconds,
        coalesce(load.is_loaded, false) AS is_loaded
    FROM _loop_intervals AS loop
    LEFT JOIN hosts ON loop.trace_id = hosts.trace_id AND loop.host = hosts.host
    LEFT JOIN _host_load AS load ON loop.trace_id = load.trace_id AND loop.host = load.host
    WHERE loop.worker IS NOT NULL
),
transfers AS (
    SELECT trace_id, worker, sum(delta) AS seconds
    FROM _activity_deltas
    WHERE unit = 'seconds' AND context IN ('gather-dep', 'get-data')
    GROUP BY trace_id, worker
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
machine_cores AS (
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
        machine_cores.*,
        cores * (max(to_t) OVER same - min(from_t) OVER same) / sum(seconds) OVER same AS worker_cores
    FROM machine_cores
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
        greatest(threads.seconds - coalesce(inputs.seconds, 0) - coalesce(locks.seconds, 0), 0) AS other_seconds,
        greatest(other_seconds - threads.cpu_seconds, 0) AS wait_seconds,
        samples.cores,
        samples.nthreads,
        profiles.seconds AS sampled_seconds,
        coalesce(stalls.seconds, 0) / presence.seconds AS stall_share,
        greatest(
            (samples.mean_cores - $own_cores) * presence.seconds - coalesce(transfers.seconds, 0), 0
        ) AS process_cpu_seconds,
        by_host.worker_cores,
        loops.interval_seconds,
        loops.host_seconds,
        coalesce(loops.is_loaded, false) AS is_loaded,
        wait_seconds > 0 AND wait_seconds >= $min_wait_share * other_seconds AS has_waits,
        has_waits AND samples.nthreads > 1 AND coalesce(shared_samples >= $min_samples, false) AS can_share,
        can_share AND coalesce(
            loops.interval_seconds
            >= CASE WHEN host_seconds IS NULL OR is_loaded THEN $sure_lateness ELSE $min_lateness END
            * coalesce(host_seconds, 0.02),
            false
        ) AS is_late,
        -- A loop that is delayed for less than 20 ms at a time skips no ticks, but samples of the profiler.
        can_share AND NOT is_late AND coalesce(
            host_seconds <= $max_quiet_seconds
            AND sampled_seconds <= $max_sampled_share * profiled_seconds
            AND threads.cpu_seconds < $max_task_cpu_share * threads.seconds,
            false
        ) AS is_undersampled,
        is_late OR is_undersampled AS is_gil,
        coalesce(
            has_waits
            AND NOT is_gil
            AND process_cpu_seconds - threads.cpu_seconds >= $min_hidden_share * process_cpu_seconds
            AND process_cpu_seconds >= $min_cpu_share * threads.seconds
            -- Threads wait for a core only if all cores are in use.
            AND coalesce(samples.cores >= $min_core_use * by_host.worker_cores, true)
            AND threads.seconds >= $min_busy_share * samples.nthreads * presence.seconds,
            false
        ) AS has_other_threads,
        -- Number of processes that could compute at the same time in place of this one: at most one
        -- per core, unless calls hold the GIL without using the CPU.
        CASE
            WHEN samples.cores < $max_cores AND NOT is_loaded THEN samples.nthreads
            ELSE least(coalesce(by_host.worker_cores, samples.nthreads), samples.nthreads)
        END AS processes
    FROM threads
    INNER JOIN samples USING (trace_id, worker)
    INNER JOIN presence USING (trace_id, worker)
    LEFT JOIN inputs USING (trace_id, worker)
    LEFT JOIN locks USING (trace_id, worker)
    LEFT JOIN stalls USING (trace_id, worker)
    LEFT JOIN profiles USING (trace_id, worker)
    LEFT JOIN transfers USING (trace_id, worker)
    LEFT JOIN by_host USING (trace_id, worker)
    LEFT JOIN loops USING (trace_id, worker)
),
-- The prefix whose threads wait: with the GIL, time in which they were not sampled.
spent AS (
    SELECT delta.trace_id, is_gil, delta.worker, delta.prefix, sum(delta) AS seconds
    FROM _activity_deltas AS delta
    INNER JOIN by_worker USING (trace_id, worker)
    WHERE unit = 'seconds' AND context = 'execute' AND activity = 'thread-noncpu'
        AND (is_gil OR has_other_threads)
    GROUP BY ALL
),
prefixes AS (
    SELECT
        spent.trace_id,
        is_gil,
        spent.prefix,
        sum(CASE
            WHEN NOT is_gil THEN spent.seconds
            WHEN is_profiled OR spent.trace_id NOT IN (SELECT trace_id FROM profiled)
                THEN greatest(spent.seconds - coalesce(sampled.seconds, 0), 0)
            ELSE 0
        END) AS seconds
    FROM spent
    LEFT JOIN profiled USING (trace_id, prefix)
    LEFT JOIN (
        SELECT trace_id, worker, prefix, sum(interval_seconds * slice.counts[list_position(slice.nodes, 0)]) AS seconds
        FROM slices
        GROUP BY ALL
    ) AS sampled USING (trace_id, worker, prefix)
    GROUP BY spent.trace_id, is_gil, spent.prefix
),
named AS (
    SELECT trace_id, is_gil, prefix
    FROM prefixes
    WHERE seconds > 0
    QUALIFY seconds >= $entity_share * sum(seconds) OVER (PARTITION BY trace_id, is_gil)
),
totals AS (
    SELECT
        by_worker.trace_id,
        is_gil,
        -- A worker and its replacement count once.
        least(count(*), cluster.peak_workers) AS workers,
        cluster.peak_workers,
        cluster.peak_nthreads,
        cluster.stop_t - cluster.start_t AS wall_seconds,
        CASE WHEN min(nthreads) = max(nthreads) THEN format('{}', max(nthreads))
            ELSE format('{} to {}', min(nthreads), max(nthreads)) END AS nthreads,
        sum(seconds) AS seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(process_cpu_seconds) AS process_cpu_seconds,
        avg(cores) AS cores,
        avg(stall_share) AS stall_share,
        avg(processes) AS processes,
        median(interval_seconds) AS interval_seconds,
        median(host_seconds) AS host_seconds,
        bool_or(is_loaded) AS is_loaded,
        bool_or(is_late) AS is_late,
        -- The profiles of a lost worker can be missing.
        sum(sampled_seconds)
            / nullif(sum(profiled_seconds) FILTER (sampled_seconds IS NOT NULL), 0) AS sampled_share,
        CASE
            WHEN NOT is_gil THEN sum(wait_seconds) / cluster.peak_nthreads
            WHEN avg(processes) > 1.1
                THEN sum(seconds * (1 - 1 / greatest(processes, 1))) / cluster.peak_nthreads
        END AS saved_seconds
    FROM by_worker
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    WHERE is_gil OR has_other_threads
    GROUP BY
        by_worker.trace_id, is_gil, cluster.peak_workers, cluster.peak_nthreads, cluster.start_t, cluster.stop_t
),
judged AS (
    SELECT
        *,
        coalesce(
            is_gil AND stall_share >= $min_stall_share AND sampled_share + stall_share > $max_explained_share, false
        ) AS is_explained,
        is_late AND NOT is_explained AND host_seconds IS NOT NULL AS is_sure
    FROM totals
)
SELECT
    named.prefix AS entity,
    CASE
        WHEN saved_seconds IS NULL OR (is_gil AND NOT is_sure) THEN 'low'
        WHEN NOT is_gil OR is_loaded OR cores < $max_cores THEN 'medium'
        ELSE 'high'
    END AS confidence,
    CASE
        WHEN is_gil AND NOT is_late THEN format(
            'The profiler took only {:.0f} % of its samples of workers with {} threads, although other processes of'
            ' the host ran on time: calls hold the GIL for short times, or other code delays the event loops. Threads'
            ' are on the CPU for {:.0f} % of their time; whether they wait for the GIL is not recorded.',
            100 * sampled_share, nthreads, 100 * cpu_seconds / seconds
        )
        WHEN is_gil THEN format(
            'While workers with {} threads compute, they use {:.1f} cores, and their event loops run every'
            ' {:.0f} ms ({}): {}. Threads are on the CPU for {:.0f} % of their time.',
            nthreads, cores, 1000 * interval_seconds,
            CASE
                WHEN host_seconds IS NULL THEN '20 ms if nothing delays them'
                ELSE format('other processes of the host every {:.0f} ms', 1000 * host_seconds)
            END,
            CASE
                WHEN host_seconds IS NULL
                    THEN 'threads take turns holding the GIL, or the host, of which no other process was recorded,'
                    ' lacks cores'
                WHEN is_explained THEN 'calls hold the GIL, or code blocks the event loops'
                ELSE 'threads take turns holding the GIL'
            END || CASE WHEN is_loaded THEN ', and the host lacks cores' ELSE '' END,
            100 * cpu_seconds / seconds
        )
        ELSE format(
            'Task threads use a core for {:.0f} % of their time, while their processes use {:.1f} times as much'
            ' CPU time: libraries have threads of their own, which compete for cores.',
            100 * cpu_seconds / seconds, process_cpu_seconds / cpu_seconds
        )
    END AS sentence,
    saved_seconds * peak_nthreads AS core_seconds,
    $least_saved * saved_seconds AS wall_seconds_min,
    -- least() ignores nulls, and an unknown saving must stay null.
    CASE WHEN saved_seconds IS NOT NULL THEN least($most_saved * saved_seconds, wall_seconds) END
        AS wall_seconds_max,
    CASE
        WHEN NOT is_gil THEN 'Set OMP_NUM_THREADS, OPENBLAS_NUM_THREADS and MKL_NUM_THREADS of workers to 1, in'
            ' distributed.nanny.pre-spawn-environ.'
        WHEN saved_seconds IS NULL
            THEN 'Replace loops in Python with array functions, or use more cores: further workers on these hosts'
            ' gain nothing.'
        ELSE format(
            '{} {} workers with 1 thread (now {} with {}), or code that releases the GIL.{}',
            CASE WHEN is_sure THEN 'Use' ELSE 'If calls hold the GIL, use' END,
            round(workers * processes)::BIGINT,
            CASE WHEN workers < peak_workers THEN format('{} of {} workers', workers, peak_workers)
                ELSE workers::VARCHAR END,
            nthreads,
            CASE WHEN is_sure OR host_seconds IS NULL THEN '' ELSE ' If code blocks the event loops, move it to tasks or threads.' END
        )
    END AS change,
    CASE
        WHEN is_gil
            THEN 'SELECT worker, nthreads, executing, median(event_loop_interval_seconds) AS interval_seconds'
            ' FROM worker_samples GROUP BY ALL ORDER BY worker, executing'
        ELSE 'SELECT worker, prefix, seconds, cpu_seconds, noncpu_seconds FROM activities WHERE context = ''execute'''
    END AS evidence,
    trace_id
FROM judged
LEFT JOIN named USING (trace_id, is_gil);
