-- Hosts without free cores for tasks.
-- There are three causes. Cores: no core of the host was free, threads of a worker were ready and
-- waited for one, and processes that are not the run's used cores. A run that uses all cores by itself
-- is healthy, but more threads than cores gain nothing, which is stated without a saving (threads). The lost time is that in which threads waited, as in the worker that sampled the host,
-- at most what other processes used, and at most what computing threads lacked within the quota.
-- Quota: the control group had used up its quota while more threads computed than it allows; the lost
-- time is that for which it was throttled, at most what threads lacked. A higher quota saves time only
-- on free cores.
-- Records: host_sample
-- Source: /proc/stat, schedstat and cpu.stat of Linux (view host_samples); CPU use of workers and scheduler
-- Documentation: https://docs.kernel.org/accounting/psi.html
-- $min_share = 0.1: lost time relative to the time of threads that computed on the host
-- $min_time_share = 0.25: share of the sampled time with tasks in which the host was starved
-- $min_waiting_share = 0.2: share of the time in which tasks could have used a core and waited for one
-- $min_other_share = 0.1: CPU use of other processes, relative to the cores
-- $min_threads_ratio = 1.5: threads that compute, relative to the cores, from which they are stated
-- $least_saved = 0.4: part of the lost time, on all threads, that is saved at least; assumed
-- $most_saved = 1.0: ratio of the largest saving to the lost time; assumed
WITH losses AS (
    SELECT
        *,
        is_full
        AND waiting_share >= $min_waiting_share
        AND all_waiting_threads IS NOT NULL
        AND coalesce(other_cores >= greatest(0.25, $min_other_share * affinity_cores), false) AS is_crowded,
        least(
            all_waiting_threads, other_cores, greatest(least(executing, cgroup_cores) - own_cores, 0)
        ) AS crowded_cores,
        least(throttled_seconds / seconds, executing - coalesce(cgroup_busy_cores, own_cores)) AS throttled_cores
    FROM _host_use
    WHERE executing > 0
),
causes AS (
    SELECT
        trace_id,
        host,
        sampled_host,
        cause,
        work_seconds,
        executing,
        cause_holds,
        lost_cores,
        affinity_cores AS cores,
        free_cores,
        cgroup_cores,
        own_cores,
        other_cores,
        waiting_share,
        throttled_share
    FROM (
        SELECT *, 'cores' AS cause, is_crowded AS cause_holds, crowded_cores AS lost_cores FROM losses
        UNION ALL BY NAME
        SELECT *, 'quota' AS cause, is_throttled AS cause_holds, throttled_cores AS lost_cores FROM losses
        UNION ALL BY NAME
        SELECT
            *,
            'threads' AS cause,
            is_full
            AND waiting_share >= $min_waiting_share
            AND NOT is_crowded
            AND executing >= $min_threads_ratio * affinity_cores AS cause_holds,
            NULL AS lost_cores
        FROM losses
    )
),
hosts AS (
    SELECT
        trace_id,
        host,
        cause,
        any_value(sampled_host) AS sampled_host,
        sum(work_seconds) AS seconds,
        sum(work_seconds * executing) AS computing_seconds,
        coalesce(sum(work_seconds) FILTER (cause_holds), 0) AS starved_seconds,
        sum(work_seconds * lost_cores) FILTER (cause_holds) AS lost_seconds,
        cause = 'cores' OR coalesce(
            sum(work_seconds * least(lost_cores, free_cores)) FILTER (cause_holds) >= 0.5 * lost_seconds, false
        ) AS has_free_cores,
        max(cores) AS cores,
        max(cgroup_cores) AS cgroup_cores,
        -- While it was starved.
        sum(work_seconds * own_cores) FILTER (cause_holds) / starved_seconds AS own_cores,
        sum(work_seconds * other_cores) FILTER (cause_holds) / starved_seconds AS other_cores,
        sum(work_seconds * executing) FILTER (cause_holds) / starved_seconds AS threads,
        sum(work_seconds * waiting_share) FILTER (cause_holds) / starved_seconds AS waiting_share,
        sum(work_seconds * throttled_share) FILTER (cause_holds) / starved_seconds AS throttled_share
    FROM causes
    GROUP BY trace_id, host, cause
    HAVING starved_seconds >= $min_time_share * sum(work_seconds)
        AND coalesce(lost_seconds >= $min_share * computing_seconds, cause = 'threads')
)
SELECT
    host AS entity,
    'medium' AS confidence,
    CASE cause
        WHEN 'cores' THEN format(
            'No core of host {} was free for {:.0f} % of the sampled time with tasks. Then, processes of this run used'
            ' {:.1f} of {} cores, and others {:.1f}. Tasks of a worker that could have used a core waited for one for'
            ' {:.0f} % of that time.{}',
            host, 100 * starved_seconds / seconds, own_cores, cores, other_cores, 100 * waiting_share,
            if(has_many_threads, format(' {:.1f} threads of tasks computed at a time.', threads), '')
        )
        WHEN 'threads' THEN format(
            '{:.1f} threads of tasks computed at a time on host {}, which has {} cores, for {:.0f} % of the sampled time with'
            ' tasks. Threads that could have used a core waited for one for {:.0f} % of that time.',
            threads, host, cores, 100 * starved_seconds / seconds, 100 * waiting_share
        )
        ELSE format(
            'The control group of the workers on host {} had used up its quota of {:.2g} cores in {:.0f} % of the'
            ' periods, for {:.0f} % of the sampled time with tasks. Then, {:.1f} threads computed at a time.',
            host, cgroup_cores, 100 * throttled_share, 100 * starved_seconds / seconds, threads
        )
    END AS sentence,
    lost_seconds AS core_seconds,
    CASE WHEN has_free_cores THEN $least_saved * lost_seconds / mean_nthreads END AS wall_seconds_min,
    CASE WHEN has_free_cores THEN $most_saved * lost_seconds / mean_nthreads END AS wall_seconds_max,
    CASE
        WHEN cause = 'threads' OR has_many_threads THEN format(
            'Start at most as many threads of workers on host {} as it has cores{}: more of them do not compute more.{}',
            host, if(has_jobs, ', and request as many cores for a job as its workers have threads', ''),
            if(cause = 'cores', ' Check which other processes use the cores (top).', '')
        )
        WHEN cause = 'cores' THEN format(
            'Check which processes use the cores of host {} (top): if they are other programs, use another host, or'
            ' request cores for this run alone; if tasks start them, run fewer threads of Dask there.', host
        )
        WHEN threads > 1.1 * cgroup_cores THEN format(
            'Raise the CPU limit of the container or job on host {} ({:.2g} cores) to the number of threads{}, or run'
            ' fewer threads there: they would compute as much.',
            host, cgroup_cores, if(has_free_cores, '', ', on a host with free cores')
        )
        ELSE format(
            'Limit the threads that libraries start, such as by OMP_NUM_THREADS=1, or raise the CPU limit of the'
            ' container or job on host {} ({:.2g} cores).', host, cgroup_cores
        )
    END AS change,
    format(
        'SELECT t, cpu_percent, free_percent, waiting_percent, throttled_percent, cpu_pressure_percent'
        ' FROM host_samples WHERE host = ''{}'' ORDER BY t', replace(sampled_host, '''', '''''')
    ) AS evidence,
    trace_id
FROM (
    SELECT *, cause = 'cores' AND threads >= $min_threads_ratio * cores AS has_many_threads
    FROM hosts
)
INNER JOIN _run_size USING (trace_id)
INNER JOIN _run_settings USING (trace_id)
-- The same threads can wait beside other processes at some times.
QUALIFY cause <> 'threads' OR count(*) FILTER (cause = 'cores') OVER (PARTITION BY trace_id, host) = 0;
