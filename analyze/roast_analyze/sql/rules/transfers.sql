-- Transfers between workers, or of results to the client.
-- The time is that of core_time: one waiting attempt explains one idle thread. Without transfers,
-- threads would compute for at least half of it. The upper end of the saving also assumes a shorter
-- tail, earlier dispatch, because event loops do not serialize data, and tasks that compute as fast as
-- with local inputs: received data is deserialized, and transfers compete with computing for memory and
-- the interpreter. The compute times compared are medians of tasks of a prefix with the same number of
-- inputs. The client counts as waiting for its results if they are large and it is still waiting after
-- the last one was computed, and no task is left. The upper end also includes the time in which the last merges waited for
-- these results.
-- Applies: EXISTS (FROM _core_time WHERE use = 'transfer')
-- Applies: (SELECT sum(nbytes) FROM _task_runs WHERE outcome = 'memory') >= $min_result_bytes
-- Explains: transfer, after last result, dependencies
-- Source: Spark's "shuffle read blocked time"; recorded transfers of attempts
-- Documentation: https://distributed.dask.org/en/stable/efficiency.html
-- $min_share = 0.05: share of the core time
-- $min_attempts = 5: attempts with transferred inputs, and with local ones, whose compute times are compared
-- $min_result_bytes = 5e6: results that the client fetches
-- $min_fetch_seconds = 0.5: time that it waits for them
-- $min_fetch_share = 0.05: the same, as a share of the run
-- $min_relative_duration = 1.1: compute time with transferred inputs, relative to local ones
WITH waited AS (
    SELECT trace_id, prefix, sum(seconds) AS seconds
    FROM _core_time
    WHERE use = 'transfer'
    GROUP BY trace_id, prefix
),
found AS (
    SELECT waited.*, mean_nthreads
    FROM waited
    INNER JOIN _run_size USING (trace_id)
    WHERE waited.seconds >= $min_share * run_core_seconds AND prefix IS NOT NULL
),
idle AS (
    SELECT
        trace_id,
        sum(tail_seconds + dependencies_seconds) AS tail_seconds,
        sum(dispatch_seconds) AS dispatch_seconds
    FROM _bucket_uses
    GROUP BY trace_id
),
attempts AS (
    SELECT
        task.trace_id,
        task.prefix,
        attempt.worker,
        task.dependencies,
        attempt.whole_seconds AS seconds,
        coalesce(attempt.transfer_seconds > 0, false) AS has_transfer
    FROM _task_runs AS attempt
    INNER JOIN raw.task AS task ON attempt.submission = task.rowid
    INNER JOIN found ON task.trace_id = found.trace_id AND task.prefix = found.prefix
    WHERE attempt.outcome = 'memory' AND len(task.dependencies) > 0
),
compared AS (
    SELECT
        trace_id,
        prefix,
        count(*) FILTER (has_transfer) AS attempts,
        median(seconds) FILTER (has_transfer) AS seconds,
        median(seconds) FILTER (NOT has_transfer) AS local_seconds
    FROM attempts
    GROUP BY trace_id, prefix, len(dependencies)
    HAVING least(attempts, count(*) - attempts) >= $min_attempts
),
slowed AS (
    SELECT
        trace_id,
        prefix,
        sum(attempts)::BIGINT AS attempts,
        sum(attempts * (seconds - local_seconds)) AS seconds
    FROM compared
    WHERE seconds >= $min_relative_duration * local_seconds
    GROUP BY trace_id, prefix
),
inputs AS (
    SELECT trace_id, prefix, worker, unnest(dependencies) AS dependency FROM attempts
),
-- Inputs that no task of the trace makes.
sent AS (
    SELECT trace_id, prefix, count(DISTINCT dependency) AS inputs
    FROM inputs
    ANTI JOIN raw.task AS task ON inputs.trace_id = task.trace_id AND inputs.dependency = task.key
    GROUP BY trace_id, prefix
    HAVING count(*) >= $min_attempts
),
moved AS (
    SELECT
        trace_id,
        prefix,
        sum(nbytes) AS nbytes,
        max_by(source, nbytes) AS source,
        max(nbytes) > 0.5 * sum(nbytes) AS is_most
    FROM (
        SELECT
            inputs.trace_id,
            inputs.prefix,
            result.prefix AS source,
            sum(result.nbytes) AS nbytes
        -- Tasks of a worker share a transfer.
        FROM (SELECT DISTINCT trace_id, prefix, worker, dependency FROM inputs) AS inputs
        INNER JOIN (
            FROM _task_runs SEMI JOIN found USING (trace_id) ANTI JOIN _discarded_results USING (seq)
        ) AS result
            ON inputs.trace_id = result.trace_id
            AND inputs.dependency = result.key
            AND inputs.worker <> result.worker
            AND result.outcome = 'memory'
        GROUP BY ALL
    )
    GROUP BY trace_id, prefix
),
last_results AS (
    SELECT trace_id, max(end_t) AS last_t
    FROM _task_runs
    WHERE outcome = 'memory'
    GROUP BY trace_id
),
-- Only time in the function that waited for the last result.
fetched AS (
    SELECT
        waiting.trace_id,
        sum(
            least(later.stop_t, state.stop_t) - greatest(later.start_t, waiting.last_t, state.start_t)
        ) AS seconds
    FROM (
        SELECT last.trace_id, last.last_t, activity.client, activity."function"
        FROM last_results AS last
        INNER JOIN client_activity AS activity
            ON last.trace_id = activity.trace_id
            AND activity.activity = 'wait'
            AND activity.start_t <= last.last_t
            AND activity.stop_t > last.last_t
    ) AS waiting
    INNER JOIN client_activity AS later
        ON waiting.trace_id = later.trace_id
        AND waiting.client = later.client
        AND waiting."function" = later."function"
        AND later.activity = 'wait'
        AND later.stop_t > waiting.last_t
    INNER JOIN _wall_time AS state
        ON waiting.trace_id = state.trace_id
        AND state.state = 'client waits'
        AND state.start_t < later.stop_t
        AND state.stop_t > greatest(later.start_t, waiting.last_t)
    GROUP BY waiting.trace_id
),
results AS (
    SELECT attempt.trace_id, sum(attempt.nbytes) AS nbytes, max_by(attempt.prefix, attempt.nbytes) AS prefix
    FROM _task_runs AS attempt
    INNER JOIN last_results AS last USING (trace_id)
    SEMI JOIN fetched USING (trace_id)
    ANTI JOIN _discarded_results USING (seq)
    WHERE attempt.outcome = 'memory'
        AND EXISTS (
            FROM wanted_keys AS wanted
            WHERE wanted.trace_id = attempt.trace_id
                AND wanted.key = attempt.key
                AND coalesce(wanted.stop_t, 'infinity') >= last.last_t
        )
    GROUP BY attempt.trace_id
)
SELECT
    concat(nullif(moved.source, found.prefix) || ' to ', found.prefix) AS entity,
    -- Other work can be the reason for longer compute times.
    CASE WHEN slowed.seconds IS NULL THEN 'high' ELSE 'medium' END AS confidence,
    concat(
        format(
            'Threads waited {:,.1f} core-seconds for inputs of {} from other workers', found.seconds, found.prefix
        ),
        format(
            ': {}, {} results of {}', _byte_size(moved.nbytes),
            CASE WHEN moved.is_most THEN 'mostly' ELSE 'such as' END, moved.source
        ),
        CASE WHEN moved.source IS NULL THEN format(
            ': {}, such as data that a client has sent',
            if(sent.inputs = 1, 'one input', sent.inputs || ' inputs') || ' that no recorded task made'
        ) END,
        '.',
        format(
            ' With them, {:,} tasks computed {:.1f} s longer in all than on local inputs.', slowed.attempts,
            slowed.seconds
        )
    ) AS sentence,
    found.seconds + coalesce(slowed.seconds, 0) AS core_seconds,
    0.5 * found.seconds / mean_nthreads AS wall_seconds_min,
    1.1
        * (
            found.seconds
            + least(coalesce(tail_seconds, 0), found.seconds)
            + least(coalesce(dispatch_seconds, 0), found.seconds)
            + coalesce(slowed.seconds, 0)
        )
        / mean_nthreads AS wall_seconds_max,
    CASE
        WHEN _is_shuffle(found.prefix) OR _is_shuffle(moved.source)
            THEN 'Move less data: select rows and columns before the shuffle, join or rechunking, use partitions or'
            ' chunks that later steps need, or avoid it.'
            || _rechunking_hint(if(_is_shuffle(found.prefix), found.prefix, moved.source))
        WHEN moved.source IS NULL AND sent.inputs IS NOT NULL
            THEN 'If many tasks need the same data of the client, send it to all workers'
            ' (client.scatter(data, broadcast=True)), or load it once in each worker; or use fewer workers with more'
            ' threads each.'
        ELSE concat(
            'Move less data: reduce the results', ' of ' || moved.source,
            ' before ', found.prefix, ' combines them, or use fewer workers with more threads each.'
        )
    END AS change,
    format(
        'SELECT dependency_prefix, count(*) AS inputs, sum(bytes) AS bytes FROM dependencies'
        ' WHERE prefix = ''{}'' AND is_moved GROUP BY ALL', replace(found.prefix, '''', '''''')
    ) AS evidence,
    trace_id
FROM found
LEFT JOIN moved USING (trace_id, prefix)
LEFT JOIN sent USING (trace_id, prefix)
LEFT JOIN slowed USING (trace_id, prefix)
LEFT JOIN idle USING (trace_id)
UNION ALL BY NAME
SELECT
    results.prefix AS entity,
    'high' AS confidence,
    format(
        'After the last task, the client waited {:.1f} s for results of {}: {}.', fetched.seconds,
        results.prefix, _byte_size(results.nbytes)
    ) AS sentence,
    fetched.seconds * mean_nthreads AS core_seconds,
    0.6 * fetched.seconds AS wall_seconds_min,
    1.1 * (
        fetched.seconds
        + (coalesce(waited.seconds, 0) + coalesce(tail_seconds, 0)) / mean_nthreads
    ) AS wall_seconds_max,
    'Return less to the client, such as histograms instead of columns, or write results to files in the'
    ' tasks.' AS change,
    'SELECT "function", activity, start_t, seconds FROM client_activity ORDER BY start_t' AS evidence,
    fetched.trace_id
FROM fetched
INNER JOIN results USING (trace_id)
INNER JOIN _run_size USING (trace_id)
LEFT JOIN (SELECT trace_id, sum(seconds) AS seconds FROM waited GROUP BY trace_id) AS waited
    USING (trace_id)
LEFT JOIN idle USING (trace_id)
WHERE results.nbytes >= $min_result_bytes
    AND fetched.seconds >= greatest($min_fetch_seconds, $min_fetch_share * run_seconds);
