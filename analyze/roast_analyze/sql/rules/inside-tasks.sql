-- Work inside tasks.
-- Kinds of work of view busy_time, by prefix, of which it is known what can be changed. Loops, sleep, waits for the
-- network, other programs and pickling can be what the tasks are for: of these, the share is stated without a
-- saving. Locks, compression, and waits for the GIL or a core have rules of their own, and so does storage that
-- chunks are read from. Samples of prefixes of which tasks had seceded at that time are left out: they need not be of
-- tasks that occupied a thread (rule seceded-tasks). Programs that tasks start share the cores of the host with the threads of Dask: how many cores
-- other processes than those of the run used is stated beside them.
-- Records: profile
-- Source: kinds of work by functions on the stacks of the profiler
-- Documentation: https://docs.dask.org/en/stable/best-practices.html
-- $min_share = 0.2: share of the sampled compute time of the prefix
-- $min_run_share = 0.05: share of the compute time of the run
-- $min_samples = 20: samples in which tasks of the prefix did so
-- $certain_samples = 100: samples from which the share is certain
-- $detail_share = 0.1: share of this time from which a function is named with its seconds
-- $whole_share = 0.99: share of this time from which a function is named without its seconds
-- $waiting_share = 0.1: share of this time in which the tasks waited for the GIL or a core that is stated
-- $min_full_share = 0.5: share of the sampled time of a host without free cores that is stated beside other programs
-- $least_saved = 0.25: part of this time, on all threads, that is saved at least; assumed
-- $most_saved = 1.0: part of this time, on all threads, that is saved at most; assumed
WITH meanings AS (
    FROM (VALUES
        (
            'JIT compilation', 'compiled functions (JIT)', true,
            'Compile once instead of in each task: define compiled functions at the level of a module, call them with'
            ' few types of arguments, and keep their machine code between processes (numba: cache=True).'
        ),
        (
            'imports', 'imported modules', true,
            'Import before the first task, in a preload of the workers, and at the top of modules; keep the environment'
            ' on disks of the workers or in a container, since a shared file system is slow at many small files.'
        ),
        (
            'logging and printing', 'logged or printed', true,
            'Log or print less within tasks, such as once for a task, or raise the level of the logger.'
        ),
        (
            'Python loops', 'ran own code in Python itself', false,
            'If this code loops over events or elements, use functions of NumPy or Awkward Array instead, or compile it'
            ' with numba.'
        ),
        (
            'sleeping', 'slept', false,
            'If the tasks poll something, wait for its end instead, or make it a task on which they depend. With more'
            ' threads, a worker can compute other tasks while one sleeps.'
        ),
        (
            'subprocess', 'waited for other programs', false,
            'Start a program for many inputs at once, or call it as a library, if starting it takes much of its time.'
        ),
        (
            'network or storage', 'waited for the network or storage', false,
            'Threads that wait use no core: more threads in each worker read at the same time. Read less, read larger'
            ' parts at once, or copy what is read more than once to a place near the workers.'
        ),
        (
            'another task', 'waited for other tasks', false,
            'A task that waits for others occupies a thread: wait within worker_client(), call secede() before, or'
            ' return what was computed so far and make the others its dependencies.'
        ),
        (
            'an actor', 'waited for an actor', false,
            'The actors of a worker run one call at a time: call them less often, divide their state among workers, or'
            ' return partial results and combine them in tasks.'
        ),
        (
            'queue or event', 'waited for a queue or an event', false,
            'A thread that waits computes nothing else: make what the tasks wait for a task on which they depend.'
        ),
        (
            'garbage collection', 'were interrupted by Python''s garbage collector', true,
            'Keep fewer Python objects alive in workers, such as lists of dicts: arrays and tables of Arrow have none for'
            ' each element. Call gc.freeze() after objects were made that stay. If the program calls gc.collect(), call'
            ' it less often.'
        ),
        (
            'pickling', 'pickled or unpickled objects', false,
            'Pass and return smaller objects, or arrays, whose memory is copied without pickling.'
        )
    ) AS meanings (kind, words, is_saved, change)
),
kinds AS (
    SELECT
        trace_id,
        prefix,
        CASE
            -- What waits for the GIL or a core is named by what it would compute.
            WHEN kind = 'runnable but not on the CPU' THEN detail
            WHEN kind <> 'network or storage' OR dataset IS NULL THEN kind
        END AS kind,
        if(kind = 'runnable but not on the CPU', NULL, detail) AS detail,
        sum(seconds) AS seconds,
        coalesce(sum(seconds) FILTER (kind = 'runnable but not on the CPU'), 0) AS waiting_seconds,
        sum(samples) AS samples
    FROM _busy_time
    GROUP BY ALL
),
totals AS (
    SELECT
        trace_id,
        prefix,
        -- Time without samples can have been spent in anything.
        coalesce(sum(seconds) FILTER (samples > 0), 0) AS sampled_seconds,
        sum(sum(seconds)) OVER (PARTITION BY trace_id) AS run_seconds
    FROM kinds
    GROUP BY trace_id, prefix
),
details AS (
    SELECT trace_id, prefix, kind, detail, seconds
    FROM kinds
    WHERE detail IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY trace_id, prefix, kind ORDER BY seconds DESC, detail) = 1
),
-- What tasks start is counted among other processes. Of several hosts, the one with the least free cores.
hosts AS (
    SELECT
        trace_id,
        host,
        max(affinity_cores) AS cores,
        sum(work_seconds * other_cores) FILTER (is_full) / sum(work_seconds) FILTER (is_full) AS other_cores,
        sum(work_seconds) FILTER (is_full) / sum(work_seconds) AS full_share
    FROM _host_use
    WHERE executing > 0 AND other_cores IS NOT NULL
    GROUP BY trace_id, host
    HAVING full_share >= $min_full_share AND other_cores >= 0.5 * max(affinity_cores)
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY full_share DESC, host) = 1
),
found AS (
    SELECT
        kinds.trace_id,
        kinds.prefix,
        kinds.kind,
        any_value(meanings) AS meaning,
        sum(kinds.seconds) AS seconds,
        sum(kinds.waiting_seconds) AS waiting_seconds,
        sum(kinds.samples) AS samples,
        any_value(sampled_seconds) AS sampled_seconds
    FROM kinds
    INNER JOIN meanings USING (kind)
    INNER JOIN totals USING (trace_id, prefix)
    GROUP BY kinds.trace_id, kinds.prefix, kinds.kind
    HAVING sum(kinds.seconds) >= greatest($min_share * any_value(sampled_seconds), $min_run_share * any_value(run_seconds))
        AND sum(kinds.samples) >= $min_samples
)
SELECT
    found.prefix AS entity,
    if(samples >= $certain_samples, 'high', 'medium') AS confidence,
    format(
        'For {:,.1f} of {:,.1f} sampled seconds, tasks of {} {}{}{}{}.',
        found.seconds, sampled_seconds, found.prefix, meaning.words,
        coalesce(
            CASE
                WHEN details.seconds >= $whole_share * (found.seconds - found.waiting_seconds)
                    THEN ', in ' || details.detail
                WHEN details.seconds >= $detail_share * (found.seconds - found.waiting_seconds)
                    THEN format(', {:,.1f} s of them in {}', details.seconds, details.detail)
            END,
            ''
        ),
        CASE WHEN found.waiting_seconds >= $waiting_share * found.seconds
            THEN format('; they waited for the GIL or a core in {:,.1f} s of it', found.waiting_seconds)
            ELSE '' END,
        CASE WHEN found.kind = 'subprocess' AND hosts.host IS NOT NULL
            THEN format(
                '. No core of host {} was free for {:.0f} % of the sampled time with tasks, and processes other than'
                ' those of the run used {:.1f} of {} cores', hosts.host, 100 * full_share, other_cores, hosts.cores
            )
            ELSE '' END
    ) AS sentence,
    CASE WHEN meaning.is_saved THEN found.seconds END AS core_seconds,
    CASE WHEN meaning.is_saved THEN $least_saved * found.seconds / mean_nthreads END AS wall_seconds_min,
    CASE WHEN meaning.is_saved THEN $most_saved * found.seconds / mean_nthreads END AS wall_seconds_max,
    CASE
        WHEN found.kind = 'subprocess' AND hosts.host IS NOT NULL
            THEN 'If these are processes that the tasks start, they share the cores with each other: let all tasks on a host'
            ' start no more of them at a time than it has cores, or use fewer threads of Dask there. ' || meaning.change
        WHEN regexp_matches(details.detail, '(pickle|dill|joblib)[.]loads?\b')
            THEN 'If each of these tasks loads the same object, load it once in each worker: in a function with'
            ' functools.cache, or in a plugin of the workers. Otherwise, store it as arrays, whose memory is copied'
            ' without pickling.'
        WHEN found.kind = 'another task' AND (found.trace_id, found.prefix) IN (
            SELECT (trace_id, prefix) FROM _seceded_times
        )
            THEN 'These waits occupied threads; others of the prefix came after secede(). Return what was computed so far'
            ' and make the others its dependencies.'
        ELSE meaning.change
    END AS change,
    format(
        'SELECT category, kind, detail, sum(seconds) AS seconds FROM busy_time WHERE prefix = ''{}'''
        ' GROUP BY ALL ORDER BY seconds DESC LIMIT 20', replace(found.prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
LEFT JOIN details USING (trace_id, prefix, kind)
LEFT JOIN hosts USING (trace_id);
