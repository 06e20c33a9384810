-- Results that were computed again for a later graph.
-- A key was computed, its result was kept, and computed again for a graph that was submitted later, because it
-- was no longer there. Attempts for the same graph, as after the loss of a worker, are not counted. Keeping the
-- results takes memory; computing everything that needs them in one call does not.
-- Records: task
-- Applies: EXISTS (FROM _task_runs WHERE attempt > 1)
-- Explains: repeated result
-- Source: keys that several graphs asked for
-- Documentation: https://docs.dask.org/en/stable/best-practices.html#persist-when-you-can
-- $min_seconds = 1: time that computed results again
-- $least_saved = 0.4: part of this time that is saved at least, on all threads; assumed
-- $most_saved = 1.0: part of this time that is saved at most, on all threads; assumed
WITH again AS (
    SELECT
        run.trace_id,
        run.prefix,
        run.key,
        run.compute_seconds,
        run.nbytes,
        lag(run.submission) OVER (PARTITION BY run.trace_id, run.key ORDER BY run.attempt) AS before
    FROM _task_runs AS run
    LEFT JOIN _discarded_results AS discarded USING (seq)
    WHERE _is_kept(outcome, discarded.seq)
    QUALIFY before <> run.submission
),
prefixes AS (
    SELECT
        trace_id,
        prefix,
        count(DISTINCT key) AS keys,
        count(*) AS attempts,
        sum(compute_seconds) AS seconds,
        sum(nbytes) * count(DISTINCT key) / count(*) AS nbytes
    FROM again
    GROUP BY trace_id, prefix
),
found AS (
    SELECT
        trace_id,
        count(*) AS prefixes,
        arg_max(prefix, seconds) AS prefix,
        max(seconds) AS prefix_seconds,
        sum(keys)::BIGINT AS keys,
        sum(attempts)::BIGINT AS attempts,
        sum(seconds) AS seconds,
        arg_max(nbytes, seconds) AS nbytes
    FROM prefixes
    GROUP BY trace_id
    HAVING sum(seconds) >= $min_seconds
)
SELECT
    prefix AS entity,
    'high' AS confidence,
    format(
        '{} again in {}, for graphs that were submitted after the first result: {:,.1f} core-seconds{}.',
        if(keys = 1, '1 key was computed', keys || ' keys were computed'),
        if(attempts = 1, '1 attempt', attempts || ' attempts'),
        seconds,
        CASE WHEN prefixes > 1 THEN format(', {:,.1f} of them for {}', prefix_seconds, prefix)
            ELSE format(' for {}', prefix) END
    ) AS sentence,
    seconds AS core_seconds,
    $least_saved * seconds / mean_nthreads AS wall_seconds_min,
    $most_saved * seconds / mean_nthreads AS wall_seconds_max,
    format(
        'Compute what needs {} in one call, such as dask.compute(a, b), or keep it with persist(){}.',
        prefix, coalesce(format(': its results have {}', format_bytes(nbytes::BIGINT)), '')
    ) AS change,
    format(
        'SELECT key, count(*) AS attempts, sum(compute_seconds) AS seconds FROM task_runs WHERE prefix = ''{}'' AND kept'
        ' GROUP BY key HAVING count(*) > 1 ORDER BY seconds DESC', replace(prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id);
