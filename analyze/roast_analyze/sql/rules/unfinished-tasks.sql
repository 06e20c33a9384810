-- Tasks that had not ended.
-- Tasks that were executed when the recording ended, for much longer than any other task of their prefix took,
-- or of a prefix of which no result was recorded. Whether they hang or take long is not known. A task counts as
-- executed if the profiler found it in a thread of its worker for most of the time since it was assigned
-- there, or since the last task of its prefix ended there. Idle time is that of threads with nothing to do
-- meanwhile. If such tasks occupy all threads at the end, it is stated how many others had not begun, since these can
-- be what they wait for. A task that waits for tasks that it submitted occupies a thread, which these may need: they
-- are counted if tasks submitted them since then, and if they were assigned without an end, or not at all.
-- Records: profile
-- Applies: EXISTS (FROM _task_runs WHERE outcome = 'unfinished' AND end_t IS NULL)
-- Explains: unfinished attempt, tail, dependencies, imbalance
-- Source: stacks of tasks without an end
-- Documentation: https://distributed.dask.org/en/stable/task-launch.html
-- $min_share = 0.1: share of the wall time of the run
-- $min_ratio = 3: ratio to the longest other task of the prefix
-- $min_idle_seconds = 0.1: idle time that is mentioned
-- $min_sampled_share = 0.5: share of the time in which the profiler found such a task
-- $most_samples = 0.5: share of the samples with a function that is named
-- $all_samples = 0.95: share of them from which the stacks begin with it, and not most of them
-- $min_occupied_share = 0.8: share of the time of the threads of a worker with such tasks, if they are called occupied
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
        profile.rowid AS record,
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
node_times AS (
    SELECT
        trace_id,
        prefix,
        worker,
        record,
        node,
        any_value(frames[node_frames[node + 1] + 1]) AS frame,
        -- Dask does not count innermost functions.
        sum(interval_seconds * (samples + coalesce(innermost, 0))) AS seconds,
        sum(interval_seconds * innermost) AS innermost_seconds
    FROM nodes
    GROUP BY trace_id, prefix, worker, record, node
),
-- Functions with most samples of a record call each other, and callers come before callees. The outermost is that of
-- the task: Dask calls it, and beside it are functions that hardly took time, such as those that start a client.
records AS (
    SELECT
        trace_id,
        prefix,
        worker,
        record,
        any_value(root_seconds) AS root_seconds,
        arg_min({'frame': frame, 'seconds': seconds}, node) FILTER (
            node > 0
            AND seconds >= $most_samples * root_seconds
            AND NOT regexp_matches(frame.filename, '[/\\](dask|distributed|tornado|asyncio)[/\\]')
            AND NOT regexp_matches(frame.filename, '[/\\](threading|concurrent[/\\]futures[/\\]\w+)\.py$')
        ) AS outermost
    FROM (
        SELECT *, sum(seconds) FILTER (node = 0) OVER (PARTITION BY record) AS root_seconds FROM node_times
    )
    GROUP BY trace_id, prefix, worker, record
),
sampled AS (
    SELECT trace_id, prefix, worker, sum(root_seconds) AS seconds
    FROM records
    GROUP BY trace_id, prefix, worker
),
executed AS (
    SELECT long.*, sampled.seconds
    FROM long
    INNER JOIN sampled USING (trace_id, prefix, worker)
    WHERE sampled.seconds >= $min_sampled_share * (until_t - since_t)
),
outermosts AS (
    SELECT trace_id, prefix, outermost.frame AS frame, sum(outermost.seconds) AS seconds
    FROM records
    SEMI JOIN executed USING (trace_id, prefix, worker)
    WHERE outermost IS NOT NULL
    GROUP BY trace_id, prefix, outermost.frame
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, prefix ORDER BY sum(outermost.seconds) DESC, outermost.frame
    ) = 1
),
innermosts AS (
    SELECT trace_id, prefix, frame, sum(innermost_seconds) AS seconds
    FROM node_times
    SEMI JOIN executed USING (trace_id, prefix, worker)
    WHERE node > 0 AND innermost_seconds > 0
    GROUP BY trace_id, prefix, frame
    QUALIFY row_number() OVER (PARTITION BY trace_id, prefix ORDER BY sum(innermost_seconds) DESC, frame) = 1
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
        sum(executed.seconds) AS sampled_seconds
    FROM executed
    GROUP BY trace_id, prefix
),
-- The threads at the end, if such tasks occupy all of them.
occupied AS (
    SELECT trace_id, sum(nthreads)::BIGINT AS threads
    FROM (
        SELECT
            trace_id,
            presence.process,
            any_value(presence.nthreads) AS nthreads,
            sum(executed.seconds / (until_t - since_t)) AS busy_threads
        FROM _worker_presence AS presence
        INNER JOIN _workers AS workers USING (trace_id, process)
        INNER JOIN _cluster_size AS cluster USING (trace_id)
        LEFT JOIN executed USING (trace_id, worker)
        WHERE presence.to_t >= cluster.stop_t
        GROUP BY trace_id, presence.process
    )
    -- Tasks that seceded occupy none.
    WHERE trace_id NOT IN (SELECT trace_id FROM _seceded_times)
    GROUP BY trace_id
    HAVING bool_and(coalesce(busy_threads >= $min_occupied_share * nthreads, false))
),
-- Each of these threads executes one of the assigned tasks.
unbegun AS (
    SELECT trace_id, threads, assigned - threads AS assigned, queued, key, prefix
    FROM occupied
    INNER JOIN (
        SELECT
            trace_id,
            count(*) FILTER (is_assigned) AS assigned,
            count(*) FILTER (NOT is_assigned) AS queued,
            min(key) FILTER (is_other) AS key,
            min_by(prefix, key) FILTER (is_other) AS prefix
        FROM (
            SELECT
                *,
                prefix IS NOT NULL AND (trace_id, prefix) NOT IN (SELECT (trace_id, prefix) FROM found) AS is_other
            FROM (
                SELECT trace_id, key, prefix, true AS is_assigned
                FROM _task_runs
                WHERE outcome = 'unfinished' AND end_t IS NULL
                UNION ALL
                SELECT trace_id, key, prefix, false
                FROM unattempted
                WHERE last_state = 'queued' AND reason = 'waiting at the end'
            )
        )
        GROUP BY trace_id
    ) USING (trace_id)
    WHERE assigned > threads OR queued > 0
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
                found.key, assigned_seconds, coalesce(names.shown, found.worker)
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
            ' In {:.1f} sampled seconds, the stacks {}.', sampled_seconds,
            concat_ws(
                ' and ',
                if(outermosts.seconds >= $all_samples * sampled_seconds, 'begin', 'mostly begin')
                || ' with ' || _frame_place(outermosts.frame),
                CASE WHEN innermosts.frame IS DISTINCT FROM outermosts.frame
                    THEN 'mostly end with ' || _frame_place(innermosts.frame) END
            )
        ),
        CASE WHEN idle.seconds >= $min_idle_seconds
            THEN format(' Meanwhile, threads were idle for {:,.1f} core-seconds.', idle.seconds) END,
        format(' {} that tasks had submitted meanwhile had no end either.', if(nested.tasks = 1, '1 task', nested.tasks || ' tasks')),
        format(
            ' Tasks that had not ended occupied {} of the cluster, while {}{} had not begun.',
            if(unbegun.threads = 1, 'the thread', format('all {:,} threads', unbegun.threads)),
            concat_ws(
                ' and ',
                CASE WHEN unbegun.assigned > 0 THEN _counted(unbegun.assigned, 'other assigned task') END,
                CASE WHEN queued > 0 THEN _counted(queued, 'queued task') END
            ),
            coalesce(format(', such as {},', unbegun.key), '')
        )
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
        ELSE concat(
            CASE WHEN unbegun.threads > 0
                THEN format(
                    'If they wait for {}, it needs a thread: make it a task on which they depend, or call secede()'
                    ' before they wait. Otherwise, find',
                    coalesce('a task such as ' || unbegun.prefix, 'a task that had not begun')
                )
                ELSE 'Find'
            END,
            format(
                ' out what {} computes or waits for there; with a timeout, what waits for ever ends with an error.',
                coalesce(outermosts.frame.name, found.prefix)
            )
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
LEFT JOIN outermosts
    ON found.trace_id = outermosts.trace_id
    AND found.prefix = outermosts.prefix
    AND outermosts.seconds >= $most_samples * sampled_seconds
LEFT JOIN innermosts
    ON found.trace_id = innermosts.trace_id
    AND found.prefix = innermosts.prefix
    AND innermosts.seconds >= $most_samples * sampled_seconds
-- What tasks submitted is stated by itself.
LEFT JOIN unbegun ON found.trace_id = unbegun.trace_id AND nested.tasks IS NULL
LEFT JOIN _worker_names AS names USING (trace_id, worker);
