-- Failed attempts.
-- The compute time of a failed attempt is lost, and its task ends later. The saving is at least the
-- lost time divided among all threads; at most, the run also waited for the last tasks that were
-- retried. If tasks failed for good, the result is incomplete, and without the error the run would
-- take longer: there is no saving. A file or dataset is named if nearly all failed attempts are in it. It
-- is a place to look at only if chunks of other files or datasets were attempted and hardly failed;
-- otherwise the code can be the cause as well. If reading the number of entries failed, files are compared, of which
-- these entries or a chunk were read.
-- A worker or host is named if nearly all failed attempts ran there, more than by chance, while tasks of the same
-- prefixes ran elsewhere and hardly failed. A task counts once for each worker or host that tried it, because its
-- retries can fail for the same reason; how many tries a place had is given, since one that fails quickly gets more.
-- Retries are stated if none of them succeeded: repeating an error that occurs each time costs time and ends
-- the same way.
-- If a server did not answer, reported an error or a connection failed, neither the code nor a file on that server is
-- to blame.
-- Errors of decompression mean that a file is probably damaged, unless a later attempt succeeds.
-- A task that the scheduler refuses, because its inputs exceed the memory limit of the worker, is stated without an
-- attempt: fewer inputs are advised if it has more than two. Tasks that no
-- worker could run belong to rules unplaceable-tasks and no-workers.
-- If files could no longer be opened from an instant on, that is stated, and an error that names theirs follows from it.
-- Tasks that lost their workers belong to rule killed-workers. Without a cluster there are no tasks:
-- the rule applies to chunks and files.
-- Applies: EXISTS (FROM _task_runs WHERE _has_raised(outcome))
-- Applies: EXISTS (FROM _chunks WHERE NOT has_task AND _has_raised(outcome))
-- Applies: EXISTS (FROM _refusals)
-- Applies: EXISTS (FROM _unread_files WHERE NOT is_skipped)
-- Explains: failed attempt
-- Source: Spark's Dr. Elephant, "job with failed tasks"; recorded outcomes of attempts
-- Documentation: https://distributed.dask.org/en/stable/resilience.html
-- $min_attempts = 1: number of failed attempts
-- $min_place_share = 0.9: share of the failed attempts that are in one file or dataset if it is named
-- $min_others = 3: chunks (or files) elsewhere that were attempted, without which a place is not blamed
-- $max_others_share = 0.1: share of them that failed, above which it is not
-- $min_place_keys = 3: tasks that failed on a worker or host that is named
-- $max_chance = 0.01: largest probability that so many of the failures are on any one of the workers by chance
-- $max_words = 16: words of the first error that are quoted
-- $max_characters = 300: their length
-- $min_message_words = 3: words of a message that is quoted beside the type of the error
-- $max_message_words = 12: words of it that are quoted
-- $max_message_characters = 120: their length
-- $min_retries = 3: retries of which none succeeded, from which fewer are advised
WITH chunks_of_attempts AS (
    SELECT
        seq,
        any_value(dataset) AS dataset,
        any_value(treename) AS treename,
        min(entry_start) AS entry_start,
        max(entry_stop) AS entry_stop
    FROM _chunks
    GROUP BY seq
),
-- Tasks that read the number of entries of a file.
counts AS (
    SELECT
        trace_id,
        key,
        any_value(dataset) AS dataset,
        any_value(filename) AS filename,
        any_value(treename) AS treename
    FROM raw.chunk
    SEMI JOIN (FROM _coffea_roles WHERE role = 'file metadata') AS roles USING (trace_id, key)
    GROUP BY trace_id, key
),
attempts AS (
    SELECT
        *,
        _error_text(exception) AS error,
        coalesce(_exception_type(error), 'unknown exception') AS exception_type
    FROM (
        SELECT
            attempt.trace_id,
            attempt.seq,
            attempt.key,
            attempt.attempt,
            attempt.prefix,
            attempt.outcome,
            attempt.compute_seconds,
            attempt.end_t,
            attempt.exception,
            -- Null unless the task reads one file.
            file.filename,
            coalesce(chunk.dataset, counts.dataset) AS dataset,
            coalesce(chunk.treename, counts.treename) AS treename,
            chunk.entry_start,
            chunk.entry_stop,
            counts.key IS NOT NULL AS is_count,
            'task' AS noun
        FROM _task_runs AS attempt
        LEFT JOIN _task_files AS file USING (trace_id, key)
        LEFT JOIN counts USING (trace_id, key)
        LEFT JOIN chunks_of_attempts AS chunk USING (seq)
        WHERE _has_raised(attempt.outcome)
            AND NOT _is_given_up(attempt.exception)
        UNION ALL BY NAME
        -- Without a cluster there are no tasks.
        SELECT
            trace_id, key, attempt, outcome, compute_seconds, end_t, exception, filename, dataset,
            treename, entry_start, entry_stop, false AS is_count, 'chunk' AS noun
        FROM _chunks
        WHERE NOT has_task AND _has_raised(outcome)
        UNION ALL BY NAME
        SELECT
            trace_id, key, 'erred' AS outcome, t AS end_t, exception, filename, dataset, treename,
            true AS is_count, 'file' AS noun
        FROM _unread_files
        WHERE NOT is_skipped
    )
),
results AS (
    SELECT trace_id, key, end_t FROM _task_runs WHERE outcome = 'memory'
    UNION ALL
    SELECT trace_id, key, end_t FROM _chunks WHERE NOT has_task AND outcome = 'memory'
),
-- A later attempt succeeds, or the client computes a task again that failed.
recovered AS (
    SELECT failed.trace_id, failed.key
    FROM attempts AS failed
    INNER JOIN results
        ON failed.trace_id = results.trace_id
        AND failed.key = results.key
        AND results.end_t > failed.end_t
),
failed AS (
    SELECT
        trace_id,
        exception_type,
        count(*) AS attempts,
        count(DISTINCT key) AS keys,
        count(DISTINCT key) FILTER (
            outcome = 'erred' AND (trace_id, key) NOT IN (SELECT (trace_id, key) FROM recovered)
        ) AS failed_keys,
        count(*) FILTER (outcome = 'retried') AS retried,
        count(*) FILTER ((trace_id, key) IN (SELECT (trace_id, key) FROM recovered)) = 0
            AND bool_and(_is_damage(exception_type, error)) AS is_damage,
        bool_and(coalesce(_read_fault(exception_type, error) IN ('timeout', 'no connection'), false))
            AS is_unanswered,
        bool_and(coalesce(_read_fault(exception_type, error) = 'server error', false)) AS is_reported,
        -- Reading the number of entries failed, and no chunk.
        bool_and(is_count) AS is_count,
        -- The file is on a server, and not the disk of a worker.
        bool_and(coalesce(contains(filename, '://'), false)) AS is_remote,
        median(compute_seconds) AS median_seconds,
        count(DISTINCT filename) AS files,
        min(noun) AS noun,
        CASE WHEN count(DISTINCT prefix) > 1 THEN 'such as ' ELSE '' END || mode(prefix) AS prefix,
        arg_min(error, end_t) AS first_error,
        min(end_t) AS first_failed_t,
        array_to_string(string_split(first_error, ' ')[:$max_words::BIGINT], ' ')[:$max_characters::BIGINT]
            AS error,
        coalesce(sum(compute_seconds), 0) AS seconds,
        coalesce(max(compute_seconds), 0) AS longest_seconds
    FROM attempts
    GROUP BY ALL
    HAVING count(*) >= $min_attempts
),
-- Attempts that follow a failed one, by the type of its error.
retries AS (
    SELECT
        failed.trace_id,
        failed.exception_type,
        count(*) AS retries,
        count(again.seq) AS failed_again,
        sum(retry.compute_seconds) AS seconds,
        bool_and(again.exception_type = failed.exception_type) AS is_same,
        sum(count(*) FILTER (retry.outcome = 'memory')) OVER (PARTITION BY failed.trace_id) > 0 AS any_succeeded
    FROM attempts AS failed
    INNER JOIN _task_runs AS retry
        ON failed.trace_id = retry.trace_id
        AND failed.key = retry.key
        AND failed.attempt + 1 = retry.attempt
    LEFT JOIN attempts AS again ON retry.seq = again.seq
    WHERE failed.outcome = 'retried' AND failed.noun = 'task'
    GROUP BY failed.trace_id, failed.exception_type
),
-- Attempts at other tasks of the same prefixes.
usual AS (
    SELECT prefix.trace_id, prefix.exception_type, median(run.compute_seconds) AS seconds
    FROM (SELECT DISTINCT trace_id, exception_type, prefix FROM attempts WHERE noun = 'task') AS prefix
    INNER JOIN _task_runs AS run USING (trace_id, prefix)
    WHERE run.outcome = 'memory'
    GROUP BY ALL
),
-- The file that nearly all failed attempts read, or else their dataset.
places AS (
    SELECT
        trace_id,
        exception_type,
        dataset,
        filename,
        count(*) AS attempts,
        any_value(treename) AS treename,
        min(entry_start) AS entry_start,
        max(entry_stop) AS entry_stop,
        any_value(all_are_counts) AS is_count
    FROM (
        SELECT *, count(*) OVER own AS all_attempts, bool_and(is_count) OVER own AS all_are_counts
        FROM attempts
        WINDOW own AS (PARTITION BY trace_id, exception_type)
    )
    WHERE filename IS NOT NULL
    GROUP BY GROUPING SETS (
        (trace_id, exception_type, dataset, filename), (trace_id, exception_type, dataset)
    )
    HAVING count(*) >= $min_place_share * any_value(all_attempts)
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, exception_type ORDER BY filename IS NULL, count(*) DESC
    ) = 1
),
other_chunks AS (
    SELECT
        trace_id,
        exception_type,
        count(*) FILTER (is_done) AS succeeded,
        count(*) FILTER (NOT is_done AND has_failed) AS failed
    FROM (
        SELECT
            place.trace_id,
            place.exception_type,
            bool_or(chunk.outcome = 'memory') AS is_done,
            bool_or(chunk.exception IS NOT NULL) AS has_failed
        FROM places AS place
        INNER JOIN _chunks AS chunk
            ON place.trace_id = chunk.trace_id
            AND coalesce(
                place.filename = chunk.filename, place.dataset IS NOT DISTINCT FROM chunk.dataset
            )
        LEFT JOIN attempts AS attempt
            ON chunk.trace_id = attempt.trace_id
            AND chunk.key = attempt.key
            AND chunk.attempt = attempt.attempt
            AND place.exception_type = attempt.exception_type
        GROUP BY
            place.trace_id, place.exception_type, chunk.filename, chunk.treename, chunk.entry_start
        HAVING count(attempt.key) = 0
    )
    GROUP BY ALL
),
-- Chunks, and files of which a chunk or the number of entries was read.
tried AS (
    SELECT trace_id, is_file, dataset, filename, bool_or(has_failed) AS has_failed
    FROM (
        SELECT
            trace_id,
            unnest([false, true]) AS is_file,
            dataset,
            filename,
            CASE WHEN NOT is_file THEN (treename, entry_start) END AS chunk,
            _has_raised(outcome) OR outcome = 'skipped' AS has_failed
        FROM _chunks
        WHERE outcome IN ('memory', 'skipped') OR _has_raised(outcome)
        UNION ALL BY NAME
        SELECT trace_id, true AS is_file, counts.dataset, counts.filename, _has_raised(run.outcome) AS has_failed
        FROM _task_runs AS run
        INNER JOIN counts USING (trace_id, key)
        WHERE run.outcome = 'memory' OR _has_raised(run.outcome)
        UNION ALL BY NAME
        -- Its task succeeds if coffea skips the file.
        SELECT trace_id, true AS is_file, dataset, filename, true AS has_failed FROM _unread_files
    )
    GROUP BY trace_id, is_file, dataset, filename, chunk
),
elsewhere AS (
    SELECT
        place.trace_id,
        place.exception_type,
        count(*) AS attempted,
        count(*) FILTER (has_failed) AS failed
    FROM places AS place
    INNER JOIN tried
        ON place.trace_id = tried.trace_id
        AND place.is_count = tried.is_file
        AND NOT coalesce(
            place.filename = tried.filename, place.dataset IS NOT DISTINCT FROM tried.dataset
        )
    GROUP BY ALL
),
-- Attempts at tasks of the prefixes that failed, by the worker and host that they ran on.
sites AS (
    SELECT
        trace_id,
        exception_type,
        host,
        worker,
        count(*) FILTER (has_failed) AS failed,
        count(*) FILTER (NOT has_failed) AS succeeded,
        count(DISTINCT key) AS tried_keys,
        count(DISTINCT key) FILTER (has_failed) AS failed_keys,
        sum(tried_keys) OVER level AS all_tried_keys,
        sum(failed_keys) OVER level AS all_failed_keys,
        count(DISTINCT worker) FILTER (has_failed) AS failed_workers,
        sum(count(*) FILTER (has_failed)) OVER level - failed AS failed_elsewhere,
        sum(count(*) FILTER (NOT has_failed)) OVER level - succeeded AS succeeded_elsewhere,
        count(*) OVER level AS places
    FROM (
        SELECT
            prefix.trace_id,
            prefix.exception_type,
            process.host,
            run.worker,
            run.key,
            attempts.seq IS NOT NULL AS has_failed
        FROM (SELECT DISTINCT trace_id, exception_type, prefix FROM attempts WHERE noun = 'task') AS prefix
        INNER JOIN _task_runs AS run USING (trace_id, prefix)
        INNER JOIN (SELECT trace_id, worker, any_value(host) AS host FROM _workers GROUP BY ALL) AS process
            ON run.trace_id = process.trace_id
            AND run.worker = process.worker
        LEFT JOIN attempts
            ON run.trace_id = attempts.trace_id
            AND run.seq = attempts.seq
            AND prefix.exception_type = attempts.exception_type
        WHERE run.outcome = 'memory' OR attempts.seq IS NOT NULL
    )
    GROUP BY GROUPING SETS ((trace_id, exception_type, host, worker), (trace_id, exception_type, host))
    WINDOW level AS (PARTITION BY trace_id, exception_type, grouping(worker))
),
sick AS (
    SELECT
        *,
        -- A host is to blame only if several of its workers failed.
        coalesce('worker ' || shown || coalesce(' on host ' || host, ''), 'host ' || host) AS site
    FROM sites
    LEFT JOIN _worker_names USING (trace_id, worker)
    WHERE (failed_workers > 1 OR worker IS NOT NULL)
        AND failed_keys >= $min_place_keys
        AND failed >= $min_place_share * (failed + failed_elsewhere)
        AND succeeded_elsewhere >= $min_others
        AND failed_elsewhere <= $max_others_share * succeeded_elsewhere
        -- Any of the places can have them by chance.
        AND places * _hypergeometric_tail(failed_keys, all_tried_keys, all_failed_keys, tried_keys) <= $max_chance
    QUALIFY row_number() OVER (PARTITION BY trace_id, exception_type ORDER BY worker IS NULL, failed DESC) = 1
),
-- Merges of nothing but skipped chunks, which fail by themselves.
empty_merges AS (
    SELECT failed.trace_id, failed.key
    FROM (SELECT DISTINCT trace_id, key FROM attempts WHERE noun = 'task') AS failed
    INNER JOIN (
        SELECT task.trace_id, task.key, unnest(task.dependencies) AS input
        FROM _tasks AS task
        SEMI JOIN (FROM _coffea_roles WHERE role = 'merge') AS merges USING (trace_id, key)
    ) AS merge USING (trace_id, key)
    LEFT JOIN (
        SELECT trace_id, key, bool_and(outcome = 'skipped') AS is_skipped
        FROM _chunks
        WHERE outcome IN ('memory', 'skipped')
        GROUP BY trace_id, key
    ) AS chunk ON merge.trace_id = chunk.trace_id AND merge.input = chunk.key
    GROUP BY ALL
    HAVING bool_and(coalesce(chunk.is_skipped, false))
),
described AS (
    SELECT
        failed.*,
        NOT EXISTS (
            FROM attempts
            WHERE attempts.trace_id = failed.trace_id AND attempts.exception_type = failed.exception_type
                AND (attempts.trace_id, attempts.key) NOT IN (SELECT (trace_id, key) FROM empty_merges)
        ) AS is_empty_merge,
        sick.site,
        if(sick.worker IS NULL, 'hosts', 'workers') AS site_noun,
        sick.failed AS failed_there,
        sick.succeeded_elsewhere,
        sick.failed_elsewhere AS failed_on_others,
        usual.seconds AS usual_seconds,
        retries.retries AS vain_retries,
        retries.seconds AS retry_seconds,
        coalesce(retries.is_same, false) AS is_same_error,
        coalesce(retries.any_succeeded, true) AS any_retry_succeeded,
        -- Without the type and quotation marks: ValueError('…') and ValueError: ….
        regexp_replace(
            trim(regexp_replace(first_error, '^[\w.]+(\(|: ?)', ''), ' ()'), '^[rub]?["'']|["''],?$', '', 'g'
        ) AS whole_message,
        string_split(whole_message, ' ') AS message_words,
        array_to_string(message_words[:$max_message_words::BIGINT], ' ')[:$max_message_characters::BIGINT]
            AS message,
        _read_fault(failed.exception_type, first_error) AS fault,
        CASE WHEN list_contains(loss.exception_types, failed.exception_type) THEN loss.sentence END AS access_loss,
        -- Code that reads a file can handle an error of access badly, and names it.
        CASE WHEN first_failed_t > loss.last_opened_t THEN list_extract(list_filter(
            loss.exception_types, lambda name: name <> failed.exception_type
            AND regexp_matches(first_error, '\b' || regexp_escape(name) || '\b')
        ), 1) END AS access_error,
        CASE
            WHEN access_error IS NOT NULL AND loss.are_denied THEN ' ' || _credentials_hint()
            WHEN regexp_matches(first_error, 'no space left|disk quota', 'i')
                THEN ' Free the disk to which the workers write.'
            WHEN regexp_matches(first_error, 'MemoryError|unable to allocate|bad_alloc', 'i')
                THEN ' Use smaller chunks or partitions, or more memory for each worker.'
            WHEN fault = 'absent' THEN ' Check whether the workers can see the file at this path.'
            WHEN fault = 'denied'
                THEN ' ' || _credentials_hint()
            WHEN fault = 'timeout' AND is_remote THEN format(
                ' The server of the {} did not answer in time: allow it more time (xrootdtimeout of coffea''s Runner,'
                ' timeout of uproot), or read another replica or through another redirector.',
                if(files = 1, 'file', 'files')
            )
            WHEN fault = 'timeout'
                THEN ' What it waited for did not answer in time: check its load, or allow more time.'
            WHEN fault = 'no connection' AND is_remote
                THEN ' Check whether the workers can reach the server. Otherwise, read another replica or through'
                ' another redirector.'
            WHEN fault = 'no connection' THEN ' Check whether the workers can reach the server.'
            WHEN fault = 'server error'
                THEN ' A server reported it: repeat the work later, or read another replica or through another'
                ' redirector.'
            WHEN regexp_matches(first_error, 'MissTreeError|with any cycle number')
                THEN ' Check whether all files have this tree.'
            WHEN regexp_matches(first_error, 'KeyInFile|no (branch|field) |FieldNotFound', 'i')
                THEN ' Check whether all files have this branch.'
            ELSE ''
        END AS hint,
        -- A message can say more than the type. A hint has its meaning.
        concat(
            failed.exception_type,
            CASE
                WHEN hint = ''
                    AND len(list_filter(message_words, lambda word: regexp_matches(word, '[A-Za-z]')))
                        >= $min_message_words
                    THEN ' (' || message || if(message = whole_message, '', ' …') || ')'
            END
        ) AS named_error,
        CASE WHEN failed.failed_keys > 0 AND vain_retries >= $min_retries AND is_same_error AND NOT is_unanswered
                AND NOT is_reported AND NOT any_retry_succeeded
            THEN ' Use fewer retries until it is fixed.' ELSE '' END AS fewer_retries,
        regexp_extract(first_error, 'No module named \W*([\w.]+)', 1) AS missing_module,
        coalesce(
            elsewhere.attempted >= $min_others
            AND elsewhere.failed <= $max_others_share * elsewhere.attempted,
            false
        ) AS is_compared,
        place.filename IS NOT NULL OR place.dataset IS NOT NULL AS has_place,
        concat(
            CASE
                WHEN NOT failed.is_count THEN 'chunk{} of other '
                WHEN place.filename IS NULL THEN 'file{} of other '
                ELSE 'other file{}'
            END,
            CASE WHEN place.filename IS NULL THEN 'datasets' WHEN NOT failed.is_count THEN 'files' END
        ) AS others,
        coalesce(elsewhere.attempted, 0) AS attempted_elsewhere,
        coalesce(elsewhere.failed, 0) AS failed_elsewhere,
        (
            SELECT count(DISTINCT filename) = failed.files AND bool_and(has_failed)
            FROM tried
            WHERE tried.trace_id = failed.trace_id AND tried.is_file = failed.is_count
        ) AS is_everywhere,
        (
            SELECT count(DISTINCT filename)
            FROM tried
            WHERE tried.trace_id = failed.trace_id AND tried.is_file AND NOT has_failed
        ) AS counted_files,
        place.filename,
        CASE
            WHEN place.attempts = 1 THEN ' It was'
            WHEN place.attempts = failed.attempts THEN format(' All {} failed attempts were', place.attempts)
            ELSE format(' {} of the {} failed attempts were', place.attempts, failed.attempts)
        END || coalesce(
            ' in ' || parse_filename(place.filename) || coalesce(
                _entries_text(place.treename, place.entry_start, place.entry_stop, place.dataset), ''
            ),
            ' in dataset ' || place.dataset
        ) || coalesce(
            format(
                '. {} of its other chunks succeeded{}.',
                CASE other.succeeded WHEN 0 THEN 'None' ELSE other.succeeded::VARCHAR END,
                CASE other.failed WHEN 0 THEN '' ELSE format(', {} failed', other.failed) END
            ),
            if(failed.is_count, '. No chunk of it was processed.', '. No other chunk of it was processed.')
        ) AS place
    FROM failed
    LEFT JOIN places AS place
        ON failed.trace_id = place.trace_id
        AND failed.exception_type = place.exception_type
        -- A dataset is remarkable only beside another one.
        AND (
            place.filename IS NOT NULL
            OR (SELECT count(DISTINCT dataset) FROM _chunks WHERE _chunks.trace_id = failed.trace_id) > 1
        )
    LEFT JOIN elsewhere
        ON failed.trace_id = elsewhere.trace_id
        AND failed.exception_type = elsewhere.exception_type
    -- Only if none of them succeeded.
    LEFT JOIN retries
        ON failed.trace_id = retries.trace_id
        AND failed.exception_type = retries.exception_type
        AND retries.failed_again = retries.retries
    LEFT JOIN _access_losses AS loss ON failed.trace_id = loss.trace_id
    LEFT JOIN usual
        ON failed.trace_id = usual.trace_id
        AND failed.exception_type = usual.exception_type
    LEFT JOIN other_chunks AS other
        ON failed.trace_id = other.trace_id
        AND failed.exception_type = other.exception_type
    LEFT JOIN sick
        ON failed.trace_id = sick.trace_id
        AND failed.exception_type = sick.exception_type
        -- A file that one worker tried again and again says nothing about the worker.
        AND place.filename IS NULL
),
-- Tasks that the scheduler failed before they began, and that no later attempt computed.
refused AS (
    SELECT
        refusal.trace_id,
        coalesce(_exception_type(refusal.exception), 'unknown exception') AS exception_type,
        -- Whether the inputs are too large for the worker.
        input_size IS NOT NULL AND limit_size IS NOT NULL AS is_large,
        count(DISTINCT refusal.key) AS tasks,
        if(count(DISTINCT refusal.prefix) > 1, 'such as ', '') || mode(refusal.prefix) AS prefix,
        arg_min(input_size, refusal.t) AS input_size,
        arg_min(limit_size, refusal.t) AS limit_size,
        arg_min(inputs, refusal.t) AS inputs,
        bool_and(coalesce(roles.role = 'merge', false)) AS is_merge,
        arg_min(_error_text(refusal.exception), refusal.t)[:$max_characters::BIGINT] AS error
    FROM _refusals AS refusal
    LEFT JOIN _coffea_roles AS roles USING (trace_id, key)
    ANTI JOIN results
        ON refusal.trace_id = results.trace_id AND refusal.key = results.key AND results.end_t > refusal.t
    WHERE NOT regexp_matches(refusal.exception, '^No(Valid)?Worker')
    GROUP BY ALL
),
tail AS (
    SELECT trace_id, sum(seconds) AS idle_seconds
    FROM _core_time
    WHERE use = 'tail'
    GROUP BY trace_id
)
SELECT
    exception_type AS entity,
    'high' AS confidence,
    concat(
        CASE
            WHEN failed_keys > 0 THEN format(
                '{} {}{} {} {}: {}. {} failed.',
                failed_keys, CASE WHEN failed_keys = 1 THEN noun ELSE noun || 's' END,
                coalesce(' (' || prefix || ')', ''),
                if(noun = 'file', 'could not be read because of', 'failed for good with'), exception_type,
                CASE
                    WHEN noun <> 'task' AND failed_keys = 1 THEN 'its events are missing'
                    WHEN noun <> 'task' THEN 'their events are missing'
                    WHEN failed_keys = 1 THEN 'its result is missing, and those of all tasks that need it'
                    ELSE 'their results are missing, and those of all tasks that need them'
                END,
                CASE WHEN attempts = 1 THEN 'One attempt' ELSE attempts || ' attempts' END
            )
            ELSE format(
                '{} {} at {} {}{} failed with {}: {:.1f} s of computing were lost.',
                attempts, CASE WHEN attempts = 1 THEN 'attempt' ELSE 'attempts' END,
                keys, CASE WHEN keys = 1 THEN noun ELSE noun || 's' END,
                -- A trace can lack the tasks.
                coalesce(' (' || prefix || ')', ''), exception_type, seconds
            )
        END,
        -- Old versions of Dask do not report the time of failed attempts.
        ' ' || CASE
            WHEN vain_retries = 1
                THEN concat('A retry ', format('took {:.1f} s and ', retry_seconds), 'did not succeed')
            ELSE coalesce(
                format('{} retries took {:.1f} s, and none succeeded', vain_retries, retry_seconds),
                format('None of {} retries succeeded', vain_retries)
            )
        END || CASE
            WHEN NOT is_same_error THEN '.'
            WHEN vain_retries = 1 THEN ': it ended with an error of the same type.'
            ELSE ': each ended with an error of the same type.'
        END,
        CASE WHEN is_unanswered AND is_remote THEN format(
            ' {} took {} s{}{}.',
            if(attempts = 1, 'It', 'Each'), _three_digits(median_seconds), if(attempts = 1, '', ' (median)'),
            coalesce(format(', those that succeeded {} s (median)', _three_digits(usual_seconds)), '')
        ) END,
        place,
        CASE
            WHEN place IS NULL THEN ''
            WHEN attempted_elsewhere = 0
                THEN format(' No {} was attempted.', replace(others, '{}', ''))
            ELSE format(
                ' {:,} {} {} attempted, and {} failed.', attempted_elsewhere,
                replace(others, '{}', if(attempted_elsewhere = 1, '', 's')),
                if(attempted_elsewhere = 1, 'was', 'were'),
                if(failed_elsewhere = 0, 'none', failed_elsewhere::VARCHAR)
            )
        END,
        format(
            ' {} were on {}. On other {}, {:,} attempts at such tasks succeeded, and {} failed with {}.',
            CASE WHEN failed_there = attempts THEN format('All {} failed attempts', attempts)
                ELSE format('{} of the {} failed attempts', failed_there, attempts) END,
            site, site_noun, succeeded_elsewhere, if(failed_on_others = 0, 'none', failed_on_others::VARCHAR),
            exception_type
        ),
        access_loss,
        format(' The error names {}, with which no chunk that began later could open its file.', access_error),
        CASE WHEN is_empty_merge
            THEN ' It merges only chunks that coffea skipped, which leave nothing to merge: see the skipped files.' END,
        ' The error: ' || nullif(error, exception_type)
        || CASE WHEN error = first_error THEN '' ELSE ' …' END
    ) AS sentence,
    CASE WHEN failed_keys = 0 THEN seconds END AS core_seconds,
    CASE WHEN failed_keys = 0 THEN 0.8 * seconds / mean_nthreads END AS wall_seconds_min,
    CASE
        WHEN failed_keys = 0
            THEN 1.3 * seconds / mean_nthreads
                + least(longest_seconds, coalesce(idle_seconds, 0) / mean_nthreads)
    END AS wall_seconds_max,
    CASE
        WHEN is_empty_merge
            THEN 'Mend the cause of the skipped files first (rule skipped-files): this error follows from them.'
        WHEN access_error IS NOT NULL
            THEN format('Find the cause of {} first, from which this error follows.{}', access_error, hint)
        WHEN site IS NOT NULL THEN format(
            'Find out what differs on {}: {}free disks, mounted file systems, credentials, the load. Exclude it until'
            ' then, since a place where tasks fail quickly receives more of them.',
            site, CASE WHEN missing_module <> '' THEN format('the package {}, ', missing_module) ELSE '' END
        )
        WHEN exception_type = 'ModuleNotFoundError' AND missing_module <> '' THEN format(
            'Install {} where the workers run: their Python did not find it. A module of your own can be sent to them'
            ' with client.upload_file.', missing_module
        )
        WHEN is_damage AND filename IS NOT NULL
            THEN format('{} is probably damaged: check it, or copy it again.', filename)
        -- If few other files could be read, the program can be the cause.
        WHEN is_damage AND files <= if(is_count, counted_files, (
            SELECT count(DISTINCT filename) FROM _chunks
            WHERE _chunks.trace_id = described.trace_id AND outcome = 'memory'
        ))
            THEN 'The files are probably damaged: check them, or copy them again.'
        -- Neither the code nor a file is to blame.
        WHEN is_unanswered AND is_remote AND failed_keys > 0
            THEN format('{} can be intact.{}', coalesce(filename, 'The files'), hint)
        WHEN is_reported AND is_remote AND failed_keys > 0 THEN format(
            'The server reported {}: {} can be intact. Repeat the work later, or read another replica or through'
            ' another redirector.', exception_type, coalesce(filename, 'the files')
        )
        WHEN failed_keys = 0 AND retried > 0 AND vain_retries IS NULL THEN format(
            'Find the cause of {}.{} Repeat only the operation that fails, inside of the task, not the whole task.',
            exception_type, hint
        )
        WHEN is_compared
            THEN format(
                'Find the cause of {}{}.{}{}', named_error, coalesce(' in ' || filename, ''), hint, fewer_retries
            )
        -- A hint has the cause.
        WHEN is_everywhere AND files > 1
            THEN format(
                'Find the cause of {}{}: it failed in each of the {} files that were attempted.{}{}',
                named_error, if(hint = '', ' in the code', ''), files, hint, fewer_retries
            )
        WHEN has_place AND attempted_elsewhere < $min_others
            THEN format(
                'Find the cause of {}{}: too few {} were attempted to blame this one.{}{}',
                named_error,
                -- The code asks for a branch that is missing. Other hints are about files.
                if(
                    hint = '' OR contains(hint, 'this branch'),
                    ' in the code that raised it (traceback in view failures)', ''
                ),
                replace(others, '{}', 's'), hint, fewer_retries
            )
        ELSE format('Find the cause of {}.{}{}', named_error, hint, fewer_retries)
    END AS change,
    'SELECT filename, entry_start, entry_stop, key, attempt, failures.worker, cause'
    ' FROM failures LEFT JOIN chunks USING (trace_id, key, attempt)'
    ' WHERE what IN (''task erred'', ''attempt retried'', ''chunk erred'', ''file unreadable'')'
    ' AND exception_type '
    || CASE exception_type WHEN 'unknown exception' THEN 'IS NULL' ELSE '= ''' || exception_type || '''' END
        AS evidence,
    trace_id
FROM described
INNER JOIN _run_size USING (trace_id)
LEFT JOIN tail USING (trace_id)
UNION ALL BY NAME
SELECT
    exception_type || ', refused' AS entity,
    'high' AS confidence,
    concat(
        format(
            'The scheduler refused {}{} with {} before {} began{} ',
            _counted(tasks, 'task'), coalesce(' (' || prefix || ')', ''), exception_type, if(tasks = 1, 'it', 'they'), if(is_large, ':', '.')
        ),
        format(
            CASE WHEN tasks = 1 AND inputs = 1 THEN 'its input has {1}, more than'
                WHEN tasks = 1 THEN 'its {0}inputs have {1} together, more than'
                ELSE 'the inputs of the first have {1} together, more than' END
            || ' the memory limit of its worker, {2}. ',
            CASE WHEN inputs > 1 THEN inputs || ' ' ELSE '' END, input_size, limit_size
        ),
        if(
            tasks = 1, 'Its result is missing, and those of all tasks that need it.',
            'Their results are missing, and those of all tasks that need them.'
        )
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    CASE
        WHEN NOT is_large THEN format('Find the cause of {}: {}', exception_type, error)
        ELSE concat(
            CASE
                WHEN inputs > 2 AND is_merge
                    THEN format('Merge fewer results at once (a smaller treereduction: now {} inputs), return', inputs)
                WHEN inputs > 2 THEN format('Give such a task fewer inputs at once (now {}), return', inputs)
                ELSE 'Return'
            END,
            CASE WHEN is_merge THEN ' smaller results from the processor' ELSE ' smaller results from the tasks before it' END,
            ', or give each worker more memory: Dask checks the inputs alone, and the task needs memory beside them.'
        )
    END AS change,
    'SELECT t, key, worker, cause FROM failures WHERE what = ''task refused''' AS evidence,
    trace_id
FROM refused;
