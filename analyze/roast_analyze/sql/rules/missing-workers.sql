-- Planned workers that were not there.
-- The cluster object planned more workers than were there, while ready tasks waited for a thread. Workers count by
-- name, so that replacements of lost ones are not counted again. With the missing workers, each with the mean number
-- of threads, the same work would take as much less time as there would be more threads, at most one per ready task.
-- Workers that joined late have a rule of their own.
-- Applies: EXISTS (FROM cluster_sizes WHERE planned > joined)
-- Missing threads: counted
-- Source: dask-jobqueue, whose cluster objects do not notice jobs that wait or fail
-- Documentation: https://jobqueue.dask.org/en/latest/debug.html
-- $min_seconds = 1: missing thread time
-- $min_share = 0.02: saving as a share of the run
-- $least_saved = 0.6: part of the saving by the threads that is saved at least; assumed
-- $most_saved = 1.1: ratio of the largest saving to it; assumed
WITH joined AS (
    -- Of the whole recording, also in a time range.
    SELECT trace_id, count(DISTINCT coalesce(name, worker)) AS joined
    FROM raw.worker_added
    GROUP BY trace_id
),
found AS (
    SELECT
        trace_id,
        any_value(joined) AS joined,
        max(planned) AS planned,
        sum(seconds) AS seconds,
        sum(missing * seconds) AS thread_seconds,
        sum(seconds * missing / (nthreads + missing)) AS saved_seconds
    FROM (
        SELECT
            ready_time.*,
            joined.joined,
            least(ready, (planned - joined.joined) * nthreads / workers) AS missing
        FROM _ready_times AS ready_time
        INNER JOIN joined USING (trace_id)
        WHERE planned > joined.joined
    )
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    -- Another worker could not compute tasks that only some workers may.
    if(trace_id IN (SELECT trace_id FROM restrictions), 'medium', 'high') AS confidence,
    format(
        '{} of {} workers that the cluster planned {} not there during the recording, while ready tasks waited for a'
        ' thread for {:.1f} s.',
        planned - joined, planned, if(planned - joined = 1, 'was', 'were'), found.seconds
    ) AS sentence,
    thread_seconds AS core_seconds,
    $least_saved * saved_seconds AS wall_seconds_min,
    $most_saved * saved_seconds AS wall_seconds_max,
    format(
        'Find out why they did not join: {} can wait to be started, end at once (see their logs), or not reach the'
        ' scheduler.',
        if(settings.has_jobs, 'their batch jobs', 'batch jobs, containers or processes')
    ) AS change,
    'SELECT t, planned, requested, joined FROM cluster_sizes ORDER BY t' AS evidence,
    trace_id
FROM found
INNER JOIN _run_settings AS settings USING (trace_id)
INNER JOIN _run_size USING (trace_id)
WHERE thread_seconds >= $min_seconds AND saved_seconds >= $min_share * run_seconds;
