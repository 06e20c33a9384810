-- Tasks restricted to some workers.
-- Tasks that may only run on certain workers cannot be moved to idle ones. The saving is the
-- difference between the longest time that a worker needs for its restricted tasks, and the time
-- that all tasks would take if they were divided evenly among all threads.
-- Records: transition
-- Source: lower bounds of the makespan (Graham 1969); restrictions in the annotations of tasks
-- Documentation: https://distributed.dask.org/en/stable/locality.html
-- $min_share = 0.05: saving relative to the duration of the run
-- $min_idle_share = 0.3: time of idle threads meanwhile, relative to the saving on all threads
WITH loads AS (
    SELECT
        run.trace_id,
        run.worker,
        max_by(run.prefix, run.whole_seconds) AS prefix,
        count(*) AS tasks,
        sum(run.whole_seconds) / any_value(worker.nthreads) AS seconds
    FROM _task_runs AS run
    SEMI JOIN (
        SELECT trace_id, key
        FROM restrictions
        WHERE workers IS NOT NULL AND allow_other_workers IS NOT TRUE
    ) AS restricted ON run.trace_id = restricted.trace_id AND run.key = restricted.key
    -- Several processes can have the same address.
    INNER JOIN (
        SELECT trace_id, worker, max(nthreads) AS nthreads FROM _workers GROUP BY trace_id, worker
    ) AS worker ON run.trace_id = worker.trace_id AND run.worker = worker.worker
    WHERE run.outcome = 'memory' AND worker.nthreads > 0
    GROUP BY run.trace_id, run.worker
),
longest AS (
    SELECT
        trace_id,
        max_by(prefix, seconds) AS prefix,
        max_by(worker, seconds) AS worker,
        max(seconds) AS seconds,
        sum(tasks) AS tasks
    FROM loads
    GROUP BY trace_id
),
uses AS (
    SELECT
        trace_id,
        sum(busy_seconds) AS busy_seconds,
        sum(tail_seconds + imbalance_seconds) AS idle_seconds
    FROM _bucket_uses
    GROUP BY trace_id
),
found AS (
    SELECT
        *,
        busy_seconds / mean_nthreads AS even_seconds,
        longest.seconds - even_seconds AS excess_seconds
    FROM longest
    INNER JOIN uses USING (trace_id)
    INNER JOIN _run_size USING (trace_id)
)
SELECT
    prefix AS entity,
    'high' AS confidence,
    format(
        '{:,} tasks, such as those of {}, may only run on certain workers: {} computes for {:.1f} s, whereas'
        ' evenly divided work takes {:.1f} s.', tasks, prefix, worker, seconds, even_seconds
    ) AS sentence,
    least(idle_seconds, excess_seconds * mean_nthreads) AS core_seconds,
    0.4 * excess_seconds AS wall_seconds_min,
    1.1 * excess_seconds AS wall_seconds_max,
    'Remove the restriction (workers= of submit, map or annotate; worker_affinity of coffea''s DaskExecutor), or'
    ' allow other workers as well: allow_other_workers=True.' AS change,
    'SELECT worker, count(*) AS tasks, sum(compute_seconds) AS compute_seconds FROM task_runs'
    ' WHERE key IN (SELECT key FROM restrictions WHERE workers IS NOT NULL) GROUP BY worker' AS evidence,
    trace_id
FROM found
WHERE excess_seconds >= $min_share * run_seconds
    AND idle_seconds >= $min_idle_share * excess_seconds * mean_nthreads;
