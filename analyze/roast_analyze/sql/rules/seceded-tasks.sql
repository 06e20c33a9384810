-- Tasks that compute after they seceded.
-- A task that secedes leaves its thread to the next task, so that it can wait for others. If it computes afterwards
-- without rejoin(), the worker computes more tasks at the same time than it has threads, and needs the memory of all of
-- them. How many tasks of a prefix had begun and not ended is known; the samples of a profiling cycle divide them
-- into those that work and those that wait. What more tasks at a time cost is not known: the finding is a remark.
-- Records: worker_transition
-- Applies: EXISTS (FROM raw.worker_transition WHERE finish = 'long-running')
-- Explains: seceded task
-- Source: secessions, times of attempts, and stacks of the profiler
-- Documentation: https://distributed.dask.org/en/stable/task-launch.html
-- $min_ratio = 1.5: tasks of a prefix that compute at the same time, relative to the threads of the worker
-- $min_share = 0.05: time of this, relative to the time of the run, on one worker
-- $min_samples = 20: samples of a worker in this time
WITH cycles AS (
    SELECT
        row_number() OVER () AS cycle,
        sampled.*,
        workers.worker,
        workers.nthreads,
        working_samples / samples AS working_share
    FROM _seceded_samples AS sampled
    INNER JOIN _workers AS workers USING (trace_id, process)
    WHERE samples > 0 AND start_t < stop_t AND workers.nthreads > 0
),
-- Attempts on the worker, from the start of their computation to its end or to that of the recording.
attempts AS (
    SELECT trace_id, worker, prefix, compute_start_t AS start_t, compute_stop_t AS stop_t
    FROM _task_runs
    WHERE compute_start_t < compute_stop_t
    UNION ALL
    SELECT trace_id, worker, prefix, start_t, stop_t
    FROM _seceded_times
    WHERE stop_t = 'infinity'::DOUBLE
),
computing AS (
    SELECT
        cycle,
        any_value(cycles.stop_t - cycles.start_t) AS seconds,
        sum(least(attempts.stop_t, cycles.stop_t) - greatest(attempts.start_t, cycles.start_t)) * any_value(working_share)
            / any_value(cycles.stop_t - cycles.start_t) AS tasks
    FROM cycles
    INNER JOIN attempts
        ON cycles.trace_id = attempts.trace_id
        AND cycles.worker = attempts.worker
        AND cycles.prefix = attempts.prefix
        AND attempts.start_t < cycles.stop_t
        AND attempts.stop_t > cycles.start_t
    GROUP BY cycle
),
by_worker AS (
    SELECT
        cycles.trace_id,
        cycles.prefix,
        cycles.worker,
        any_value(nthreads) AS nthreads,
        sum(seconds) AS seconds,
        max(tasks) AS most,
        sum(tasks * seconds) / sum(seconds) AS mean
    FROM computing
    INNER JOIN cycles USING (cycle)
    INNER JOIN _cluster_size AS size USING (trace_id)
    WHERE tasks >= $min_ratio * nthreads
    GROUP BY cycles.trace_id, cycles.prefix, cycles.worker
    HAVING sum(samples) >= $min_samples AND sum(seconds) >= $min_share * any_value(size.stop_t - size.start_t)
),
found AS (
    SELECT
        trace_id,
        prefix,
        count(*) AS workers,
        arg_max(worker, (most / nthreads, worker)) AS worker,
        arg_max(nthreads, (most / nthreads, worker)) AS nthreads,
        arg_max(most, (most / nthreads, worker)) AS most,
        arg_max(mean, (most / nthreads, worker)) AS mean,
        arg_max(seconds, (most / nthreads, worker)) AS seconds
    FROM by_worker
    GROUP BY trace_id, prefix
),
secessions AS (
    SELECT trace_id, prefix, count(*) AS attempts FROM _seceded_times GROUP BY trace_id, prefix
)
SELECT
    found.prefix AS entity,
    'medium' AS confidence,
    format(
        '{} of {} seceded. On worker {} with {}, about {:.1f} of them computed at the same time during {:.1f} s, and up to'
        ' {:.1f} on average of a profiling cycle, by samples of their stacks{}.',
        if(secessions.attempts = 1, '1 attempt', secessions.attempts || ' attempts'),
        found.prefix,
        coalesce(names.shown, found.worker),
        if(nthreads = 1, '1 thread', nthreads || ' threads'),
        mean,
        seconds,
        most,
        CASE workers
            WHEN 1 THEN ''
            WHEN 2 THEN '; another worker computed more than its threads, too'
            ELSE format('; {} other workers computed more than their threads, too', workers - 1)
        END
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    'If the worker should compute no more tasks at a time than it has threads, call rejoin() after the wait, which waits for'
    ' a free thread, as the end of a block of worker_client() does; or compute before secede().' AS change,
    format(
        'SELECT worker, key, finish, t FROM worker_transitions WHERE finish = ''long-running'' AND key IN (SELECT key'
        ' FROM task_runs WHERE prefix = ''{}'') ORDER BY t LIMIT 20', replace(found.prefix, '''', '''''')
    ) AS evidence,
    found.trace_id
FROM found
INNER JOIN secessions USING (trace_id, prefix)
LEFT JOIN _worker_names AS names USING (trace_id, worker);
