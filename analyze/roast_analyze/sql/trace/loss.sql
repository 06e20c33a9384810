-- Needs: _damaged_profiles, _io_jobs
-- Losses come from four sources: the reader (raw.damage), the recorder (records of kind loss,
-- repeated as sums in the trailer), the trailer's record counts and imported logs. A line that cannot be read
-- is also missing from the trailer's count, so it is subtracted there.
CREATE VIEW loss AS
WITH first_trailer AS (
    FROM raw.trailer
    WHERE rowid IN (SELECT min(rowid) FROM raw.trailer GROUP BY trace_id, segment)
),
-- Imported records follow the trailer and have counts of their own.
counted AS (
    SELECT trace_id, segment, t, records_by_kind FROM first_trailer
    UNION ALL
    SELECT trace_id, segment, t, records_by_kind FROM raw.import
    UNION ALL
    SELECT trace_id, segment, t, map(['import'], [1]) FROM raw.import
),
expected AS (
    SELECT trace_id, segment, max(t) AS t, kind, try_cast(sum(records) AS BIGINT) AS records
    FROM (
        SELECT
            trace_id,
            segment,
            t,
            unnest(map_keys(records_by_kind)) AS kind,
            unnest(map_values(records_by_kind)) AS records
        FROM counted
    )
    GROUP BY trace_id, segment, kind
),
found AS (
    SELECT
        trace_id,
        segment,
        stop_t AS t,
        unnest(map_keys(records_by_kind)) AS kind,
        unnest(map_values(records_by_kind)) AS records
    FROM raw.segments
),
-- The reader counts unknown kinds.
surplus AS (
    SELECT
        trace_id,
        segment,
        found.t,
        kind,
        found.records - CASE
            WHEN kind IN ('header', 'trailer') THEN 1
            ELSE coalesce(expected.records, 0)
        END AS records
    FROM found
    LEFT JOIN expected USING (trace_id, segment, kind)
    WHERE
        kind IN ('header', 'trailer')
        OR (
            kind IN (SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw')
            AND EXISTS (
                SELECT 1
                FROM first_trailer
                WHERE first_trailer.trace_id = found.trace_id
                    AND first_trailer.segment = found.segment
            )
        )
),
missing AS (
    SELECT
        expected.trace_id,
        expected.segment,
        max(expected.t) AS t,
        sum(greatest(expected.records - coalesce(segments.records_by_kind[expected.kind], 0), 0))
            - any_value(segments.unreadable) AS records,
        string_agg(
            expected.kind || ' '
                || expected.records - coalesce(segments.records_by_kind[expected.kind], 0),
            ', ' ORDER BY expected.kind
        ) FILTER (expected.records > coalesce(segments.records_by_kind[expected.kind], 0)) AS kinds
    FROM expected
    INNER JOIN raw.segments AS segments USING (trace_id, segment)
    GROUP BY expected.trace_id, expected.segment
),
dropped AS (
    SELECT
        trace_id,
        max(t) AS t,
        kind,
        sum(records) AS records
    FROM (
        SELECT
            trace_id,
            t,
            unnest(map_keys(dropped_by_kind)) AS kind,
            unnest(map_values(dropped_by_kind)) AS records
        FROM raw.trailer
    )
    GROUP BY trace_id, kind
),
explained AS (
    -- Records that were removed with an older segment had been written, but no trailer counts them.
    -- A trailer counts a loss of unknown size as one record.
    SELECT trace_id, record_kind AS kind, sum(coalesce(records, 1)) AS records
    FROM raw.loss
    WHERE NOT starts_with(coalesce(reason, ''), 'an older segment')
    GROUP BY trace_id, record_kind
),
numbers AS (
    SELECT
        trace_id,
        segment,
        coalesce(lag(segment) OVER (PARTITION BY trace_id ORDER BY segment), 0) AS previous
    FROM raw.segments
),
-- Each header counts the records of all earlier segments, which may have been removed.
first_header AS (
    SELECT
        trace_id,
        segment,
        dropped_by_kind,
        list_filter(
            map_entries(records_by_kind), lambda entry: entry.key NOT IN ('header', 'trailer', 'loss')
        ) AS removed
    FROM raw.header
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY segment, rowid) = 1
),
everything AS (
    SELECT damage.reason, damage.records, damage.detail, segments.stop_t AS t, trace_id, segment
    FROM raw.damage AS damage
    LEFT JOIN raw.segments AS segments USING (trace_id, segment)
    UNION ALL
    SELECT
        'no trailer',
        NULL,
        CASE
            -- On a full disk, even the small reserve for the trailer may be too small.
            WHEN EXISTS (
                FROM raw.loss AS unwritten
                WHERE unwritten.trace_id = segments.trace_id
                    AND unwritten.segment = segments.segment
                    AND starts_with(unwritten.reason, 'the trace could not be written')
            ) THEN 'the trailer could probably not be written either; later records are unknown'
            ELSE 'the recording did not end cleanly: it was killed, the scheduler died, '
                || 'its plugin was removed, or it is still running; later records are unknown'
        END,
        stop_t,
        trace_id,
        segment
    FROM raw.segments AS segments
    WHERE NOT has_trailer
    UNION ALL
    SELECT
        'records missing',
        records,
        'the trailer counts more records than the file has: ' || kinds,
        t,
        trace_id,
        segment
    FROM missing
    WHERE records > 0
    UNION ALL
    SELECT
        'more records than were written',
        sum(records),
        -- A further header begins a further trace.
        coalesce(
            'the file contains ' || any_value(records + 1) FILTER (kind = 'header')
                || ' traces; surplus records: ',
            'the file has more records than its trailer counts: '
        ) || string_agg(kind || ' ' || records, ', ' ORDER BY kind),
        max(t),
        trace_id,
        segment
    FROM surplus
    WHERE records > 0
    GROUP BY trace_id, segment
    UNION ALL
    SELECT
        'segment missing',
        list_sum(list_transform(removed, lambda entry: entry.value)),
        CASE
            WHEN segment - previous = 2 THEN 'segment ' || (segment - 1)
            ELSE 'segments ' || (previous + 1) || ' to ' || (segment - 1)
        END || coalesce(
            ': ' || array_to_string(
                list_sort(list_transform(removed, lambda entry: entry.key || ' ' || entry.value)), ', '
            ),
            ''
        ),
        NULL,
        trace_id,
        segment
    FROM numbers
    -- The records of a gap between segments are unknown, because headers do not count repetitions.
    LEFT JOIN first_header USING (trace_id, segment)
    WHERE segment - previous > 1
    UNION ALL
    SELECT
        'dropped while recording',
        unnest(map_values(dropped_by_kind)),
        unnest(map_keys(dropped_by_kind)) || ', in missing segments',
        NULL,
        trace_id,
        segment
    FROM first_header
    UNION ALL
    SELECT
        'damaged profiles',
        count(*),
        'kind ''profile'': malformed tree or slices',
        max(t),
        trace_id,
        segment
    FROM _damaged_profiles
    GROUP BY trace_id, segment
    UNION ALL
    SELECT
        'partial Darshan log',
        NULL,
        filename || ': Darshan reached its limit of records or memory in '
            || array_to_string(partial_modules, ', ') || ', so files opened later are missing',
        t,
        trace_id,
        segment
    FROM _io_jobs
    WHERE len(partial_modules) > 0
    UNION ALL
    -- On a full disk or with a full buffer, each flush can have its own.
    SELECT
        coalesce(reason, 'dropped while recording') AS reason,
        sum(records),
        concat_ws(': ', record_kind, detail) AS detail,
        max(t),
        trace_id,
        NULL
    FROM raw.loss
    GROUP BY ALL
    UNION ALL
    SELECT
        'dropped while recording',
        dropped.records - coalesce(explained.records, 0),
        dropped.kind,
        dropped.t,
        dropped.trace_id,
        NULL
    FROM dropped
    LEFT JOIN explained USING (trace_id, kind)
    WHERE dropped.records > coalesce(explained.records, 0)
)
SELECT
    reason,
    try_cast(records AS BIGINT) AS records,
    CASE
        WHEN trace_id IN (SELECT trace_id FROM raw.segments GROUP BY trace_id HAVING count(*) > 1)
            THEN concat_ws(': ', 'segment ' || segment, detail)
        ELSE detail
    END AS detail,
    t,
    trace_id
FROM everything
ORDER BY trace_id, segment NULLS LAST, t, reason;

COMMENT ON VIEW loss IS 'Missing or damaged parts of the trace. One row per reason and place, or kind of records; no rows mean that the trace is complete.';
COMMENT ON COLUMN loss.reason IS 'Reason for the loss.';
COMMENT ON COLUMN loss.records IS 'Number of missing records, or of surplus ones if there are more than were written. Null if unknown.';
COMMENT ON COLUMN loss.detail IS 'File, kind or other details.';
COMMENT ON COLUMN loss.t IS 'Time of detection, in seconds since the epoch. For a damaged file, the time of its last record.';
COMMENT ON COLUMN loss.trace_id IS 'ID of the trace.';
