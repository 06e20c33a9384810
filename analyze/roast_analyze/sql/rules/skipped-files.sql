-- Files or chunks skipped by coffea.
-- With skipbadfiles the run succeeds, and the result lacks their events. Processing them makes the
-- run longer, by about their share of all chunks' compute time: there is no saving.
-- Source: exceptions that coffea suppressed, see view failures
-- Documentation: https://coffea-hep.readthedocs.io/en/latest/api/coffea.processor.Runner.html
-- $min_files = 1: number of skipped files
-- $max_names = 3: files that are named
WITH skipped AS (
    SELECT trace_id, dataset, filename, exception FROM _unread_files WHERE is_skipped
    UNION ALL
    SELECT trace_id, dataset, filename, exception FROM _chunks WHERE outcome = 'skipped'
),
totals AS (
    SELECT
        trace_id,
        count(DISTINCT filename) AS files,
        min(filename) AS example,
        list_sort(list(DISTINCT parse_filename(filename))) AS names,
        list_sort(list(DISTINCT dataset)) AS datasets,
        array_to_string(
            list_sort(
                list(DISTINCT coalesce(_exception_type(_error_cause(exception)), 'unknown exception'))
            ), ', '
        ) AS exception_types
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
    format(
        'The result lacks events of {} of {} files, because reading them failed ({}): {}{}.',
        totals.files, recorded.files, exception_types, example,
        CASE WHEN totals.files > 1 THEN format(' and {} more', totals.files - 1) ELSE '' END
    ) || coalesce(
        format(
            ' The files that were processed took {:.1f} core-seconds on average.',
            processed.seconds / nullif(processed.files, 0)
        ),
        ''
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    format(
        'Repair or remove these files of {}, then run them again. Without skipbadfiles the run stops'
        ' at the first one.', array_to_string(datasets, ', ')
    ) AS change,
    'SELECT what, worker, cause, detail FROM failures WHERE what IN (''file skipped'', ''chunk skipped'')'
        AS evidence,
    totals.trace_id
FROM totals
INNER JOIN recorded USING (trace_id)
LEFT JOIN processed USING (trace_id);
