-- Needs: _bucket_uses, _run_size, _task_runs, _workers, restrictions
-- Runs with tasks that may only run on certain workers: the longest time that one of these needs
-- for its restricted tasks, and the time that all tasks would take if divided evenly, which is at
-- least that of the longest of these.
CREATE TABLE _restricted_work AS
WITH totals AS (
    SELECT
        attempt.trace_id,
        attempt.worker,
        max_by(attempt.prefix, attempt.whole_seconds) AS prefix,
        count(DISTINCT attempt.key) AS tasks,
        sum(attempt.whole_seconds) AS seconds,
        max(attempt.whole_seconds) AS longest_seconds
    FROM _task_runs AS attempt
    SEMI JOIN (
        SELECT trace_id, key
        FROM restrictions
        WHERE workers IS NOT NULL AND allow_other_workers IS NOT TRUE
    ) AS restricted ON attempt.trace_id = restricted.trace_id AND attempt.key = restricted.key
    WHERE attempt.whole_seconds > 0
    GROUP BY attempt.trace_id, attempt.worker
),
loads AS (
    SELECT totals.* REPLACE (totals.seconds / worker.nthreads AS seconds)
    FROM totals
    -- Several processes can have the same address.
    INNER JOIN (
        SELECT trace_id, worker, max(nthreads) AS nthreads FROM _workers GROUP BY trace_id, worker
    ) AS worker USING (trace_id, worker)
    WHERE worker.nthreads > 0
),
longest AS (
    SELECT
        trace_id,
        max_by(prefix, seconds) AS prefix,
        max_by(worker, seconds) AS worker,
        max(seconds) AS seconds,
        max(longest_seconds) AS longest_seconds,
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
)
SELECT
    longest.*,
    run_seconds,
    mean_nthreads,
    greatest(busy_seconds / mean_nthreads, longest_seconds) AS even_seconds,
    longest.seconds - even_seconds AS excess_seconds,
    idle_seconds
FROM longest
INNER JOIN uses USING (trace_id)
INNER JOIN _run_size USING (trace_id);
