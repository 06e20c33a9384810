-- Files or chunks skipped by coffea.
-- With skipbadfiles the run succeeds, and the result lacks their events. Processing them makes the
-- run longer, by about their share of all chunks' compute time: there is no saving.
-- A chunk is skipped if reading or processing it raises an exception: the file can be readable.
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
        is_unread OR coalesce(_is_damage(exception_type, _error_cause(exception)), false)
            AS is_file
    FROM (
        SELECT trace_id, dataset, filename, exception, true AS is_unread
        FROM _unread_files
        WHERE is_skipped
        UNION ALL BY NAME
        -- A chunk recomputed after its result was lost is skipped again.
        SELECT
            trace_id,
            dataset,
            filename,
            min(exception) AS exception,
            false AS is_unread,
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
        string_agg(DISTINCT exception_type, ', ' ORDER BY exception_type) FILTER (is_file)
            AS file_types,
        string_agg(DISTINCT exception_type, ', ' ORDER BY exception_type) FILTER (NOT is_file)
            AS other_types
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
            'Find the cause of {}: the file can be damaged or lack a branch, or the processor can'
            ' have an error. ', other_types
        ),
        'Then run these files' || coalesce(' of ' || array_to_string(datasets, ', '), '') || ' again.',
        ' Without skipbadfiles the run stops at the first one.'
    ) AS change,
    'SELECT what, worker, cause, detail FROM failures WHERE what IN (''file skipped'', ''chunk skipped'')'
        AS evidence,
    totals.trace_id
FROM totals
INNER JOIN recorded USING (trace_id)
LEFT JOIN processed USING (trace_id);
