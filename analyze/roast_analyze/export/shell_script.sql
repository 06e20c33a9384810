-- Written by `python schemas/generate.py`: change the declarations.
--
-- Define the views of roast for a recorded trace, in any DuckDB, without roast. Set the
-- variable `trace`, read this file, and query:
--
--     duckdb
--     SET VARIABLE trace = 'trace.jsonl.zst';
--     .read schemas/roast.sql
--     FROM run;
--
-- or in one command
--
--     duckdb -c "SET VARIABLE trace = 'trace.jsonl.zst'" -c ".read schemas/roast.sql" -c "FROM run"
--
-- A trace is a file (.jsonl, .jsonl.zst, .jsonl.gz), a folder of segments or a pattern
-- ('folder/*.jsonl*'). Several traces are a list (['a.jsonl', 'b.jsonl']) or a pattern;
-- `trace_id` distinguishes them. Reading this file again loads the trace again, or another one
-- if `trace` has changed. `duckdb_views()` and `duckdb_columns()` describe the views (docs:
-- reference/views); the records are tables in the schema `raw`. To keep the tables, start DuckDB
-- with a new file (`duckdb run.duckdb`): existing tables with the same names are replaced.
--
-- Tested with DuckDB 1.4, 1.5 and 2.0. Loading holds the text of the trace in memory, or on
-- disk beyond `memory_limit`.
--
-- Python computes the views {computed}: they are not here, but in the
-- database that `roast-analyze export --duckdb` writes.
--
-- Unreadable lines are skipped and counted in the view `loss`. A truncated .zst file is read up
-- to its last complete line. Only `roast-analyze` can read past damage in a compressed file,
-- read a truncated .gz file, skip lines of more than 16 MiB or a byte-order mark, and detect
-- compression that the file name does not show.

-- -- Files ------------------------------------------------------------------------------------

-- This optimization of `row_number() … = 1` fails on rowid in 2.0.0, and loses rows in other
-- versions (duckdb/duckdb#23677, #24363, #24710). It does not exist in 1.4. Only the tables
-- created here are affected, not the views.
SET VARIABLE roast_optimizers = (
    SELECT concat_ws(',', nullif(current_setting('disabled_optimizers'), ''), string_agg(name))
    FROM duckdb_optimizers()
    WHERE name = 'top_n_window_elimination'
);
SET disabled_optimizers = getvariable('roast_optimizers');

-- Records keep the order of the files. Therefore they are loaded without joins, and without IN
-- with a list, which DuckDB 2 turns into a join.
SET preserve_insertion_order = true;

SET VARIABLE roast_names = (
    SELECT CASE
        WHEN getvariable('trace') IS NULL
            THEN error(
                'no trace: use SET VARIABLE trace = ''trace.jsonl.zst''; '
                || 'and read this file again'
            )
        WHEN json_type(named) = 'ARRAY' THEN named ->> '$[*]'
        ELSE [named ->> '$']
    END
    FROM (SELECT to_json(getvariable('trace')) AS named)
);

-- Escape the special characters of patterns in a path by brackets.
CREATE OR REPLACE TEMP MACRO _literal(names) AS
    list_transform(names, lambda name: regexp_replace(name, '([*?\[])', '[\1]', 'g'));

-- Files with exactly these names; otherwise those that match a pattern or are in a folder.
CREATE OR REPLACE TEMP TABLE _files AS
WITH same AS (
    SELECT file AS path FROM glob(_literal(getvariable('roast_names')))
),
found AS (
    SELECT path, true AS is_named FROM same
    UNION ALL
    SELECT file, false
    FROM glob(getvariable('roast_names'))
    WHERE (SELECT count(*) FROM same) < len(getvariable('roast_names'))
    UNION ALL
    SELECT file, false
    FROM glob(
        list_transform(_literal(getvariable('roast_names')), lambda name: rtrim(name, '/') || '/*')
    )
    WHERE regexp_matches(file, '/[^./][^/]*\.jsonl(\.zst|\.gz)?$')
)
SELECT
    -- Natural order: 2 before 10.
    row_number() OVER (
        ORDER BY list_transform(
            regexp_extract_all(path, '[0-9]+|[^0-9]+'),
            lambda part: {'number': coalesce(try_cast(part AS HUGEINT), -1), 'text': part}
        )
    ) - 1 AS file,
    path,
    bool_or(is_named) AS is_named,
    regexp_extract(path, '([^/]*)/[^/]*$', 1) AS folder,
    regexp_replace(path, '^.*/', '') AS name
FROM found
GROUP BY path;

SET VARIABLE roast_files = (
    SELECT CASE
        WHEN count(*) = 0
            THEN error(
                'no trace ''' || array_to_string(getvariable('roast_names'), ''', ''')
                || ''': use a trace file, a folder of segments or a pattern'
            )
        ELSE _literal(list(path ORDER BY file))
    END
    FROM _files
);

-- -- Lines -----------------------------------------------------------------------------------

-- Lines that are not JSON are null. rowid counts all lines except blank ones.
-- An expression in unnest([…]) is evaluated once, however many fields are used.
CREATE OR REPLACE TEMP TABLE _lines AS
SELECT json, record.kind, record.t, file
FROM (
    SELECT
        json,
        unnest([try(json_transform(json, '{"kind": "VARCHAR", "t": "DOUBLE"}'))]) AS record,
        file_index::BIGINT AS file
    FROM read_json_objects(
        getvariable('roast_files'), format = 'newline_delimited', ignore_errors = true
    )
);

CREATE OR REPLACE TEMP TABLE _kinds AS
FROM (
    VALUES
{kinds}
) AS kinds (kind, required);

CREATE OR REPLACE TEMP TABLE _census AS
SELECT
    file,
    kind,
    kind IN (SELECT kind FROM _kinds) AS is_known,
    count(*) AS records,
    min(t) FILTER (isfinite(t)) AS start_t,
    max(t) FILTER (isfinite(t)) AS stop_t,
    min(rowid) AS first_line,
    max(rowid) AS last_line
FROM _lines
GROUP BY file, kind;

-- Trace and segment number of each file. A file without a header belongs to the trace of its
-- folder, if there is only one, and follows the segment before it.
CREATE OR REPLACE TEMP TABLE _segments AS
WITH headers AS (
    SELECT file, unnest(header)
    FROM (
        SELECT
            rowid AS line,
            file,
            unnest([
                json_transform(
                    json,
                    '{"t": "DOUBLE", "trace_id": "VARCHAR", "segment": "BIGINT",
                    "schema_version": "VARCHAR"}'
                )
            ]) AS header
        FROM _lines
        WHERE kind = 'header'
    )
    WHERE isfinite(header.t)
        AND header.trace_id IS NOT NULL
        AND header.segment IS NOT NULL
        AND header.schema_version IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY file ORDER BY line) = 1
),
folders AS (
    SELECT folder, count(DISTINCT trace_id) AS traces, any_value(trace_id) AS trace_id
    FROM _files
    LEFT JOIN headers USING (file)
    GROUP BY folder
),
identities AS (
    SELECT
        files.file,
        headers.file IS NOT NULL AS has_header,
        headers.schema_version,
        headers.segment AS said,
        CASE
            WHEN headers.file IS NOT NULL THEN headers.trace_id
            WHEN folders.traces = 1 THEN folders.trace_id
            WHEN folders.traces = 0 AND NOT files.is_named AND files.folder <> '' THEN files.folder
            ELSE regexp_replace(files.name, '(.)\.jsonl(\.zst|\.gz)?$', '\1')
        END AS trace_id
    FROM _files AS files
    INNER JOIN folders USING (folder)
    LEFT JOIN headers USING (file)
    WHERE files.file IN (SELECT file FROM _census)
),
following AS (
    SELECT *, count(said) OVER (PARTITION BY trace_id ORDER BY file) AS headers_before
    FROM identities
)
SELECT
    file,
    has_header,
    schema_version,
    trace_id,
    coalesce(max(said) OVER same - 1, 0) + row_number() OVER in_order AS segment
FROM following
WINDOW
    same AS (PARTITION BY trace_id, headers_before),
    in_order AS (PARTITION BY trace_id, headers_before ORDER BY file);

SET VARIABLE roast_refusal = (
    SELECT error(reason)
    FROM (
        SELECT 'the trace is empty: use a trace recorded by roast' AS reason
        WHERE NOT EXISTS (FROM _census)
        UNION ALL
        SELECT 'no line is a record: use a trace recorded by roast'
        FROM _census
        HAVING count(*) > 0 AND count(start_t) FILTER (is_known) = 0
        UNION ALL
        SELECT
            'schema version ' || schema_version || ' is newer than '
            || '{version}, the version of this file: use the file of a newer roast'
        FROM _segments
        WHERE try_cast(regexp_extract(schema_version, '^([0-9]+)\.[0-9]+$', 1) AS HUGEINT) > {major}
        UNION ALL
        SELECT
            'segment ' || segment || ' occurs twice: '
            || string_agg('''' || path || '''', ' and ' ORDER BY file) || ': use one of them'
        FROM _segments
        INNER JOIN _files USING (file)
        GROUP BY trace_id, segment
        HAVING count(*) > 1
    )
    LIMIT 1
);

-- -- Tables of records ----------------------------------------------------------------------

CREATE SCHEMA IF NOT EXISTS raw;

SET VARIABLE roast_segments = (
    SELECT list({'segment': segment, 'trace_id': trace_id} ORDER BY file)
    FROM _files
    LEFT JOIN _segments USING (file)
);

-- Column names and types of a table.
CREATE OR REPLACE TEMP MACRO _columns_of(kind) AS (
    SELECT json_group_object(column_name, data_type)
    FROM duckdb_columns()
    WHERE database_name = current_database() AND schema_name = 'raw' AND table_name = kind
);

-- Records with the fields in `roast_columns`; values of another type are null. The valid
-- segment and trace_id are in `place`, even if the line has fields with these names.
CREATE OR REPLACE TEMP MACRO _records_of(wanted) AS TABLE
SELECT unnest(record), place
FROM (
    SELECT
        unnest([json_transform(json, getvariable('roast_columns'))]) AS record,
        getvariable('roast_segments')[file + 1] AS place
    FROM _lines
    WHERE kind = wanted
);

{tables}
-- -- Segments and damage --------------------------------------------------------------------

CREATE OR REPLACE TEMP TABLE _kept AS
{counts};

CREATE OR REPLACE TABLE raw.segments AS
WITH extents AS (
    SELECT segment, trace_id, min(start_t) AS start_t, max(stop_t) AS stop_t
    FROM _kept
    GROUP BY segment, trace_id
)
SELECT
    regexp_replace(regexp_replace(path, '/(\.?/)+', '/', 'g'), '^\./', '') AS path,
    has_header,
    coalesce(bool_or(kind = 'trailer'), false) AS has_trailer,
    coalesce(sum(records) FILTER (is_known), 0)::BIGINT AS records,
    map(
        coalesce(list(kind ORDER BY records DESC, kind) FILTER (kind IS NOT NULL), []),
        coalesce(list(records ORDER BY records DESC, kind) FILTER (kind IS NOT NULL), [])
    )::MAP(VARCHAR, BIGINT) AS records_by_kind,
    coalesce(sum(records) FILTER (kind IS NULL), 0)::BIGINT AS unreadable,
    any_value(extents.start_t) AS start_t,
    any_value(extents.stop_t) AS stop_t,
    segment,
    trace_id
FROM _segments
INNER JOIN _files USING (file)
INNER JOIN _census USING (file)
LEFT JOIN extents USING (segment, trace_id)
GROUP BY file, path, has_header, segment, trace_id
ORDER BY file;

CREATE OR REPLACE TABLE raw.damage AS
WITH kept AS (FROM _kept),
places AS (
    SELECT
        file,
        min(first_line) - 1 AS line_before,
        max(last_line) AS last_line,
        max(last_line) FILTER (kind IS NULL) AS last_unreadable,
        min(first_line) FILTER (kind IS NULL) AS first_unreadable,
        sum(records) FILTER (kind IS NULL) AS unreadable
    FROM _census
    GROUP BY file
),
unknown AS (
    SELECT
        file,
        kind,
        records,
        row_number() OVER (PARTITION BY file ORDER BY records DESC, kind) AS place
    FROM _census
    WHERE kind IS NOT NULL AND NOT is_known
),
versions AS (
    SELECT
        file,
        schema_version,
        regexp_full_match(schema_version, '[0-9]{1,9}\.[0-9]{1,9}') AS is_version,
        CASE
            WHEN is_version
                THEN list_transform(string_split(schema_version, '.'), lambda part: part::BIGINT)
        END AS version
    FROM _segments
    WHERE has_header
),
damage AS (
    SELECT
        file,
        1 AS step,
        0 AS place,
        'last line unreadable' AS reason,
        1 AS records,
        'line ' || (last_line - line_before) || '; the file was cut off there' AS detail
    FROM places
    WHERE last_line = last_unreadable
    UNION ALL
    SELECT
        file,
        2,
        0,
        'unreadable lines',
        unreadable - (last_line = last_unreadable)::BIGINT AS others,
        'the first is line ' || (first_unreadable - line_before) || ', not counting blank lines'
    FROM places
    WHERE others > 0
    UNION ALL
    SELECT file, 3, place, 'unknown kind', records, 'kind ''' || left(kind, 100) || ''''
    FROM unknown
    WHERE place <= 20
    UNION ALL
    SELECT file, 4, 0, 'unknown kind', sum(records), count(*) || ' more kinds'
    FROM unknown
    WHERE place > 20
    GROUP BY file
    UNION ALL
    SELECT
        file, 5, 0, 'no header', NULL, 'the recorder''s version and settings are unknown'
    FROM _segments
    WHERE NOT has_header
    UNION ALL
    SELECT
        file,
        5,
        0,
        'unknown schema version',
        NULL,
        '''' || left(schema_version, 100) || ''' is not a version'
    FROM versions
    WHERE NOT is_version
    UNION ALL
    SELECT
        file,
        5,
        0,
        'older schema version',
        NULL,
        'version ' || schema_version || ' read as {version}: renamed fields are missing'
    FROM versions
    WHERE version[1] < {major}
    UNION ALL
    SELECT
        file,
        5,
        0,
        'newer schema version',
        NULL,
        'version ' || schema_version || ' read as {version}; upgrade: {upgrade}'
    FROM versions
    WHERE version[1] = {major} AND version[2] > {minor}
    UNION ALL
    SELECT
        file,
        6,
        row_number() OVER (PARTITION BY file ORDER BY census.records DESC, kind),
        'incomplete records',
        census.records - coalesce(kept.records, 0) AS lost,
        'kind ''' || kind || ''' needs ' || required
    FROM _census AS census
    INNER JOIN _kinds USING (kind)
    INNER JOIN _segments USING (file)
    LEFT JOIN kept USING (kind, segment, trace_id)
    WHERE lost > 0
)
SELECT reason, records::BIGINT AS records, detail, segment, trace_id
FROM (
    SELECT file, step, place, reason, records, detail, segment, trace_id
    FROM damage
    INNER JOIN _segments USING (file)
    UNION ALL
    -- The segment of an empty file is unknown.
    SELECT
        file,
        7,
        0,
        'empty file',
        NULL,
        name || ' is empty',
        NULL,
        (SELECT arg_max(trace_id, file) FROM _segments)
    FROM _files
    WHERE file NOT IN (SELECT file FROM _segments)
)
ORDER BY step = 7, file, step, place;

DROP TABLE _lines;
DROP TABLE _files;
DROP TABLE _kinds;
DROP TABLE _census;
DROP TABLE _kept;
DROP TABLE _segments;
DROP MACRO _literal;
DROP MACRO _columns_of;
DROP MACRO TABLE _records_of;
RESET VARIABLE roast_optimizers;
RESET VARIABLE roast_names;
RESET VARIABLE roast_files;
RESET VARIABLE roast_refusal;
RESET VARIABLE roast_segments;
RESET VARIABLE roast_columns;

-- -- Views -----------------------------------------------------------------------------------

{views}
