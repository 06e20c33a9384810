-- Tasks that had not ended.
-- Tasks that were executed when the recording ended, for much longer than any other task of their prefix took,
-- or of a prefix of which no result was recorded. Whether they hang or take long is not known. A task counts as
-- executed if the profiler found it in a thread of its worker for most of the time since it was assigned
-- there, or since the last task of its prefix ended there. Idle time is that of threads with nothing to do
-- meanwhile. A task that waits for tasks that it submitted occupies a thread, which these may need: they are
-- counted if tasks submitted them since then, and if they were assigned without an end, or not at all.
-- Records: profile
-- Applies: EXISTS (FROM _task_runs WHERE outcome = 'unfinished' AND end_t IS NULL)
-- Explains: unfinished attempt, tail, dependencies, imbalance
-- Source: stacks of tasks without an end
-- Documentation: https://distributed.dask.org/en/stable/task-launch.html
-- $min_share = 0.1: share of the wall time of the run
-- $min_ratio = 3: ratio to the longest other task of the prefix
-- $min_idle_seconds = 0.1: idle time that is mentioned
-- $min_sampled_share = 0.5: share of the time in which the profiler found such a task
WITH ended AS (
    SELECT trace_id, prefix, count(*) AS tasks, max(whole_seconds) AS longest_seconds
    FROM _task_runs
    WHERE outcome = 'memory' AND compute_stop_t IS NOT NULL
    GROUP BY trace_id, prefix
),
last_ends AS (
    SELECT trace_id, prefix, worker, max(compute_stop_t) AS t
    FROM _task_runs
    WHERE compute_stop_t IS NOT NULL
    GROUP BY trace_id, prefix, worker
),
unfinished AS (
    SELECT
        run.trace_id,
        run.prefix,
        run.worker,
        count(*) AS attempts,
        arg_min(run.key, run.processing_t) AS key,
        greatest(min(coalesce(run.processing_t, cluster.start_t)), any_value(cluster.start_t), any_value(last_ends.t))
            AS since_t,
        greatest(min(coalesce(run.processing_t, cluster.start_t)), any_value(cluster.start_t)) AS assigned_t,
        any_value(cluster.stop_t) AS until_t,
        any_value(cluster.stop_t - cluster.start_t) AS run_seconds
    FROM _task_runs AS run
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    LEFT JOIN last_ends USING (trace_id, prefix, worker)
    -- An end after the examined range is known.
    WHERE run.outcome = 'unfinished' AND run.end_t IS NULL AND run.prefix IS NOT NULL
    GROUP BY run.trace_id, run.prefix, run.worker
),
long AS (
    SELECT unfinished.*, ended.tasks, ended.longest_seconds
    FROM unfinished
    LEFT JOIN ended USING (trace_id, prefix)
    WHERE until_t - since_t >= greatest($min_share * run_seconds, coalesce($min_ratio * longest_seconds, 0))
),
slices AS (
    SELECT
        profile.trace_id,
        profile.worker,
        profile.prefix,
        since_t,
        profile.interval_seconds,
        profile.tree.frames AS frames,
        profile.tree.node_frames AS node_frames,
        unnest(profile.tree.slices) AS slice
    FROM raw.profile AS profile
    INNER JOIN long USING (trace_id, prefix, worker)
    WHERE profile.rowid NOT IN (SELECT record FROM _damaged_profiles)
),
nodes AS (
    SELECT
        * EXCLUDE (slice),
        unnest(slice.nodes) AS node,
        unnest(slice.counts) AS samples,
        unnest(slice.innermost) AS innermost
    FROM slices
    WHERE (slice.start_t + slice.stop_t) / 2 >= since_t
),
frames AS (
    SELECT
        trace_id,
        prefix,
        worker,
        node = 0 AS is_root,
        frames[node_frames[node + 1] + 1] AS frame,
        -- Callers come before callees.
        min(node) AS node,
        -- Dask does not count innermost functions.
        sum(interval_seconds * (samples + coalesce(innermost, 0))) AS seconds,
        sum(interval_seconds * innermost) AS innermost_seconds
    FROM nodes
    GROUP BY ALL
),
sampled AS (
    SELECT
        trace_id,
        prefix,
        worker,
        sum(seconds) FILTER (is_root) AS seconds,
        arg_max(frame, (seconds, -node)) FILTER (
            NOT is_root AND NOT regexp_matches(frame.filename, '[/\\](dask|distributed)[/\\]')
        ) AS outermost,
        arg_max(frame, innermost_seconds) FILTER (NOT is_root AND innermost_seconds > 0) AS innermost
    FROM frames
    GROUP BY trace_id, prefix, worker
),
found AS (
    SELECT
        trace_id,
        prefix,
        sum(attempts)::BIGINT AS attempts,
        count(*) AS workers,
        arg_min(key, since_t) AS key,
        arg_min(worker, since_t) AS worker,
        min(since_t) AS since_t,
        max(until_t - assigned_t) AS assigned_seconds,
        any_value(tasks) AS tasks,
        any_value(longest_seconds) AS longest_seconds,
        sum(sampled.seconds) AS sampled_seconds,
        arg_max(outermost, sampled.seconds) AS outermost,
        arg_max(innermost, sampled.seconds) AS innermost
    FROM long
    INNER JOIN sampled USING (trace_id, prefix, worker)
    WHERE sampled.seconds >= $min_sampled_share * (until_t - since_t)
    GROUP BY trace_id, prefix
),
nested AS (
    SELECT task.trace_id, found.prefix, count(DISTINCT task.key) AS tasks
    FROM raw.task AS task
    INNER JOIN found ON task.trace_id = found.trace_id AND task.t >= found.since_t
    WHERE task.client LIKE 'Client-worker-%'
        AND (task.trace_id, task.prefix) NOT IN (SELECT (trace_id, prefix) FROM found)
        AND (
            (task.trace_id, task.key) IN (
                SELECT (trace_id, key) FROM _task_runs WHERE outcome = 'unfinished' AND end_t IS NULL
            )
            OR (task.trace_id, task.key) IN (
                SELECT (trace_id, key) FROM unattempted WHERE reason = 'waiting at the end'
            )
        )
    GROUP BY task.trace_id, found.prefix
),
idle AS (
    SELECT trace_id, found.prefix, sum(uses.seconds) AS seconds
    FROM found
    INNER JOIN _core_time AS uses USING (trace_id)
    WHERE uses.t >= since_t AND use IN ('tail', 'dependencies', 'imbalance')
    GROUP BY trace_id, found.prefix
)
SELECT
    found.prefix AS entity,
    'high' AS confidence,
    concat(
        CASE attempts
            WHEN 1 THEN format(
                'When the recording ended, {} had not ended {:.1f} s after it was assigned to worker {}',
                key, assigned_seconds, coalesce(names.shown, found.worker)
            )
            ELSE format(
                'When the recording ended, {} tasks of {} had not ended up to {:.1f} s after they were assigned to {}',
                attempts, found.prefix, assigned_seconds, if(workers = 1, 'a worker', workers || ' workers')
            )
        END,
        coalesce(
            format(
                '; {} took at most {:.1f} s',
                if(found.tasks = 1, 'the other task of ' || found.prefix, found.tasks || ' others of ' || found.prefix),
                longest_seconds
            ),
            '; no result of ' || found.prefix || ' was recorded'
        ),
        '.',
        format(
            ' In {:.1f} sampled seconds, the stacks begin with {}{}.', sampled_seconds, _frame_place(outermost),
            CASE WHEN innermost <> outermost THEN ' and mostly end with ' || _frame_place(innermost) ELSE '' END
        ),
        CASE WHEN idle.seconds >= $min_idle_seconds
            THEN format(' Meanwhile, threads were idle for {:,.1f} core-seconds.', idle.seconds) END,
        format(' {} that tasks had submitted meanwhile had no end either.', if(nested.tasks = 1, '1 task', nested.tasks || ' tasks'))
    ) AS sentence,
    sampled_seconds + coalesce(idle.seconds, 0) AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    CASE
        WHEN nested.tasks > 0 AND (found.trace_id, found.prefix) NOT IN (
            SELECT (trace_id, prefix) FROM _seceded_times
        ) THEN
            'A task that waits for tasks that it submitted occupies a thread, which they may need: let it wait within'
            ' worker_client(), or call secede() before it waits.'
        ELSE format(
            'Find out what {} computes or waits for there; with a timeout, what waits for ever ends with an error.',
            coalesce(outermost.name, found.prefix)
        )
    END AS change,
    format(
        'SELECT worker, stack, sum(seconds) AS seconds FROM profile_stacks WHERE prefix = ''{}'' AND start_t >= {}'
        ' GROUP BY ALL ORDER BY seconds DESC LIMIT 20', replace(found.prefix, '''', ''''''), since_t
    ) AS evidence,
    found.trace_id
FROM found
LEFT JOIN idle USING (trace_id, prefix)
LEFT JOIN nested USING (trace_id, prefix)
LEFT JOIN _worker_names AS names USING (trace_id, worker);
