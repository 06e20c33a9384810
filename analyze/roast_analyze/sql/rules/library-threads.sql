-- Threads of libraries that share few cores.
-- Libraries such as BLAS start threads of their own in each process, by default one for each core. With several
-- processes or threads of Dask on a host, there are many times more threads than cores. Found if no core of the host
-- was free, and threads of libraries that were ready waited for one, in the worker that sampled the host; others
-- on the host are assumed to have as many. The run is not slower by a known time, since the threads do the same work in
-- turns.
-- Records: host_sample
-- Source: /proc/self/task and schedstat of Linux (view host_samples)
-- Documentation: https://docs.dask.org/en/stable/array-best-practices.html#avoid-oversubscribing-threads
-- $min_time_share = 0.25: share of the sampled time with tasks in which it was so
-- $min_waiting_threads = 0.5: threads of libraries in the worker that were ready and waited for a core
-- $min_waiting_share = 0.2: share of the time in which these threads could have used a core and waited for one
-- $min_ratio = 2: ready or computing threads of libraries and tasks in all workers of the host, relative to its cores
WITH intervals AS (
    SELECT
        use.*,
        workers.workers,
        -- As many in other workers that computed as in this one.
        greatest(executing / nullif(sampler_executing, 0), 1) AS processes,
        native_cores + native_waiting_threads AS ready_threads,
        coalesce(
            is_full
            AND native_waiting_threads >= greatest($min_waiting_threads, $min_waiting_share * ready_threads)
            AND processes * ready_threads + executing >= $min_ratio * affinity_cores,
            false
        ) AS holds
    FROM _host_use AS use
    INNER JOIN (
        SELECT trace_id, host, count(DISTINCT worker) AS workers
        FROM _process_hosts
        WHERE worker IS NOT NULL
        GROUP BY trace_id, host
    ) AS workers USING (trace_id, host)
    WHERE executing > 0 AND worker IS NOT NULL
),
hosts AS (
    SELECT
        trace_id,
        host,
        any_value(sampled_host) AS sampled_host,
        max(workers) AS workers,
        max(affinity_cores) AS cores,
        max(native_threads) FILTER (holds) AS native_threads,
        sum(work_seconds) FILTER (holds) AS held_seconds,
        held_seconds / sum(work_seconds) AS time_share,
        sum(work_seconds * ready_threads) FILTER (holds) / held_seconds AS ready_threads,
        sum(work_seconds * (processes * ready_threads + executing)) FILTER (holds) / held_seconds AS all_threads,
        sum(work_seconds * native_waiting_threads) FILTER (holds)
            / sum(work_seconds * ready_threads) FILTER (holds) AS waiting_share
    FROM intervals
    GROUP BY trace_id, host
    HAVING time_share >= $min_time_share
)
SELECT
    host AS entity,
    'medium' AS confidence,
    format(
        'Libraries had started {} threads in a worker on host {}, which has {} cores and {}. For {:.0f} % of the sampled'
        ' time with tasks, no core was free, and {:.1f} of these threads were ready at a time, of which {:.0f} % waited'
        ' for a core. If the other workers had as many, there were {:.1f} ready threads of libraries and tasks.',
        native_threads, host, cores, if(workers = 1, 'one worker', workers || ' workers'), 100 * time_share,
        ready_threads, 100 * waiting_share, all_threads
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    'Limit the threads of libraries in each worker, such that there are no more than cores for all: set'
    ' OMP_NUM_THREADS=1, OPENBLAS_NUM_THREADS=1 and MKL_NUM_THREADS=1 before the workers start (Dask''s nannies do so'
    ' unless distributed.nanny.pre-spawn-environ is changed), or run fewer workers.' AS change,
    format(
        'SELECT t, worker, cpu_percent, native_threads, native_cpu_percent, native_waiting_percent'
        ' FROM host_samples WHERE host = ''{}'' ORDER BY t', replace(sampled_host, '''', '''''')
    ) AS evidence,
    trace_id
FROM hosts;
