-- Workers that joined late or left early.
-- The time of an absence counts in proportion to how busy the other workers were, according to
-- core_time. Times without any worker have a rule of their own (no-workers), and are not counted here. A worker whose
-- name belonged to another one that had left as asked is a worker of its own.
-- Other rules cover workers that were killed and replaced, and workers without heartbeats.
-- Applies: EXISTS (FROM _worker_presence WHERE from_t > (SELECT min(t) FROM raw.task))
-- Applies: EXISTS (FROM _worker_presence WHERE to_t < (SELECT max(end_t) FROM _task_runs))
-- Missing threads: counted
-- Explains: joining worker, leaving worker
-- Source: dask-jobqueue and adaptive clusters, where workers wait in a queue; early ends of jobs
-- Documentation: https://docs.dask.org/en/stable/adaptive.html
-- $min_seconds = 1: missing thread time
-- $named_seconds = 0.1: time without any worker that is stated
-- $least_saved = 0.75: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.4: ratio of the largest saving to the cost; calibrated as well
WITH work AS (
    SELECT trace_id, min(processing_t) AS start_t, max(end_t) AS stop_t
    FROM _task_runs
    GROUP BY trace_id
),
submitted AS (
    SELECT trace_id, min(t) AS t FROM raw.task GROUP BY trace_id
),
neighbors AS (
    SELECT
        process,
        lag(left_as_asked) OVER same_name AS predecessor_left_as_asked,
        lag(removed_t) OVER same_name AS predecessor_left_t,
        lead(process) OVER same_name AS successor
    FROM (
        SELECT
            worker.*,
            removal.kill IS NULL
            AND coalesce(removal.expected, true)
            AND NOT regexp_matches(coalesce(removal.reason, ''), 'restart')
            AND removal.reason IS DISTINCT FROM 'check-worker-ttl' AS left_as_asked
        FROM _workers AS worker
        LEFT JOIN _worker_removals AS removal USING (process)
    )
    WINDOW same_name AS (
        PARTITION BY trace_id, coalesce(name, process::VARCHAR) ORDER BY added_t NULLS FIRST, process
    )
),
presence AS (
    SELECT
        worker.*,
        neighbors.* EXCLUDE (process),
        submitted.t AS start_t,
        work.stop_t,
        removal.kill IS NULL
            AND removal.reason IS DISTINCT FROM 'check-worker-ttl' AS is_departure,
        starts_with(coalesce(removal.stimulus_id, ''), 'retire-workers') AS is_retired,
        starts_with(coalesce(removal.stimulus_id, ''), 'worker-close-gracefully')
            OR coalesce(removal.reason = 'worker-lifetime-reached', false) AS has_lifetime,
        coalesce(starts_with(removal.closing, 'signal-'), false) AS is_signalled,
        coalesce(removal.is_lost AND NOT removal.is_requested, false) AS is_lost
    FROM _worker_presence AS worker
    INNER JOIN neighbors USING (process)
    INNER JOIN work USING (trace_id)
    INNER JOIN submitted USING (trace_id)
    LEFT JOIN _worker_removals AS removal USING (process)
),
absences AS (
    SELECT
        trace_id,
        nthreads,
        'late' AS kind,
        greatest(start_t, coalesce(predecessor_left_t, start_t)) AS start_t,
        least(from_t, stop_t) AS stop_t,
        least(from_t, stop_t) - start_t AS seconds,
        false AS is_retired,
        false AS has_lifetime,
        false AS is_signalled,
        false AS is_lost
    FROM presence
    WHERE from_t > start_t AND coalesce(predecessor_left_as_asked, true)
    UNION ALL
    SELECT
        trace_id, nthreads, 'early', greatest(to_t, start_t), stop_t, stop_t - greatest(to_t, start_t), is_retired,
        has_lifetime, is_signalled, is_lost
    FROM presence
    WHERE to_t < stop_t AND successor IS NULL AND is_departure
),
buckets AS (
    SELECT
        bucket.trace_id,
        bucket.number,
        bucket.t,
        bucket.width,
        (busy_seconds + assigned_seconds) / seconds AS share,
        coalesce(used.seconds, 0) AS seconds
    FROM (
        SELECT trace_id, width, number, start_t, start_t + number * width AS t
        FROM (SELECT *, unnest(range(buckets)) AS number FROM _core_time_buckets)
    ) AS bucket
    LEFT JOIN _bucket_uses AS used
        ON bucket.trace_id = used.trace_id
        AND bucket.number = round((used.t - bucket.start_t) / bucket.width)
),
missing AS (
    SELECT
        trace_id,
        t,
        any_value(share) AS share,
        any_value(peak_nthreads * width - seconds) AS most,
        sum(overlap * nthreads) AS seconds,
        sum(overlap * nthreads) FILTER (kind = 'late') AS late_seconds
    FROM (
        SELECT
            buckets.*,
            absences.kind,
            absences.nthreads,
            least(absences.stop_t, buckets.t + width) - greatest(absences.start_t, buckets.t) AS overlap
        FROM buckets
        INNER JOIN absences
            ON buckets.trace_id = absences.trace_id
            AND absences.start_t < buckets.t + width
            AND buckets.t < absences.stop_t
    )
    INNER JOIN _run_size USING (trace_id)
    GROUP BY trace_id, t
),
lost AS (
    SELECT
        trace_id,
        sum(share * greatest(least(seconds, most), 0)) AS thread_seconds,
        coalesce(sum(late_seconds), 0) / sum(seconds) AS late_share,
        -- Times without any worker have no share of work.
        count(*) > count(share) AS has_workless
    FROM missing
    WHERE seconds > 0
    GROUP BY trace_id
    HAVING thread_seconds >= $min_seconds
),
counts AS (
    SELECT
        trace_id,
        count(*) FILTER (kind = 'late') AS late,
        count(*) FILTER (kind = 'early') AS early,
        max(seconds) FILTER (kind = 'late') AS late_seconds,
        max(seconds) FILTER (kind = 'early') AS early_seconds,
        count(*) FILTER (kind = 'early' AND is_retired) AS retired,
        count(*) FILTER (kind = 'early' AND has_lifetime) AS expired,
        count(*) FILTER (kind = 'early' AND is_signalled) AS signalled,
        count(*) FILTER (is_lost) AS lost
    FROM absences
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    concat_ws(
        ' ',
        CASE WHEN late > 0 THEN format(
            '{} {:.1f} s after the first task was submitted.',
            CASE late WHEN 1 THEN 'A worker joined late,' ELSE late || ' workers joined late, up to' END,
            late_seconds
        ) END,
        CASE
            WHEN late > 0 AND replacements = 1 THEN 'Another one took the name of a worker that was lost or restarted.'
            WHEN late > 0 AND replacements > 1
                THEN format('{} more took the names of workers that were lost or restarted.', replacements)
        END,
        CASE WHEN early > 0 THEN format(
            '{} {:.1f} s before the last task ended.',
            CASE early WHEN 1 THEN 'A worker left early,' ELSE early || ' workers left early, up to' END,
            early_seconds
        ) END,
        CASE
            WHEN retired = 0 THEN NULL
            WHEN retired = early AND early = 1 THEN 'It was retired on request.'
            WHEN retired = early THEN 'They were retired on request.'
            ELSE format('{} of them {} retired on request.', retired, CASE retired WHEN 1 THEN 'was' ELSE 'were' END)
        END,
        CASE
            WHEN lost = 0 THEN NULL
            WHEN lost < early THEN format('{} of them {} lost.', lost, if(lost = 1, 'was', 'were'))
            ELSE if(early = 1, 'It was lost.', 'They were lost.')
        END,
        CASE WHEN has_workless AND workless_seconds >= $named_seconds
            THEN format('The {:.1f} s without any worker (no-workers) are not counted here.', workless_seconds)
        END
    ) AS sentence,
    thread_seconds AS core_seconds,
    $least_saved * thread_seconds / _run_size.peak_nthreads AS wall_seconds_min,
    $most_saved * thread_seconds / _run_size.peak_nthreads AS wall_seconds_max,
    CASE
        WHEN late_share >= 0.5 THEN concat(
            'Start the workers before the work: request them earlier',
            CASE
                WHEN settings.has_jobs THEN ', in smaller jobs, or with cluster.adapt(minimum='
                WHEN settings.is_adaptive THEN ', with cluster.adapt(minimum='
                ELSE ', or wait for them (client.wait_for_workers('
            END,
            peak_workers, CASE WHEN settings.has_jobs OR settings.is_adaptive THEN ').' ELSE ')).' END
        )
        WHEN retired > early / 2 AND settings.is_adaptive
            THEN format('Keep the workers until the end: cluster.adapt(minimum={}), or a longer wait_count.', peak_workers)
        WHEN retired > early / 2
            THEN 'Retire workers after the work (client.retire_workers, cluster.scale), unless their cores are needed'
            ' elsewhere.'
        WHEN expired > early / 2 THEN 'Raise the --lifetime of the workers, so that it exceeds the run.'
        WHEN signalled > early / 2
            THEN 'Find out who sends the signal: batch systems send 15 before they preempt a job or end it at its limit.'
        WHEN lost > early / 2 THEN 'Find out why the workers were lost, and keep or replace them until the end.'
        WHEN settings.has_jobs
            THEN concat(
                'Keep the workers until the end: request longer jobs',
                CASE WHEN settings.is_adaptive THEN format(', or use cluster.adapt(minimum={})', peak_workers) ELSE '' END,
                '.'
            )
        ELSE 'Keep the workers until the end. Why they left is in view workers, column removal_reason.'
    END AS change,
    'SELECT name, worker, added_t, removed_t, removal_reason FROM workers ORDER BY added_t' AS evidence,
    trace_id
FROM lost
INNER JOIN counts USING (trace_id)
INNER JOIN _run_settings AS settings USING (trace_id)
LEFT JOIN (
    SELECT trace_id, count(*) AS replacements
    FROM presence
    WHERE from_t > start_t AND NOT coalesce(predecessor_left_as_asked, true)
    GROUP BY trace_id
) AS replaced USING (trace_id)
LEFT JOIN (
    SELECT trace_id, sum(seconds) AS workless_seconds
    FROM _wall_time
    WHERE state = 'no worker'
    GROUP BY trace_id
) AS workless USING (trace_id)
INNER JOIN _run_size USING (trace_id)
INNER JOIN _cluster_size USING (trace_id);
