-- Workers killed, lost or restarted.
-- The compute time of a killed worker is lost: its running attempts, and results that were lost and computed again
-- before a result that was kept had used them. Results that were used before are not part of the cost, and neither are
-- those that a restart of the cluster dropped, which the client may have fetched.
-- Until the nanny has started another worker, its threads are missing, and other workers wait. A kill
-- by a nanny is recorded, and a worker that closes, as after a signal, reports the reason. A worker
-- that the kernel or the batch system killed, or that crashed, is lost for an unknown reason; if the end
-- of its batch job is recorded and passed at that time, the job reached its time limit. Workers that left
-- after the last task are not counted, unless the run went on and lacked what they had. The memory of a worker when it was killed is less than
-- it needs; how much it needs is not recorded. A worker that cannot unpickle a task closes its connection, and is lost for
-- an unknown reason: it is stated if each worker that received tasks of a prefix was lost at once, and no execution of
-- such tasks was recorded. A crash as a task begins looks the same. Dask computes lost results again as long as a client
-- holds them, even if it has fetched them. The saving excludes the time in which the client did its own work, if this is
-- recorded and no other client submitted tasks.
-- Applies: EXISTS (FROM _worker_removals WHERE is_lost OR kill IS NOT NULL)
-- Missing threads: counted
-- Explains: lost attempt, recomputed result, failed attempt, leaving worker
-- Source: departures of workers, and core time of lost and recomputed attempts
-- Documentation: https://distributed.dask.org/en/stable/killed.html
-- $max_names = 3: workers that are named
-- $named_seconds = 0.05: lost or missing time that is stated
-- $max_sample_seconds = 30: age of the last sample of memory of a worker that was lost for an unknown reason
-- $little_memory = 0.5: share of its limit that makes a lack of memory less likely than a crash
-- $at_once_seconds = 1: time between the first task of a prefix on a worker and the loss of the worker
-- $limit_seconds = 30: time around the end of a batch job in which its worker is lost to the time limit
-- $ending_seconds = 2: time between the loss of a worker after the last task and the end of the recording
-- $same_age = 0.05: relative difference of ages at which workers were lost that is called the same
-- $large_result = 0.15: size of a result, as a share of the limit of memory, that is stated
-- $least_saved = 0.6: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
WITH last_tasks AS (
    SELECT trace_id, max(end_t) AS end_t
    FROM _task_runs
    WHERE outcome IN ('memory', 'erred')
    GROUP BY trace_id
),
removed AS (
    SELECT
        trace_id,
        process,
        workers.worker,
        workers.name,
        workers.nthreads,
        workers.memory_limit_bytes,
        workers.removed_t,
        removal.kill,
        removal.is_requested,
        workers.removed_t - workers.added_t AS age_seconds,
        workers.added_t AS joined_t,
        CASE
            WHEN removal.kill IS NOT NULL THEN 'killed because of memory'
            WHEN removal.reason = 'check-worker-ttl'
                THEN 'closed because worker-ttl had passed without a heartbeat'
            WHEN job.worker IS NOT NULL THEN 'lost at the time limit of a batch job'
            WHEN contains(removal.closing, 'restart') THEN 'restarted on request'
            WHEN starts_with(removal.closing, 'signal-')
                THEN 'stopped by ' || replace(removal.closing, '-', ' ')
            WHEN removal.is_requested THEN 'closed on request (' || removal.closing || ')'
            WHEN removal.closing IS NOT NULL THEN 'closed (' || removal.closing || ')'
            ELSE 'lost for an unknown reason'
        END AS what
    FROM _worker_removals AS removal
    INNER JOIN _workers AS workers USING (trace_id, process)
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    LEFT JOIN last_tasks USING (trace_id)
    LEFT JOIN (SELECT DISTINCT trace_id, worker, end_t FROM jobs WHERE worker IS NOT NULL) AS job
        ON workers.trace_id = job.trace_id
        AND workers.worker = job.worker
        AND abs(workers.removed_t - job.end_t) <= $limit_seconds
    WHERE (removal.is_lost OR removal.kill IS NOT NULL)
        AND (
            workers.removed_t < last_tasks.end_t
            OR last_tasks.end_t IS NULL
            -- The last tasks failed because it was lost.
            OR (workers.trace_id, workers.worker) IN (
                SELECT (trace_id, worker) FROM _task_runs WHERE _is_given_up(exception)
            )
            -- The run went on without what was lost; a program that ends takes its workers with it.
            OR (
                coalesce(removal.processing_tasks + removal.lost_results, 1) > 0
                AND cluster.stop_t - workers.removed_t >= $ending_seconds
            )
        )
),
what_happened AS (
    SELECT
        trace_id,
        list(
            CASE workers WHEN 1 THEN 'one worker was ' ELSE workers || ' workers were ' END || what
            ORDER BY what <> 'killed because of memory', what = 'lost for an unknown reason', what
        ) AS parts,
        array_to_string(parts[:-2], ', ') || CASE WHEN len(parts) > 1 THEN ', and ' ELSE '' END
            || parts[-1] AS text
    FROM (SELECT trace_id, what, count(*) AS workers FROM removed GROUP BY ALL)
    GROUP BY trace_id
),
-- Dask gives up on a task whose workers were lost several times.
given_up AS (
    SELECT
        trace_id,
        count(*) AS tasks,
        -- A worker computes first what was assigned to it first.
        min_by(prefix, (processing_t, "key")) AS prefix,
        min_by("key", (processing_t, "key")) AS "key"
    FROM _task_runs
    WHERE outcome = 'erred' AND _is_given_up(exception)
    GROUP BY trace_id
),
-- Other tasks of the same prefix.
survivors AS (
    SELECT trace_id, prefix, count(DISTINCT "key") AS tasks
    FROM _task_runs
    SEMI JOIN given_up USING (trace_id, prefix)
    WHERE outcome = 'memory'
    GROUP BY trace_id, prefix
),
-- Times from the first task of a prefix on a worker to the loss of the worker, null if it was not lost. No execution of
-- tasks of these prefixes is recorded.
unbegun_tasks AS (
    SELECT
        run.trace_id,
        run.prefix,
        run.worker,
        removed.process,
        any_value(removed.removed_t) - min(run.processing_t) AS seconds
    FROM _task_runs AS run
    LEFT JOIN (FROM removed WHERE what = 'lost for an unknown reason') AS removed
        ON run.trace_id = removed.trace_id
        AND run.worker = removed.worker
        AND run.processing_t BETWEEN coalesce(removed.joined_t, '-infinity') AND removed.removed_t
    WHERE run.prefix IS NOT NULL
        AND (run.trace_id, run.prefix) NOT IN (
            SELECT (trace_id, prefix)
            FROM _task_runs
            WHERE prefix IS NOT NULL AND coalesce(execute_start_t, compute_start_t) IS NOT NULL
            UNION ALL
            SELECT (trace_id, prefix) FROM raw.profile WHERE prefix IS NOT NULL
        )
    GROUP BY run.trace_id, run.prefix, run.worker, removed.process
),
-- The prefix whose tasks most workers did not survive.
unbegun_prefixes AS (
    SELECT
        trace_id,
        prefix,
        count(*) AS workers,
        ceil(round(10 * max(seconds), 3)) / 10 AS seconds
    FROM unbegun_tasks
    GROUP BY trace_id, prefix
    HAVING bool_and(coalesce(seconds <= $at_once_seconds, false))
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY count(*) DESC, prefix) = 1
),
-- Memory of workers that were lost for an unknown reason, when they were last sampled.
last_memory AS (
    SELECT
        removed.trace_id,
        max(sample.metrics.memory) AS memory_bytes,
        min(removed.memory_limit_bytes) AS limit_bytes,
        max(removed.removed_t - sample.t) AS seconds
    FROM (FROM removed WHERE what = 'lost for an unknown reason') AS removed
    ASOF LEFT JOIN (FROM raw.worker_sample WHERE metrics.memory IS NOT NULL) AS sample
        ON removed.trace_id = sample.trace_id AND removed.worker = sample.worker AND removed.removed_t >= sample.t
    GROUP BY removed.trace_id
    -- Only if all of them were sampled.
    HAVING bool_and(coalesce(removed.removed_t - sample.t <= $max_sample_seconds, false)) AND limit_bytes > 0
),
-- The largest result of each worker that was killed because of memory, if most of them have it of the same prefix.
large_results AS (
    SELECT trace_id, prefix, count(*) AS workers, max(nbytes) AS nbytes, sum(count(*)) OVER of_trace AS all_workers
    FROM (
        SELECT removed.trace_id, process, arg_max(prefix, nbytes) AS prefix, max(nbytes) AS nbytes
        FROM removed
        INNER JOIN _task_runs AS attempt
            ON removed.trace_id = attempt.trace_id
            AND removed.worker = attempt.worker
            AND attempt.end_t >= coalesce(removed.joined_t, '-infinity'::DOUBLE)
            AND attempt.end_t <= removed.removed_t
        WHERE kill IS NOT NULL AND outcome = 'memory' AND nbytes >= $large_result * memory_limit_bytes
        GROUP BY removed.trace_id, process
    )
    GROUP BY trace_id, prefix
    WINDOW of_trace AS (PARTITION BY trace_id)
    QUALIFY 2 * workers > all_workers
),
-- Those that few of the other workers had: others show that such a result alone kills no worker.
blamed_results AS (
    SELECT large.*
    FROM large_results AS large
    LEFT JOIN _task_runs AS attempt
        ON large.trace_id = attempt.trace_id
        AND large.prefix = attempt.prefix
        AND attempt.outcome = 'memory'
        AND 2 * attempt.nbytes >= large.nbytes
        AND (attempt.trace_id, attempt.worker) NOT IN (SELECT (trace_id, worker) FROM removed)
    GROUP BY ALL
    HAVING 2 * count(DISTINCT attempt.worker) <= workers
),
replaced AS (
    SELECT
        removed.*,
        successor.added_t,
        successor.added_t - removed.removed_t AS missing_seconds
    FROM removed
    ASOF LEFT JOIN (FROM _workers WHERE added_t IS NOT NULL) AS successor
        ON removed.trace_id = successor.trace_id
        AND removed.name = successor.name
        AND removed.removed_t <= successor.added_t
),
deaths AS (
    SELECT
        trace_id,
        count(*) AS deaths,
        count(kill) AS kills,
        count(*) FILTER (what = 'restarted on request') AS restarts,
        count(*) FILTER (is_requested) AS requested,
        count(*) FILTER (starts_with(what, 'stopped by signal')) AS signalled,
        count(*) FILTER (starts_with(what, 'closed because worker-ttl')) AS expired,
        count(*) FILTER (starts_with(what, 'lost at the time limit')) AS at_limit,
        count(*) FILTER (what = 'lost for an unknown reason') AS unknown,
        median(age_seconds) AS age_seconds,
        -- Workers that joined together and were lost together have the same age for another reason.
        coalesce(
            unknown = deaths
            AND deaths > 1
            AND max(age_seconds) - min(age_seconds) <= $same_age * max(age_seconds)
            AND max(joined_t) - min(joined_t) > 2 * $same_age * max(age_seconds),
            false
        ) AS is_same_age,
        array_to_string(list_sort(list(DISTINCT name)), ', ') AS names,
        count(DISTINCT name) AS named_workers,
        max(memory_limit_bytes) FILTER (kill IS NOT NULL) AS limit_bytes,
        max(nthreads) AS nthreads,
        coalesce(sum(nthreads * missing_seconds) FILTER (NOT is_requested), 0) AS missing_seconds
    FROM replaced
    GROUP BY trace_id
),
lost AS (
    SELECT
        trace_id,
        coalesce(sum(seconds) FILTER (
            use = 'lost attempt'
            -- The last attempt at a task that Dask gave up fails.
            OR (use = 'failed attempt' AND process IN (
                SELECT process
                FROM removed
                SEMI JOIN (FROM _task_runs WHERE _is_given_up(exception)) AS failed
                    USING (trace_id, worker)
            ))
        ), 0) AS lost_seconds,
        coalesce(sum(seconds) FILTER (use = 'recomputed result'), 0) AS recomputed_seconds
    FROM _core_time
    GROUP BY trace_id
),
-- A client that restarts the cluster drops all results. Whether it had fetched them is not recorded.
dropped AS (
    SELECT
        ending.trace_id,
        count(*) AS dropped_results,
        coalesce(sum(attempt.compute_seconds), 0) AS dropped_seconds
    FROM (
        SELECT trace_id, key, rowid AS seq
        FROM raw.transition
        WHERE "start" = 'memory' AND regexp_matches(stimulus_id, '^client-restart-[0-9]')
    ) AS ending
    ASOF INNER JOIN (SELECT * FROM _task_runs WHERE outcome = 'memory') AS attempt
        ON ending.trace_id = attempt.trace_id
        AND ending.key = attempt.key
        AND ending.seq > attempt.end_seq
    GROUP BY ending.trace_id
),
-- From the first loss until all workers are back and no task is left.
affected AS (
    SELECT
        departures.trace_id,
        departures.start_t,
        coalesce(min(uses.t + bucket.width), any_value(cluster.stop_t)) AS stop_t
    FROM (
        SELECT trace_id, min(removed_t) AS start_t, max(greatest(removed_t, added_t)) AS settled_t
        FROM replaced
        GROUP BY trace_id
    ) AS departures
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    INNER JOIN _core_time_buckets AS bucket USING (trace_id)
    LEFT JOIN _bucket_uses AS uses
        ON departures.trace_id = uses.trace_id
        AND departures.settled_t <= uses.t
        AND uses.workless_seconds > 0
    GROUP BY departures.trace_id, departures.start_t
),
-- The client of the run, unless there are several.
submitting AS (
    SELECT trace_id, any_value(client) AS client
    FROM (
        -- Tasks can submit tasks.
        SELECT DISTINCT trace_id, client FROM raw.task WHERE NOT starts_with(client, 'Client-worker-')
    )
    GROUP BY trace_id
    HAVING count(*) = 1
),
waited AS (
    SELECT
        trace_id,
        any_value(affected.stop_t - affected.start_t) - sum(
            least(activity.stop_t, affected.stop_t) - greatest(activity.start_t, affected.start_t)
        ) AS seconds
    FROM affected
    INNER JOIN submitting USING (trace_id)
    INNER JOIN (FROM client_activity WHERE activity = 'own') AS activity USING (trace_id, client)
    -- Of a program that never waits in its main thread, own work can be waiting.
    SEMI JOIN (FROM client_activity WHERE activity = 'wait') AS waiting USING (trace_id, client)
    WHERE activity.start_t < affected.stop_t AND activity.stop_t > affected.start_t
    GROUP BY trace_id
),
costs AS (
    SELECT
        deaths.*,
        dropped_results,
        coalesce(lost_seconds, 0) AS lost_seconds,
        coalesce(recomputed_seconds, 0) AS recomputed_seconds,
        missing_seconds + coalesce(lost_seconds + recomputed_seconds, 0) AS seconds,
        list_filter([
            CASE WHEN lost.lost_seconds >= $named_seconds
                THEN format('{:.1f} s of running attempts were lost', lost.lost_seconds) END,
            CASE WHEN dropped_results > 0 THEN format(
                '{} {:.1f} s to compute {} dropped',
                CASE dropped_results
                    WHEN 1 THEN 'a result that had taken'
                    ELSE dropped_results || ' results that had taken'
                END,
                dropped_seconds,
                CASE dropped_results WHEN 1 THEN 'was' ELSE 'were' END
            ) END,
            CASE WHEN lost.recomputed_seconds >= $named_seconds
                THEN format(
                    '{:.1f} s of results were lost before a kept result had used them, and computed again',
                    lost.recomputed_seconds
                ) END,
            CASE WHEN missing_seconds >= $named_seconds
                THEN format('missing threads cost {:,.1f} core-seconds', missing_seconds) END
        ], lambda part: part IS NOT NULL) AS losses
    FROM deaths
    LEFT JOIN lost USING (trace_id)
    LEFT JOIN dropped USING (trace_id)
)
SELECT
    CASE
        WHEN given_up.prefix IS NOT NULL AND named_workers > 1 AND expired + at_limit = 0 AND NOT is_same_age
            THEN given_up.prefix
        WHEN named_workers <= $max_names THEN names
    END AS entity,
    -- How much memory would suffice is not known.
    CASE WHEN kills > 0 THEN 'medium' ELSE 'high' END AS confidence,
    concat(
        upper(text[1]), text[2:],
        coalesce(': ' || CASE len(losses)
            WHEN 0 THEN NULL
            WHEN 1 THEN losses[1]
            ELSE array_to_string(losses[:-2], ', ') || ', and ' || losses[-1]
        END, ''),
        '.',
        CASE
            WHEN given_up.tasks = 1
                THEN format(' Dask gave up on {}, whose workers were lost each time.', given_up."key")
            WHEN given_up.tasks > 1
                THEN format(
                    ' Dask gave up on {} tasks, such as {}, whose workers were lost each time.',
                    given_up.tasks, given_up."key"
                )
        END,
        CASE survivors.tasks
            WHEN 1 THEN format(' Another task of {} ended well.', given_up.prefix)
            ELSE format(' {:,} other tasks of {} ended well.', survivors.tasks, given_up.prefix)
        END,
        format(
            ' {} had computed a result of {}, {}{}.',
            CASE
                WHEN deaths = 1 THEN 'It'
                WHEN large.workers = deaths THEN 'Each'
                WHEN kills = 1 THEN 'The one that was killed because of memory'
                WHEN large.workers = kills THEN format('All {} that were killed because of memory', kills)
                ELSE format('{} of the {} that were killed because of memory', large.workers, kills)
            END,
            large.prefix, if(large.workers > 1, 'up to ', ''), _byte_size(large.nbytes)
        ),
        CASE WHEN unknown > 0 THEN format(
            ' When last sampled, up to {:.1f} s before, {} used {} of {} of memory{}.',
            last_memory.seconds,
            CASE WHEN unknown < deaths THEN 'those lost for an unknown reason' WHEN unknown = 1 THEN 'it' ELSE 'they' END,
            _byte_size(last_memory.memory_bytes), _byte_size(last_memory.limit_bytes),
            if(unknown > 1, ' at most', '')
        ) END,
        format(
            ' {} {:.1f} s after the first of them, and no execution of such a task is recorded.',
            if(
                unbegun.workers = 1,
                'The worker',
                format('Each of the {} workers', unbegun.workers)
            ) || ' that received tasks of ' || unbegun.prefix || ' was lost at most',
            unbegun.seconds
        ),
        format(
            ' {} {}{}.',
            CASE fatal.workers
                WHEN 1 THEN 'The killed worker had'
                ELSE format('Each of the {} killed or lost workers had', fatal.workers)
            END,
            CASE
                WHEN fatal.key IS NULL THEN 'a chunk of '
                WHEN fatal.workers = 1 THEN 'one chunk: '
                ELSE 'the same chunk: '
            END || parse_filename(fatal.filename),
            coalesce(_entries_text(fatal.treename, fatal.entry_start, fatal.entry_stop, fatal.dataset), '')
        )
    ) AS sentence,
    costs.seconds AS core_seconds,
    $least_saved * costs.seconds / greatest(cluster.peak_nthreads, 1) AS wall_seconds_min,
    -- Other workers wait for lost results. least() ignores null.
    least(costs.seconds, cluster.stop_t - cluster.start_t, waited.seconds) AS wall_seconds_max,
    CASE
        WHEN kills > 0
            THEN concat(
                CASE
                    WHEN fatal.workers > 1 AND fatal.key IS NOT NULL
                        THEN format(
                            'Find out why this chunk of {} needs so much memory, or use smaller chunks. ',
                            fatal.filename
                        )
                    WHEN fatal.workers > 1
                        THEN format(
                            'Find out why events of {} need so much memory, or use smaller chunks. ',
                            fatal.filename
                        )
                    ELSE concat(
                        CASE
                            WHEN settings.has_chunks THEN 'Use smaller chunks'
                            WHEN large.prefix IS NOT NULL THEN format(
                                'Let {} return less, such as by reducing or writing the data in the tasks before it',
                                large.prefix
                            )
                            ELSE 'Let a task need less memory (smaller partitions or arrays)'
                        END,
                        CASE WHEN nthreads > 1 THEN ', or use fewer threads per worker. ' ELSE '. ' END
                    )
                END,
                coalesce(
                    format(
                        'Or give each worker more than {} of memory; how much more is not known.',
                        _byte_size(costs.limit_bytes)
                    ),
                    'Or give each worker more memory.'
                )
            )
        WHEN expired > 0
            THEN format(
                'Raise distributed.scheduler.worker-ttl{} above the longest time for which a task holds the GIL, or'
                ' release the GIL in such tasks.',
                coalesce((
                    SELECT ' (now ' || any_value(value) || ')'
                    FROM config
                    WHERE config.trace_id = costs.trace_id
                        AND name = 'distributed.scheduler.worker-ttl'
                        AND process = 'scheduler'
                ), '')
            )
        WHEN at_limit > 0
            THEN format(
                'Request batch jobs that are longer than the run{}, or start workers with a --lifetime that ends'
                ' minutes before the job does, and --lifetime-stagger: such workers move their results to others.',
                coalesce((
                    SELECT format(' (the shortest took {:,.1f} min)', min(end_t - start_t) / 60)
                    FROM jobs
                    WHERE jobs.trace_id = costs.trace_id AND jobs.process = 'worker'
                ), '')
            )
        WHEN unbegun.workers > 0.5 * deaths
            THEN format(
                'Search the logs of the workers for "Failed to deserialize" or an import error: a worker that cannot'
                ' unpickle a task, such as without a module that the client has, closes its connection. Install the module'
                ' there, or send one of your own with client.upload_file. Otherwise, run a task of {} alone in a process'
                ' with PYTHONFAULTHANDLER=1, which prints where compiled code crashed.', unbegun.prefix
            )
        WHEN is_same_age
            THEN format(
                'Look for a time limit: all of these workers were lost at the same age, {:.0f} s. If the batch system'
                ' ends their jobs, request longer ones, or use a shorter --lifetime.', age_seconds
            )
        WHEN given_up.tasks > 0 AND last_memory.memory_bytes < $little_memory * last_memory.limit_bytes
            THEN format(
                'Run {} alone in a process with PYTHONFAULTHANDLER=1, which prints where compiled code crashed (segmentation'
                ' fault, SIGSEGV). Other causes of such an end are memory that was allocated since the last sample, and an'
                ' exit of the process. The logs of the nannies have the exit code or signal.', given_up.prefix
            )
        WHEN given_up.tasks > 0
            THEN format(
                'Run {} alone: look for memory beyond its limit, a crash of compiled code, or an exit of the'
                ' process.', given_up.prefix
            )
        WHEN deaths = restarts AND recomputed_seconds > 0
            THEN 'Restart workers only after their results have been gathered and the futures released: lost'
                ' results are computed again.'
        WHEN deaths = restarts
            THEN 'Restart workers between runs rather than during one.'
        WHEN deaths = requested
            THEN 'Retire workers before they are closed (client.retire_workers), so that their results move to'
                ' other workers.'
        WHEN deaths = signalled
            THEN 'Find out who sends the signal: batch systems send 15 before they preempt a job or end it at its limit.'
                ' Request jobs that are not preempted, or use shorter tasks, of which less is lost.'
        ELSE 'Look for the cause in the logs of the workers and of the batch system.'
    END AS change,
    'SELECT t, what, worker, key, detail, cause FROM failures WHERE what IN (''worker lost'','
    ' ''attempt lost'') OR starts_with(cause, ''KilledWorker'')' AS evidence,
    costs.trace_id
FROM costs
INNER JOIN what_happened USING (trace_id)
INNER JOIN _cluster_size AS cluster USING (trace_id)
INNER JOIN _run_settings AS settings USING (trace_id)
LEFT JOIN waited USING (trace_id)
LEFT JOIN given_up USING (trace_id)
LEFT JOIN survivors USING (trace_id)
LEFT JOIN last_memory USING (trace_id)
LEFT JOIN blamed_results AS large USING (trace_id)
LEFT JOIN unbegun_prefixes AS unbegun USING (trace_id)
LEFT JOIN _fatal_chunks AS fatal USING (trace_id);
