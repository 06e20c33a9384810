-- Written by `python schemas/generate.py`: change the declarations.
--
-- The views of roast over a trace as it was recorded, in any DuckDB, with nothing else
-- installed. Name the trace, read this file, ask:
--
--     duckdb
--     SET VARIABLE trace = 'trace.jsonl.zst';
--     .read schemas/roast.sql
--     FROM run;
--
-- or in one go
--
--     duckdb -c "SET VARIABLE trace = 'trace.jsonl.zst'" -c ".read schemas/roast.sql" -c "FROM run"
--
-- A trace is a file (.jsonl, .jsonl.zst, .jsonl.gz), a folder of segments or a pattern
-- ('folder/*.jsonl*'); several are a list (['a.jsonl', 'b.jsonl']) or what a pattern finds.
-- `trace_id` tells them apart. Reading the file again reads the trace anew, and another one if
-- `trace` has changed. The views and what their columns mean are in `duckdb_views()` and
-- `duckdb_columns()`, and in schemas/README.md; the records are tables of the schema `raw`.
-- Start DuckDB with a file (`duckdb run.duckdb`) to keep all of it; not one that has tables of
-- yours, because those of the same name are replaced.
--
-- Tried with DuckDB 1.4, 1.5 and 2.0; tests run it in the shell of 1.5 and in the library of
-- 2.0. While it reads, it holds the text of the trace in memory; what goes beyond
-- `memory_limit` is on disk.
--
-- Lines that cannot be read are left out and counted in the view `loss`, and a .zst file that
-- was cut off is read to its last whole line. What it does not do, and `roast-analyze` does:
-- read on behind a damaged place of a compressed file, read a .gz file that was cut off, leave out
-- lines of more than 16 MiB or a byte-order mark, and recognise compression where the name of
-- the file does not tell it.

-- -- What to read ----------------------------------------------------------------------------

-- This rewrite of `row_number() … = 1` fails on rowid in 2.0.0, and loses rows in other
-- versions (duckdb/duckdb#23677, #24363, #24710). DuckDB 1.4 does not know it. Tables that are
-- made here need it off, and the views do not: those of a kept database work without it.
SET VARIABLE roast_optimizers = (
    SELECT concat_ws(',', nullif(current_setting('disabled_optimizers'), ''), string_agg(name))
    FROM duckdb_optimizers()
    WHERE name = 'top_n_window_elimination'
);
SET disabled_optimizers = getvariable('roast_optimizers');

-- The order of records is that of the files. No join is made on the way of records into tables,
-- nor IN with a list, of which DuckDB 2 makes one: a join does not keep the order.
SET preserve_insertion_order = true;

SET VARIABLE roast_names = (
    SELECT CASE
        WHEN getvariable('trace') IS NULL
            THEN error(
                'no trace is named; say SET VARIABLE trace = ''trace.jsonl.zst''; '
                || 'and read this file again'
            )
        WHEN json_type(named) = 'ARRAY' THEN named ->> '$[*]'
        ELSE [named ->> '$']
    END
    FROM (SELECT to_json(getvariable('trace')) AS named)
);

-- DuckDB takes a path for a pattern; each special sign in brackets means itself.
CREATE OR REPLACE TEMP MACRO _literal(names) AS
    list_transform(names, lambda name: regexp_replace(name, '([*?\[])', '[\1]', 'g'));

-- What has the very name; if anything has not, what matches it, or lies in the folder.
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
    -- As people count: 2 before 10.
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
                'there is no ''' || array_to_string(getvariable('roast_names'), ''', ''')
                || '''; name a trace file, a folder of segments or a pattern'
            )
        ELSE _literal(list(path ORDER BY file))
    END
    FROM _files
);

-- -- The lines, once -------------------------------------------------------------------------

-- Lines that are no JSON are null; rowid counts the others too, but not blank lines.
-- An expression in unnest([…]) is computed once, whatever is asked of it.
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

-- Which file is which segment of which trace. One without header goes with the others of its
-- folder, if they are of one trace, and follows the segment before it.
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
        SELECT 'the trace is empty; name one that roast recorded' AS reason
        WHERE NOT EXISTS (FROM _census)
        UNION ALL
        SELECT 'no line is a record; name a trace that roast recorded'
        FROM _census
        HAVING count(*) > 0 AND count(start_t) FILTER (is_known) = 0
        UNION ALL
        SELECT
            'schema version ' || schema_version || ' is newer than what this file reads, which is '
            || '{version}; take the file of a newer roast'
        FROM _segments
        WHERE try_cast(regexp_extract(schema_version, '^([0-9]+)\.[0-9]+$', 1) AS HUGEINT) > {major}
        UNION ALL
        SELECT
            'segment ' || segment || ' is there twice: '
            || string_agg('''' || path || '''', ' and ' ORDER BY file) || '; name one of them'
        FROM _segments
        INNER JOIN _files USING (file)
        GROUP BY trace_id, segment
        HAVING count(*) > 1
    )
    LIMIT 1
);

-- -- Records, as tables ----------------------------------------------------------------------

CREATE SCHEMA IF NOT EXISTS raw;

SET VARIABLE roast_segments = (
    SELECT list({'segment': segment, 'trace_id': trace_id} ORDER BY file)
    FROM _files
    LEFT JOIN _segments USING (file)
);

-- Names and types of a table's columns.
CREATE OR REPLACE TEMP MACRO _columns_of(kind) AS (
    SELECT json_group_object(column_name, data_type)
    FROM duckdb_columns()
    WHERE database_name = current_database() AND schema_name = 'raw' AND table_name = kind
);

-- Records with the fields that `roast_columns` names; what has another type is null. Where
-- a line says its own segment and trace_id, those that count are in `place`.
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
-- -- Segments, and what is damaged -----------------------------------------------------------

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
        file, 5, 0, 'no header', NULL, 'what recorded it, and with which settings, is lost'
    FROM _segments
    WHERE NOT has_header
    UNION ALL
    SELECT
        file,
        5,
        0,
        'unknown schema version',
        NULL,
        '''' || left(schema_version, 100) || ''' is no version'
    FROM versions
    WHERE NOT is_version
    UNION ALL
    SELECT
        file,
        5,
        0,
        'older schema version',
        NULL,
        'version ' || schema_version || ' read as {version}: what has moved is not found'
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
    -- Nobody knows which segment it is, or whether it is one.
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
