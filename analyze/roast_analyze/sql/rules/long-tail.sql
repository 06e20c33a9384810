-- Long tasks that left other threads idle.
-- A task counts only if it takes at least twice as long as tasks that have a fifth of the compute
-- time. If it was ready long before it started, shorter tasks could have been computed while it ran;
-- otherwise it can only be split. A task with a single dependency would have been ready earlier if the
-- dependency had started earlier. Tasks that others need, and a chain of tasks that ran alone, belong to rule
-- low-parallelism.
-- Retried tasks, and tasks of slow files, of slow workers and of workers without heartbeats, and tasks
-- that need certain workers or resources, are left out, because their cause is a different one. Idle
-- time is that of core_time.
-- Explains: tail, dependencies
-- Source: list scheduling, longest processing time first (Graham 1969); stragglers
-- Documentation: https://distributed.dask.org/en/stable/priority.html
-- $min_relative_duration = 2: duration relative to the shorter tasks
-- $min_shorter_share = 0.2: share of the compute time in tasks that are that much shorter
-- $min_tail = 0.5: idle time relative to threads times duration; the end of any run leaves about half
-- $min_ready_share = 0.25: time between being ready and starting, relative to the duration
WITH typical AS (
    -- Compute time of tasks by duration, in steps of 19 %.
    SELECT
        trace_id,
        step,
        sum(sum(whole_seconds)) OVER (PARTITION BY trace_id ORDER BY step) AS seconds,
        sum(sum(whole_seconds)) OVER (PARTITION BY trace_id) AS all_seconds
    FROM (
        SELECT trace_id, whole_seconds, floor(4 * log2(whole_seconds)) AS step
        FROM (
            SELECT trace_id, whole_seconds FROM _task_runs WHERE outcome = 'memory'
            UNION ALL
            SELECT trace_id, whole_seconds FROM _chunks WHERE NOT has_task AND outcome = 'memory'
        )
        WHERE whole_seconds > 0
    )
    GROUP BY trace_id, step
),
slow_files AS (
    SELECT _attempt_id(chunk.seq, chunk.local_id) AS seq
    FROM _chunks AS chunk
    INNER JOIN _relative_duration AS speed
        ON chunk.trace_id = speed.trace_id
        AND chunk.dataset IS NOT DISTINCT FROM speed.dataset
        AND chunk.filename = speed.filename
    WHERE speed.process IS NULL AND speed.is_slow
),
long AS (
    SELECT
        attempt.* REPLACE (
            attempt.ready_seconds + coalesce(chain.before_seconds, 0) AS ready_seconds
        ),
        attempt.ready_seconds + coalesce(chain.before_seconds, 0)
            >= $min_ready_share * attempt.seconds AS is_late,
        floor(4 * log2(attempt.seconds / $min_relative_duration)) AS step
    FROM _unexplained_attempts AS attempt
    LEFT JOIN _chain_waits AS chain USING (seq)
    WHERE attempt.seconds > 0
        AND (
            is_late
            OR attempt.seq NOT IN (
                SELECT seq
                FROM _bound_attempts
                WHERE NOT is_single OR trace_id IN (SELECT trace_id FROM _slow_submissions)
            )
        )
        AND attempt.seq NOT IN (SELECT seq FROM slow_files)
        AND NOT EXISTS (
            FROM restrictions AS restriction
            WHERE restriction.trace_id = attempt.trace_id
                AND restriction.key = attempt.key
                AND (restriction.workers IS NOT NULL OR restriction.resources IS NOT NULL)
        )
),
tails AS (
    SELECT
        long.*,
        coalesce(chunk.dataset, long.prefix) AS name,
        chunk.dataset IS NOT NULL AS is_dataset
    FROM long
    ASOF INNER JOIN typical
        ON long.trace_id = typical.trace_id AND long.step >= typical.step
    LEFT JOIN (
        SELECT _attempt_id(seq, local_id) AS seq, any_value(dataset) AS dataset FROM _chunks GROUP BY 1
    ) AS chunk USING (seq)
    WHERE typical.seconds >= $min_shorter_share * typical.all_seconds
        AND name IS NOT NULL
),
found AS (
    SELECT
        trace_id,
        is_late,
        count(*) AS long_tasks,
        max_by(name, idle_seconds) AS name,
        count(DISTINCT name) AS names,
        max_by(prefix, idle_seconds) AS prefix,
        max_by(is_dataset, idle_seconds) AS is_dataset,
        max(seconds) AS longest_seconds,
        max(ready_seconds) AS ready_seconds,
        sum(idle_seconds) AS idle_seconds
    FROM tails
    GROUP BY trace_id, is_late
)
SELECT
    name AS entity,
    'high' AS confidence,
    concat(
        CASE
            WHEN long_tasks = 1 THEN format('A {} of {} took {:.1f} s', noun, name, longest_seconds)
            WHEN names = 1
                THEN format('{} {}s of {} took up to {:.1f} s', long_tasks, noun, name, longest_seconds)
            ELSE format(
                '{} {}s, such as those of {}, took up to {:.1f} s', long_tasks, noun, name, longest_seconds
            )
        END,
        CASE
            WHEN is_late AND long_tasks = 1
                THEN format(', and started {:.1f} s after it was ready', ready_seconds)
            WHEN is_late
                THEN format(', and started up to {:.1f} s after they were ready', ready_seconds)
            ELSE ', longer than the others'
        END,
        format('. During that time, other threads were idle for {:,.1f} core-seconds.', idle_seconds)
    ) AS sentence,
    idle_seconds AS core_seconds,
    CASE WHEN is_late THEN 0.6 ELSE 0.4 END * saved_seconds AS wall_seconds_min,
    CASE WHEN is_late THEN 1.4 ELSE 1.1 END * saved_seconds AS wall_seconds_max,
    CASE
        WHEN _is_shuffle(prefix)
            THEN format(
                '{} is a part of a shuffle, join or rechunking: check whether keys or partitions are of unequal size, and'
                ' use a key or a number of partitions that divides the data evenly.', name
            )
        WHEN is_late AND is_dataset AND NOT has_scheduler
            THEN format('Place dataset {} first in the fileset, or use smaller chunks.', name)
        WHEN NOT is_late AND is_dataset
            THEN format('Use smaller chunks for dataset {}, or for all, so that several threads share it.', name)
        WHEN NOT is_late THEN format(
            'Split the longest tasks of {} into parts that run in parallel; otherwise use fewer workers.', name
        )
        WHEN is_dataset THEN format(
            'Submit the longest tasks first: place dataset {} first in the fileset, or use smaller chunks for it.',
            name
        )
        ELSE format(
            'Submit the longest tasks of {} first, or with a higher priority (client.submit(…, priority=1)); or split them.',
            name
        )
    END AS change,
    coalesce(
        format(
            'SELECT key, compute_seconds, processing_t, compute_start_t, compute_stop_t, worker'
            ' FROM task_runs WHERE prefix = ''{}'' ORDER BY compute_stop_t DESC LIMIT 20',
            replace(prefix, '''', '''''')
        ),
        'SELECT dataset, filename, entry_start, entry_stop, compute_seconds, start_t, stop_t, worker'
        ' FROM chunks ORDER BY stop_t DESC LIMIT 20'
    ) AS evidence,
    trace_id
FROM (
    SELECT
        *,
        -- Without a cluster, chunks have no prefix.
        if(prefix IS NULL, 'chunk', 'task') AS noun,
        -- A task that starts earlier ends earlier by as much.
        least(idle_seconds / mean_nthreads, CASE WHEN is_late THEN ready_seconds END) AS saved_seconds
    FROM found
    INNER JOIN _run_size USING (trace_id)
    INNER JOIN _run_settings USING (trace_id)
)
WHERE idle_seconds >= $min_tail * (peak_nthreads - 1) * longest_seconds;
