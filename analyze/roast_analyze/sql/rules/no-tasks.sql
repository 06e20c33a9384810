-- Workers without any task.
-- The program recorded itself, and submitted nothing to the workers that were there. This can be intended, as in a
-- session that only looks at a cluster.
-- Applies: EXISTS (FROM raw.client_activity WHERE trace_id NOT IN (SELECT trace_id FROM raw.task))
-- Explains: before first graph
-- Source: tasks, workers and states of view wall_time
-- Documentation: https://docs.dask.org/en/stable/scheduling.html
-- $min_seconds = 3: time in which the client worked or waited
WITH active AS (
    SELECT
        trace_id,
        sum(seconds) AS seconds,
        coalesce(sum(seconds) FILTER (state = 'client computes'), 0) AS own_seconds
    FROM _wall_time
    WHERE state IN ('client computes', 'client makes graphs', 'client waits')
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    format(
        'The client submitted no task to the {} in {:.1f} s{}.',
        _counted(peak_workers, 'worker'), active.seconds,
        if(own_seconds >= 0.5 * active.seconds, format(', of which its own work took {:.1f} s', own_seconds), '')
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    concat(
        'If work was meant for these workers, look for what runs it elsewhere: compute(scheduler=…) and',
        ' dask.config.set(scheduler=…) replace the client, and coffea''s FuturesExecutor and IterativeExecutor use processes of',
        ' their own (DaskExecutor uses the workers).'
    ) AS change,
    'SELECT start_t, seconds, state FROM wall_time ORDER BY start_t' AS evidence,
    trace_id
FROM active
INNER JOIN _cluster_size AS cluster USING (trace_id)
WHERE active.seconds >= $min_seconds
    AND peak_workers > 0
    AND trace_id NOT IN (SELECT trace_id FROM raw.task)
    AND trace_id NOT IN (SELECT trace_id FROM raw.transition)
    AND trace_id NOT IN (SELECT trace_id FROM raw.chunk);
