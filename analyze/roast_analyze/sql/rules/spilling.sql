-- Results spilled to disk.
-- Dask spills results when a worker's memory exceeds a target. Writing blocks the worker; reading
-- back delays the tasks that need a result. The cost is the thread time that this took. The upper
-- end of the saving also includes threads that waited meanwhile (the event loop of a worker that
-- writes is blocked), threads that waited for the last tasks, and the time in which the client waited
-- for the workers to store its data before the first task. In a large cluster, some worker
-- spills at almost any time, so waits count only up to a multiple of the spilling time. Results that clients want
-- stay in memory, or on disk, also if all tasks that depend on them have ended: those of the worker that had most on
-- disk are counted at that time.
-- Applies: EXISTS (FROM _core_time WHERE use = 'disk')
-- Explains: disk, dispatch, dependencies, tail
-- Source: core time of use disk; sizes of spilled results in samples of workers
-- Documentation: https://distributed.dask.org/en/stable/worker-memory.html#spilling-data-to-disk
-- $min_seconds = 0.1: thread time
-- $max_unmanaged_share = 0.4: unmanaged memory relative to the limit, both minus the memory of an idle worker
-- $max_wait_ratio = 4: waits, relative to the thread time and the stalls of spilling
-- $max_stored_share = 0.6: results that Dask keeps without spilling, relative to the memory limit
-- $min_held_share = 0.2: results of a worker that only clients want, relative to its results on disk
-- $least_saved = 0.6: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.3: ratio of the largest saving to the cost; calibrated as well
WITH spilled AS (
    -- Workers report any slow access to their results as reading from or writing to disk.
    SELECT cluster.trace_id
    FROM _run_size AS cluster
    WHERE EXISTS (
        FROM _worker_memory AS memory
        WHERE memory.trace_id = cluster.trace_id AND memory.spilled_bytes > 0
    )
    OR coalesce(
        (
            SELECT bool_or(starts_with(activity, 'disk-'))
            FROM _activity_deltas AS activity
            WHERE activity.trace_id = cluster.trace_id
        ),
        true
    )
),
disk AS (
    SELECT trace_id, sum(seconds) AS seconds
    FROM _core_time
    SEMI JOIN spilled USING (trace_id)
    LEFT JOIN _worker_memory USING (trace_id, process)
    WHERE use = 'disk'
        -- These belong to rule unmanaged-memory.
        AND NOT coalesce(
            unmanaged_bytes - idle_bytes >= $max_unmanaged_share * (limit_bytes - idle_bytes)
            AND stored_bytes < $max_stored_share * limit_bytes,
            false
        )
    GROUP BY trace_id
    HAVING sum(seconds) > $min_seconds
),
waits AS (
    SELECT
        uses.trace_id,
        -- The workers that wrote most end last.
        sum(uses.tail_seconds) + coalesce(
            sum(uses.seconds - uses.busy_seconds - uses.workless_seconds)
                FILTER (disk.t IS NOT NULL),
            0
        ) AS seconds
    FROM _bucket_uses AS uses
    LEFT JOIN (
        SELECT trace_id, t FROM _core_time WHERE use = 'disk' AND seconds > 0
        UNION
        SELECT use.trace_id, use.t
        FROM _bucket_uses AS use
        INNER JOIN _core_time_buckets AS bucket USING (trace_id)
        INNER JOIN _spill_stalls AS spill
            ON use.trace_id = spill.trace_id
            AND spill.start_t < use.t + bucket.width
            AND spill.stop_t > use.t
    ) AS disk USING (trace_id, t)
    GROUP BY uses.trace_id
),
stalls AS (
    SELECT trace_id, sum(stop_t - start_t) AS seconds FROM _spill_stalls GROUP BY trace_id
),
-- Before the first task, the client waits until its data are on the workers.
scattered AS (
    SELECT activity.trace_id, sum(activity.stop_t - activity.start_t) AS seconds
    FROM client_activity AS activity
    INNER JOIN (SELECT trace_id, min(t) AS t FROM raw.task GROUP BY trace_id) AS submitted
        ON activity.trace_id = submitted.trace_id AND activity.stop_t <= submitted.t
    WHERE activity.activity = 'wait'
        AND EXISTS (
            FROM _spill_stalls AS spill
            WHERE spill.trace_id = activity.trace_id
                AND spill.start_t < activity.stop_t
                AND spill.stop_t > activity.start_t
        )
    GROUP BY activity.trace_id
),
peaks AS (
    SELECT
        trace_id,
        max_by(t, spilled_bytes) AS t,
        max_by(worker, spilled_bytes) AS worker,
        max(spilled_bytes) AS disk_bytes
    FROM worker_samples
    SEMI JOIN disk USING (trace_id)
    WHERE spilled_bytes > 0
    GROUP BY trace_id
),
uses AS (
    SELECT trace_id, dependency AS key, max(coalesce(attempt.end_t, 'infinity')) AS last_t
    FROM (SELECT trace_id, key, unnest(dependencies) AS dependency FROM raw.task SEMI JOIN disk USING (trace_id)) AS task
    LEFT JOIN _task_runs AS attempt USING (trace_id, key)
    GROUP BY trace_id, dependency
),
held AS (
    SELECT
        trace_id,
        any_value(worker) AS worker,
        any_value(disk_bytes) AS disk_bytes,
        count(*) AS results,
        sum(nbytes) AS nbytes,
        mode(prefix) AS prefix
    FROM (
        SELECT
            attempt.trace_id,
            attempt.key,
            any_value(peaks.worker) AS worker,
            any_value(peaks.disk_bytes) AS disk_bytes,
            any_value(attempt.prefix) AS prefix,
            max(attempt.nbytes) AS nbytes
        FROM peaks
        INNER JOIN _task_runs AS attempt
            ON peaks.trace_id = attempt.trace_id
            AND peaks.worker = attempt.worker
            AND attempt.outcome = 'memory'
            AND attempt.end_t <= peaks.t
        INNER JOIN uses
            ON attempt.trace_id = uses.trace_id AND attempt.key = uses.key AND uses.last_t <= peaks.t
        INNER JOIN wanted_keys AS wanted
            ON attempt.trace_id = wanted.trace_id
            AND attempt.key = wanted.key
            AND wanted.start_t <= peaks.t
            AND coalesce(wanted.stop_t > peaks.t, true)
            -- What is published is to be kept.
            AND NOT starts_with(wanted.client, 'published-')
        GROUP BY attempt.trace_id, attempt.key
    )
    GROUP BY trace_id
),
memory AS (
    SELECT
        trace_id,
        count(*) FILTER (spilled_bytes > 0) AS workers,
        sum(spilled_bytes) AS spilled_bytes,
        max(stored_bytes) AS stored_bytes,
        max(limit_bytes) AS limit_bytes
    FROM _worker_memory
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    format(
        'Writing results to disk and reading them back took {:.1f} core-seconds', disk.seconds
    )
    -- Samples can miss results that were on disk for a short time.
    || CASE
        WHEN spilled_bytes >= 5e5 THEN format('; results of up to {} were on disk', _byte_size(spilled_bytes))
        ELSE ''
    END
    || '.'
    || coalesce(
        format(
            ' When worker {} had most there, clients kept {} of its results ({}, such as of {}) on which no task depended'
            ' any longer.',
            coalesce(names.shown, held.worker), held.results, _byte_size(held.nbytes), held.prefix
        ),
        ''
    ) AS sentence,
    disk.seconds AS core_seconds,
    $least_saved * disk.seconds / greatest(cluster.peak_nthreads, 1) AS wall_seconds_min,
    greatest(
        $most_saved * disk.seconds / greatest(coalesce(memory.workers, 1), 1),
        1.1
            * (
                disk.seconds
                + least(
                    coalesce(waits.seconds, 0),
                    $max_wait_ratio * (disk.seconds + coalesce(stalls.seconds, 0))
                )
            )
            / greatest(cluster.peak_nthreads, 1)
    ) + coalesce(scattered.seconds, 0) AS wall_seconds_max,
    CASE
        WHEN held.results IS NOT NULL
            THEN 'Delete futures of results that are no longer needed: in a loop over as_completed(), keep no list of'
            ' them. '
        ELSE ''
    END
    || coalesce(
        format(
            'Give each worker about {} (now {}), release results earlier, or {}. Spill to a fast local disk.',
            -- Workers spill results above 60 % of the limit.
            _byte_size(greatest(stored_bytes / 0.5, 1.2 * limit_bytes)), _byte_size(nullif(limit_bytes, 0)),
            CASE WHEN settings.has_chunks THEN 'use smaller chunks' ELSE 'keep smaller results (partitions, arrays)' END
        ),
        'Give workers more memory, or release results earlier.'
    ) AS change,
    'SELECT name, sum(seconds) AS disk_seconds FROM core_time WHERE use = ''disk'' GROUP BY name' AS evidence,
    disk.trace_id
FROM disk
INNER JOIN _cluster_size AS cluster USING (trace_id)
INNER JOIN _run_settings AS settings USING (trace_id)
LEFT JOIN memory USING (trace_id)
LEFT JOIN held ON disk.trace_id = held.trace_id AND held.nbytes >= $min_held_share * held.disk_bytes
LEFT JOIN _worker_names AS names ON held.trace_id = names.trace_id AND held.worker = names.worker
LEFT JOIN waits USING (trace_id)
LEFT JOIN stalls USING (trace_id)
LEFT JOIN scattered USING (trace_id);
