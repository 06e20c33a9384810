-- Tasks restricted to some workers.
-- Tasks that may only run on certain workers cannot be moved to idle ones. The saving is the difference
-- between the longest time that a worker needs for its restricted tasks, and the time that all tasks
-- would take if they were divided evenly among all threads, or that of the longest of these.
-- Records: transition
-- Explains: imbalance, tail, dependencies
-- Source: lower bounds of the makespan (Graham 1969); restrictions in the annotations of tasks
-- Documentation: https://distributed.dask.org/en/stable/locality.html
-- $min_share = 0.05: saving relative to the duration of the run
-- $min_idle_share = 0.3: time of idle threads meanwhile, relative to the saving on all threads
-- $least_saved = 0.4: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.1: ratio of the largest saving to the cost; calibrated as well
SELECT
    prefix AS entity,
    'high' AS confidence,
    format(
        '{:,} tasks, such as those of {}, may only run on certain workers: {} computes for {:.1f} s, whereas'
        ' evenly divided work takes {:.1f} s.', tasks, prefix, worker, seconds, even_seconds
    ) AS sentence,
    least(idle_seconds, excess_seconds * mean_nthreads) AS core_seconds,
    $least_saved * excess_seconds AS wall_seconds_min,
    $most_saved * excess_seconds AS wall_seconds_max,
    'Remove the restriction (workers= of submit, map or annotate; worker_affinity of coffea''s DaskExecutor), or'
    ' allow other workers as well: allow_other_workers=True.' AS change,
    'SELECT worker, count(*) AS tasks, sum(compute_seconds) AS compute_seconds FROM task_runs'
    ' WHERE key IN (SELECT key FROM restrictions WHERE workers IS NOT NULL) GROUP BY worker' AS evidence,
    trace_id
FROM _restricted_work
WHERE excess_seconds >= $min_share * run_seconds
    AND idle_seconds >= $min_idle_share * excess_seconds * mean_nthreads;
