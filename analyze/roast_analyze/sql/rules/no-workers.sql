-- Time without any worker.
-- Periods in which tasks or the client waited and no worker was there: core time, which belongs to workers, has
-- nothing of them. Workers that were missing while others computed have another rule. The advice depends on why the
-- workers left; if they were killed or lost for an unknown reason, rule killed-workers has more about it.
-- Applies: EXISTS (FROM _wall_time WHERE state = 'no worker')
-- Missing threads: counted
-- Source: state "no worker" of view wall_time
-- Documentation: https://jobqueue.dask.org/en/latest/clusters-advanced-tips-and-tricks.html
-- $min_seconds = 1: time without a worker
-- $min_share = 0.05: the same, as a share of the run
-- $least_saved = 0.75: part of this time that is saved at least; assumed
-- $named_seconds = 0.1: time before, between or after workers that is named
WITH presence AS (
    SELECT trace_id, min(from_t) AS first_t, max(to_t) AS last_t FROM _worker_presence GROUP BY trace_id
),
periods AS (
    SELECT
        period.*,
        -- Of the last worker that left before.
        removal.closing,
        removal.is_requested OR coalesce(removal.expected, false) AS is_requested
    FROM (FROM _wall_time WHERE state = 'no worker') AS period
    ASOF LEFT JOIN _worker_removals AS removal
        ON period.trace_id = removal.trace_id AND period.start_t >= removal.removed_t
),
found AS (
    SELECT
        trace_id,
        sum(seconds) AS seconds,
        -- Without any worker in the whole recording, all of it is before the first one.
        coalesce(sum(seconds) FILTER (first_t IS NULL OR start_t < first_t), 0) AS before_seconds,
        count(first_t) > 0 AS has_workers,
        coalesce(sum(seconds) FILTER (start_t >= first_t AND start_t < last_t), 0) AS between_seconds,
        count(*) FILTER (start_t >= first_t AND start_t < last_t AND seconds >= $named_seconds) AS gaps,
        coalesce(sum(seconds) FILTER (start_t >= last_t), 0) AS after_seconds,
        -- The departure before the longest period.
        arg_max(closing, seconds) FILTER (start_t >= first_t) AS closing,
        arg_max(is_requested, seconds) FILTER (start_t >= first_t) AS is_requested
    FROM periods
    LEFT JOIN presence USING (trace_id)
    GROUP BY trace_id
),
-- Those that rule killed-workers describes.
departures AS (
    SELECT
        trace_id,
        count(*) AS workers,
        count(kill) AS kills,
        count(*) FILTER (kill IS NULL AND closing IS NULL) AS unknown
    FROM _worker_removals
    WHERE is_lost OR kill IS NOT NULL
    GROUP BY trace_id
),
plans AS (
    SELECT trace_id, max(planned) AS planned FROM cluster_sizes GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    format(
        'No worker was there for {:.1f} of {:.1f} s, while tasks or the client waited: {}.{}',
        found.seconds,
        cluster.stop_t - cluster.start_t,
        array_to_string(list_filter([
            CASE WHEN before_seconds >= $named_seconds
                THEN format(
                    '{:.1f} s {}', before_seconds, if(has_workers, 'before the first one joined', 'without a record of any')
                ) END,
            CASE WHEN between_seconds >= $named_seconds
                THEN format(
                    '{:.1f} s {}after all had left and before another one joined',
                    between_seconds, if(gaps > 1, format('in {} periods ', gaps), '')
                ) END,
            CASE WHEN after_seconds >= $named_seconds THEN format('{:.1f} s after the last one had left', after_seconds) END
        ], lambda part: part IS NOT NULL), '; '),
        CASE
            WHEN has_workers OR planned IS NULL THEN ''
            WHEN planned = 0 THEN ' The cluster planned none.'
            WHEN planned = 1 THEN ' The cluster planned one.'
            ELSE format(' The cluster planned {}.', planned)
        END
    ) AS sentence,
    found.seconds * peak_nthreads AS core_seconds,
    $least_saved * found.seconds AS wall_seconds_min,
    found.seconds AS wall_seconds_max,
    concat_ws(
        ' ',
        CASE
            WHEN NOT has_workers AND planned = 0 THEN 'Request workers: cluster.scale or cluster.adapt.'
            WHEN NOT has_workers
                THEN 'Find out why none joined: batch jobs, containers or processes can wait to be started, end at once (see'
                    ' their logs), or not reach the scheduler.'
            WHEN before_seconds > 0.5 * found.seconds
                THEN 'Start the workers before the program waits for them; if they are batch jobs that wait in a queue, small'
                    ' and short ones usually wait less.'
        END,
        CASE WHEN between_seconds + after_seconds >= 0.5 * found.seconds
            THEN CASE
                WHEN contains(closing, 'restart')
                    THEN 'Restart the workers when no task waits for them, such as before the program begins.'
                WHEN is_requested
                    THEN 'Workers were closed on request, as by adaptive scaling: let one remain, such as with'
                        ' cluster.adapt(minimum=1).'
                WHEN departures.kills >= 0.5 * departures.workers
                    THEN format(
                        'Prevent that workers are killed because of memory, as {} (rule killed-workers).',
                        if(departures.kills = 1, 'one was', departures.kills || ' were')
                    )
                WHEN starts_with(closing, 'signal-')
                    THEN 'Find out who sends the signal that stopped the last worker: batch systems send 15 before they'
                        ' preempt a job or end it at its limit.'
                WHEN settings.has_jobs
                    THEN 'Find out why all workers left (evidence), and let some remain, such as batch jobs that do not'
                        ' end at the same time.'
                WHEN departures.unknown > 0
                    THEN format(
                        'Find out why all workers left: {} lost for an unknown reason (rule killed-workers).',
                        if(departures.unknown = 1, 'one was', departures.unknown || ' were')
                    )
                ELSE 'Find out why all workers left (evidence), and let some remain.'
            END
        END
    ) AS change,
    'SELECT name, worker, added_t, removed_t, removal_reason FROM workers ORDER BY added_t' AS evidence,
    trace_id
FROM found
INNER JOIN _cluster_size AS cluster USING (trace_id)
INNER JOIN _run_settings AS settings USING (trace_id)
LEFT JOIN departures USING (trace_id)
LEFT JOIN plans USING (trace_id)
WHERE found.seconds >= greatest($min_seconds, $min_share * (cluster.stop_t - cluster.start_t));
