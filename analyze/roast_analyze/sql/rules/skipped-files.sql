-- Files or chunks skipped by coffea.
-- With skipbadfiles the run succeeds, and the result lacks their events. Processing them makes the
-- run longer, by about their share of all chunks' compute time: there is no saving.
-- A chunk is skipped if reading or processing it raises an exception: the file can be readable. Neither is a
-- file to blame if a server did not answer, reported an error or refused access. If all
-- chunks that began after an instant could not open their files, and earlier ones could, that is stated.
-- Applies: EXISTS (FROM _chunks WHERE outcome = 'skipped')
-- Applies: EXISTS (FROM _unread_files WHERE is_skipped)
-- Explains: failed attempt
-- Source: exceptions that coffea suppressed, see view failures
-- Documentation: https://coffea-hep.readthedocs.io/en/latest/api/coffea.processor.Runner.html
-- $min_files = 1: number of skipped files
-- $max_names = 3: files that are named
WITH skipped AS (
    SELECT
        *,
        coalesce(_exception_type(_error_cause(exception)), 'unknown exception') AS exception_type,
        _read_fault(exception_type, _error_cause(exception)) AS named_fault,
        CASE
            -- The file was there, and could be opened: the processor can have met the error elsewhere.
            WHEN named_fault IN ('absent', 'denied') AND has_opened THEN NULL
            -- Only a URL has a server.
            WHEN named_fault IN ('timeout', 'no connection', 'server error') AND NOT contains(filename, '://') THEN NULL
            ELSE named_fault
        END AS fault,
        fault IN ('timeout', 'no connection') AS is_unanswered,
        CASE
            WHEN fault = 'damage' OR (is_unread AND named_fault IS NULL) THEN 'file'
            WHEN is_unanswered THEN 'unanswered'
            WHEN fault IS NULL THEN 'other'
            ELSE fault
        END AS advice
    FROM (
        SELECT trace_id, dataset, filename, exception, compute_seconds, true AS is_unread, false AS has_opened
        FROM _unread_files
        WHERE is_skipped
        UNION ALL BY NAME
        -- A chunk recomputed after its result was lost is skipped again.
        SELECT
            trace_id,
            dataset,
            filename,
            min(exception) AS exception,
            sum(compute_seconds) AS compute_seconds,
            false AS is_unread,
            bool_or(open_seconds IS NOT NULL) AS has_opened,
            entry_stop - entry_start AS events
        FROM _chunks
        WHERE outcome = 'skipped'
        GROUP BY trace_id, dataset, filename, treename, entry_start, entry_stop
    )
),
totals AS (
    SELECT
        trace_id,
        count(DISTINCT filename) AS files,
        min(filename) AS example,
        list_sort(list(DISTINCT parse_filename(filename))) AS names,
        list_sort(list(DISTINCT dataset)) AS datasets,
        count(DISTINCT filename) FILTER (is_unread) AS unread_files,
        count(*) FILTER (NOT is_unread) AS chunks,
        sum(events) AS events,
        string_agg(DISTINCT exception_type, ', ' ORDER BY exception_type) FILTER (is_unread)
            AS unread_types,
        string_agg(DISTINCT exception_type, ', ' ORDER BY exception_type) FILTER (NOT is_unread)
            AS chunk_types,
        string_agg(DISTINCT exception_type, ', ' ORDER BY exception_type) FILTER (advice = 'file')
            AS file_types,
        string_agg(DISTINCT exception_type, ', ' ORDER BY exception_type) FILTER (advice = 'unanswered')
            AS unanswered_types,
        string_agg(DISTINCT exception_type, ', ' ORDER BY exception_type) FILTER (advice = 'server error')
            AS server_types,
        string_agg(DISTINCT exception_type, ', ' ORDER BY exception_type) FILTER (advice IN ('absent', 'denied'))
            AS refused_types,
        string_agg(DISTINCT exception_type, ', ' ORDER BY exception_type) FILTER (advice = 'other')
            AS other_types,
        bool_or(fault = 'timeout') AS has_timeout,
        bool_or(fault = 'denied') AS any_denied,
        count(*) FILTER (is_unanswered) AS unanswered,
        bool_and(coalesce(is_unanswered, false)) AS are_unanswered,
        sum(compute_seconds) FILTER (is_unanswered) AS unanswered_seconds,
        -- Compared with those of files, or of chunks, that were read.
        bool_and(is_unread) FILTER (is_unanswered) AS are_unread,
        bool_or(is_unread) FILTER (is_unanswered) AS any_unread
    FROM skipped
    GROUP BY trace_id
    HAVING files >= $min_files
),
-- A run that stops early does not process all of its files.
recorded AS (
    SELECT trace_id, count(DISTINCT filename) AS files FROM raw.chunk GROUP BY trace_id
),
processed AS (
    SELECT trace_id, count(DISTINCT filename) AS files, sum(compute_seconds) AS seconds
    FROM _chunks
    WHERE outcome = 'memory'
    GROUP BY trace_id
),
-- The first task of each worker also pays for imports.
usual AS (
    SELECT trace_id, true AS is_unread, median(compute_seconds) AS seconds
    FROM _task_runs
    SEMI JOIN (FROM _coffea_keys WHERE role = 'file metadata') AS keys USING (trace_id, key)
    ANTI JOIN _unread_files AS unread USING (trace_id, key)
    WHERE outcome = 'memory'
    GROUP BY trace_id
    UNION ALL
    SELECT trace_id, false, median(compute_seconds)
    FROM _chunks
    WHERE outcome = 'memory'
    GROUP BY trace_id
)
SELECT
    concat(
        CASE WHEN len(datasets) = 1 THEN datasets[1] || ': ' END,
        array_to_string(names[:$max_names::BIGINT], ', '),
        CASE
            WHEN len(names) > $max_names THEN format(' and {} more', len(names) - $max_names::BIGINT)
        END
    ) AS entity,
    'high' AS confidence,
    concat(
        format('The result lacks events of {} of {} files: {}', totals.files, recorded.files, example),
        CASE WHEN totals.files > 1 THEN format(' and {} more', totals.files - 1) END,
        '.',
        format(
            ' The number of entries of {} could not be read ({}).',
            if(unread_files = 1, 'one file', unread_files || ' files'), unread_types
        ),
        format(
            ' Reading or processing {} raised {}.',
            if(chunks = 1, 'one chunk', chunks || ' chunks')
            || coalesce(format(' with {:,} events', events::BIGINT), ''),
            chunk_types
        ),
        loss.sentence,
        CASE WHEN unanswered > 0 THEN ' A server did not answer in time, or the connection to it failed' END,
        CASE WHEN unanswered > 0 AND NOT are_unanswered THEN format(' ({})', unanswered_types) END,
        format(
            ': {} took {} s{}',
            CASE
                WHEN unanswered = 1 THEN 'this attempt'
                ELSE format('these {} attempts', unanswered)
            END,
            _three_digits(unanswered_seconds),
            coalesce(format(', others {} s each (median)', _three_digits(usual.seconds)), '')
        ),
        CASE WHEN unanswered > 0 THEN '.' END,
        format(
            ' The files that were processed took {:.1f} core-seconds on average.',
            processed.seconds / nullif(processed.files, 0)
        )
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    concat(
        'Repair or remove the files with ' || file_types || '. ',
        format(
            'The files with {} can be intact: {}read another replica or through another redirector. ',
            unanswered_types,
            CASE
                WHEN has_timeout THEN 'allow the server more time (xrootdtimeout of coffea''s Runner), or '
                ELSE 'check whether the workers can reach the server, or '
            END
        ),
        format(
            'The server reported {}: the files can be intact. Read another replica or through another redirector. ',
            server_types
        ),
        format('Check the paths and the rights of the workers for the files with {}. ', refused_types),
        CASE WHEN any_denied THEN _credentials_hint() || ' ' END,
        CASE WHEN loss.are_denied
            THEN 'Access ended during the run: it needs credentials that are valid for longer, or renewed meanwhile. '
        END,
        format(
            'Find the cause of {}: the file can be damaged or lack a branch, or the processor can'
            ' have an error. ', other_types
        ),
        'Then run these files' || coalesce(' of ' || array_to_string(datasets, ', '), '') || ' again.',
        CASE
            -- coffea leaves retries to Dask, which sees no exception of a file that is skipped.
            WHEN are_unanswered AND settings.has_scheduler
                THEN ' Without skipbadfiles, Dask repeats tasks that fail (retries of DaskExecutor), and the run'
                ' stops if all attempts do.'
            ELSE ' Without skipbadfiles the run stops at the first one.'
        END
    ) AS change,
    'SELECT what, worker, cause, detail FROM failures WHERE what IN (''file skipped'', ''chunk skipped'')'
        AS evidence,
    totals.trace_id
FROM totals
INNER JOIN recorded USING (trace_id)
INNER JOIN _run_settings AS settings USING (trace_id)
LEFT JOIN processed USING (trace_id)
LEFT JOIN _access_losses AS loss USING (trace_id)
LEFT JOIN usual ON totals.trace_id = usual.trace_id AND usual.is_unread = are_unread AND are_unread = any_unread;
