-- Results that were computed again for a later graph.
-- A key was computed, its result was kept, and computed again for a graph that was submitted later, because it
-- was no longer there. Attempts for the same graph, as after the loss of a worker, are not counted. Keeping the
-- results takes memory; computing everything that needs them in one call does not.
-- When a client disconnects, because it closes or its connection breaks, Dask drops the results that no other
-- client wants and cancels the rest of its work. Results that were dropped then are stated apart, since
-- persist() does not keep them either.
-- Records: task
-- Applies: EXISTS (FROM _task_runs WHERE attempt > 1)
-- Explains: repeated result
-- Source: keys that several graphs asked for, and the transitions that dropped their results
-- Documentation: https://docs.dask.org/en/stable/best-practices.html#persist-when-you-can
-- $min_seconds = 1: time that computed results again
-- $least_saved = 0.4: part of this time that is saved at least, on all threads; assumed
-- $most_saved = 1.0: part of this time that is saved at most, on all threads; assumed
-- $just_before_seconds = 0.01: time before these transitions at which keys can be recorded as released with them
-- $same_seconds = 1: time between the departure of a client and the transitions that follow from it
WITH repeated AS (
    SELECT
        run.trace_id,
        run.prefix,
        run.key,
        run.attempt,
        run.processing_t,
        run.compute_seconds,
        run.nbytes,
        lag(run.submission) OVER same AS before,
        lag(run.end_t) OVER same AS before_t,
        lag(run.compute_seconds) OVER same AS before_seconds
    FROM _task_runs AS run
    LEFT JOIN _discarded_results AS discarded USING (seq)
    WHERE _is_kept(outcome, discarded.seq)
    WINDOW same AS (PARTITION BY run.trace_id, run.key ORDER BY run.attempt)
    QUALIFY before <> run.submission
),
-- Of each, the departure of a client that dropped the result before.
departures AS (
    SELECT
        repeated.trace_id,
        repeated.key,
        repeated.attempt,
        any_value(dropped.stimulus_id) AS stimulus_id,
        min(dropped.t) AS dropped_t,
        any_value(departed.client) AS client,
        any_value(departed.t) AS t
    FROM repeated
    INNER JOIN raw.transition AS dropped
        ON repeated.trace_id = dropped.trace_id
        AND repeated.key = dropped.key
        AND dropped."start" = 'memory'
        AND starts_with(dropped.stimulus_id, 'remove-client')
        AND dropped.t >= repeated.before_t
        AND dropped.t <= repeated.processing_t
    LEFT JOIN raw.task AS task ON repeated.before = task.rowid
    LEFT JOIN raw.client_removed AS departed
        ON task.trace_id = departed.trace_id
        AND task.client = departed.client
        AND abs(departed.t - dropped.t) <= $same_seconds
    GROUP BY ALL
),
again AS (
    SELECT repeated.*, departures.key IS NOT NULL AS is_dropped
    FROM repeated
    LEFT JOIN departures USING (trace_id, key, attempt)
),
-- Work of a client that had not ended when it left.
cut_off AS (
    SELECT trace_id, count(DISTINCT key) AS keys, count(*) FILTER (state = 'processing') AS attempts
    FROM (
        SELECT trace_id, key, arg_min("start", rowid) AS state
        FROM raw.transition
        SEMI JOIN departures USING (trace_id, stimulus_id)
        GROUP BY trace_id, stimulus_id, key
    )
    WHERE state IN ('waiting', 'queued', 'no-worker', 'processing')
    GROUP BY trace_id
),
clients AS (
    SELECT trace_id, client, max(t) AS t, min(dropped_t) AS dropped_t
    FROM departures
    WHERE client IS NOT NULL
    GROUP BY trace_id, client
),
wanted AS (
    SELECT trace_id, count(DISTINCT key) AS keys
    FROM wanted_keys
    INNER JOIN clients USING (trace_id, client)
    -- Until its departure: these keys end with the first transition that it caused, or later.
    WHERE start_t <= t AND coalesce(stop_t >= dropped_t - $just_before_seconds, true)
    GROUP BY trace_id
),
prefixes AS (
    SELECT
        trace_id,
        is_dropped,
        prefix,
        count(DISTINCT key) AS keys,
        count(*) AS attempts,
        sum(compute_seconds) AS seconds,
        sum(before_seconds) AS before_seconds,
        sum(nbytes) * count(DISTINCT key) / count(*) AS nbytes
    FROM again
    GROUP BY trace_id, is_dropped, prefix
),
found AS (
    SELECT
        trace_id,
        is_dropped,
        count(*) AS prefixes,
        arg_max(prefix, seconds) AS prefix,
        max(seconds) AS prefix_seconds,
        sum(keys)::BIGINT AS keys,
        sum(attempts)::BIGINT AS attempts,
        sum(seconds) AS seconds,
        sum(before_seconds) AS before_seconds,
        arg_max(nbytes, seconds) AS nbytes
    FROM prefixes
    GROUP BY trace_id, is_dropped
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
INNER JOIN _run_size USING (trace_id)
WHERE NOT is_dropped
UNION ALL BY NAME
SELECT
    prefix AS entity,
    'high' AS confidence,
    concat(
        if(departed.departures = 1, 'A client', departed.departures || ' clients'),
        ' disconnected',
        format(
            ' while {} wanted {}', if(departed.departures = 1, 'it', 'they'), _counted(wanted.keys, 'key')
        ),
        format(
            ': {}{}, which had taken {:,.1f} s, {} dropped, and computed again for a later graph in {:,.1f}'
            ' core-seconds.',
            _counted(found.attempts, 'result'),
            if(prefixes = 1, ' of ' || prefix, ', mostly of ' || prefix), before_seconds,
            if(found.attempts = 1, 'was', 'were'), seconds
        ),
        format(
            ' {} that had not ended {} dropped, too{}.', _counted(cut_off.keys, 'task'),
            if(cut_off.keys = 1, 'was', 'were'),
            CASE WHEN cut_off.attempts > 0
                THEN format(', and {} cancelled', _counted(cut_off.attempts, 'attempt')) ELSE '' END
        )
    ) AS sentence,
    seconds AS core_seconds,
    $least_saved * seconds / mean_nthreads AS wall_seconds_min,
    $most_saved * seconds / mean_nthreads AS wall_seconds_max,
    concat(
        CASE WHEN cut_off.keys > 0
            THEN 'Keep the client connected until its work has ended: run it near the cluster and independent of a'
            ' terminal, for example as a batch job. '
        END,
        'Results outlast their client if they are published (client.publish_dataset), or if tasks write them;'
        ' tasks submitted with fire_and_forget are computed without a client. persist() keeps results only as long as'
        ' the client is connected.'
    ) AS change,
    'SELECT client, start_t, stop_t, tasks, compute_seconds FROM sessions ORDER BY start_t' AS evidence,
    trace_id
FROM found
INNER JOIN _run_size USING (trace_id)
INNER JOIN (
    SELECT trace_id, count(DISTINCT stimulus_id) AS departures FROM departures GROUP BY trace_id
) AS departed USING (trace_id)
LEFT JOIN wanted USING (trace_id)
LEFT JOIN cut_off USING (trace_id)
WHERE is_dropped;
