-- Needs: _chunks, _cluster_size, _coffea_keys, _counted, _error_cause, _exception_type, _read_fault, _task_files, _task_runs, _unread_files
-- Records: chunk
-- Traces in which no chunk could open its file from one instant on, although earlier ones could, also of these files.
-- One row per trace.
CREATE VIEW _access_losses AS
WITH tries AS (
    SELECT
        trace_id,
        filename,
        entry_start,
        coalesce(start_t, processing_t) AS t,
        outcome = 'memory' OR open_seconds IS NOT NULL AS has_opened,
        _error_cause(exception) AS error,
        _exception_type(error) AS exception_type,
        _read_fault(exception_type, error) AS fault,
        NOT has_opened AND coalesce(fault <> 'damage', false) AS is_refused
    FROM _chunks
    WHERE from_checkpoint IS NOT TRUE
),
onsets AS (
    SELECT
        trace_id,
        max(t) FILTER (has_opened) AS last_opened_t,
        count(*) FILTER (is_refused) AS refused,
        count(*) FILTER (has_opened) AS opened,
        bool_and(fault = 'denied') FILTER (is_refused) AS are_denied,
        list(DISTINCT exception_type) FILTER (is_refused) AS exception_types
    FROM tries
    GROUP BY trace_id
    HAVING min(t) FILTER (is_refused) > last_opened_t
        AND count(DISTINCT (filename, entry_start)) FILTER (is_refused) >= 2
        -- Of later ones, it is known that they could not.
        AND coalesce(max(t) FILTER (NOT has_opened AND NOT is_refused) < last_opened_t, true)
),
opened_files AS (
    SELECT trace_id, filename FROM tries WHERE has_opened
    UNION
    SELECT trace_id, file.filename
    FROM _task_runs AS run
    INNER JOIN _task_files AS file USING (trace_id, key)
    SEMI JOIN (FROM _coffea_keys WHERE role = 'file metadata') AS keys USING (trace_id, key)
    ANTI JOIN _unread_files AS unread USING (trace_id, key)
    WHERE run.outcome = 'memory'
),
refused_files AS (
    SELECT trace_id, count(*) AS files, count(opened.filename) AS known_files
    FROM (SELECT DISTINCT trace_id, filename FROM tries WHERE is_refused) AS refused
    LEFT JOIN opened_files AS opened USING (trace_id, filename)
    GROUP BY trace_id
)
SELECT
    trace_id,
    -- Every chunk that began after this instant failed.
    ceil(10 * (last_opened_t - cluster.start_t)) / 10 AS onset_seconds,
    last_opened_t,
    are_denied,
    exception_types,
    format(
        ' No chunk that began after {:.1f} s could open its file ({:,} failed). Before that, {} did{}.',
        onset_seconds, refused, _counted(opened, 'chunk'),
        CASE
            WHEN files = 1 THEN ', and this file could be opened'
            WHEN known_files = files THEN format(', and these {:,} files could be opened', files)
            ELSE format(', and {:,} of these {:,} files could be opened', known_files, files)
        END
    ) AS sentence
FROM onsets
INNER JOIN refused_files USING (trace_id)
INNER JOIN _cluster_size AS cluster USING (trace_id)
-- Files that never could be opened say nothing about the time.
WHERE known_files > 0;
