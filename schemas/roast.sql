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
-- Python computes the views findings, critical_path, task_slack, core_time: they are not here, but in the
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
        ('header', 'kind, t, schema_version, trace_id, segment'),
        ('trailer', 'kind, t, segment, records_by_kind, dropped_by_kind'),
        ('environment', 'kind, t, section, name'),
        ('task', 'kind, t, key'),
        ('transition', 'kind, t, key, start, finish'),
        ('worker_added', 'kind, t, name'),
        ('worker_removed', 'kind, t'),
        ('client_added', 'kind, t'),
        ('client_removed', 'kind, t'),
        ('wanted_keys', 'kind, t'),
        ('worker_sample', 'kind, t'),
        ('scheduler_sample', 'kind, t'),
        ('stall', 'kind, t'),
        ('client_activity', 'kind, t, activity, name'),
        ('cluster_size', 'kind, t'),
        ('graph', 'kind, t, key'),
        ('graph_update', 'kind, t'),
        ('computation', 'kind, t, name'),
        ('span', 'kind, t'),
        ('fine_metric', 'kind, t'),
        ('profile', 'kind, t'),
        ('chunk', 'kind, t, key'),
        ('section', 'kind, t, key, name'),
        ('worker_transition', 'kind, t, key, start, finish'),
        ('transfer', 'kind, t'),
        ('spill', 'kind, t, key, start, finish'),
        ('event', 'kind, t, topic'),
        ('loss', 'kind, t'),
        ('import', 'kind, t, name, records_by_kind'),
        ('io_file', 'kind, t'),
        ('io_segment', 'kind, t'),
        ('function', 'kind, t, name')
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
            || '2.6, the version of this file: use the file of a newer roast'
        FROM _segments
        WHERE try_cast(regexp_extract(schema_version, '^([0-9]+)\.[0-9]+$', 1) AS HUGEINT) > 2
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

-- The first record of a segment.
CREATE OR REPLACE TABLE raw.header (
    "t" DOUBLE,
    "schema_version" VARCHAR,
    "versions" JSON,
    "scheduler" VARCHAR,
    "scheduler_id" VARCHAR,
    "settings" JSON,
    "utc_offset_seconds" DOUBLE,
    "clock_offset_seconds" DOUBLE,
    "records_by_kind" MAP(VARCHAR, BIGINT),
    "dropped_by_kind" MAP(VARCHAR, BIGINT),
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('header');
INSERT INTO raw.header BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('header')
WHERE "t" IS NOT NULL
    AND "schema_version" IS NOT NULL
    AND "trace_id" IS NOT NULL
    AND "segment" IS NOT NULL
    AND isfinite(t);

-- The last record of a segment that was closed properly.
CREATE OR REPLACE TABLE raw.trailer (
    "t" DOUBLE,
    "reason" VARCHAR,
    "records_by_kind" MAP(VARCHAR, BIGINT),
    "dropped_by_kind" MAP(VARCHAR, BIGINT),
    "redacted_values" BIGINT,
    "crc32" BIGINT,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('trailer');
INSERT INTO raw.trailer BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('trailer')
WHERE "t" IS NOT NULL
    AND "segment" IS NOT NULL
    AND "records_by_kind" IS NOT NULL
    AND "dropped_by_kind" IS NOT NULL
    AND isfinite(t);

-- A fact about software, machines or setup of the run. A fact of section ``process`` describes the scheduler, the client that records or a worker. Its name is which of them. Its value has ``role``, ``pid``, ``python``, ``implementation``, ``machine`` (host, system, platform, kernel, architecture, cores, usable_cores, memory_bytes, open_files_limit), ``variables`` (environment variables of batch systems), ``files`` (a list of path and text: CPU model, limits of control groups, ads of HTCondor, hosts of a job, namespace of a pod), ``plugins`` of a worker, and in ``configuration``, ``config_sources``, ``defaults`` and ``packages`` the names of its sheets. Before 2.3 it had ``jobs`` instead of variables and files. A sheet is recorded once for all processes that refer to it; its name is a digest of its content. A sheet of section ``configuration`` has the options of Dask's configuration that differ from the defaults, by name; one of ``defaults`` the defaults; one of ``config_sources`` a list of the files and environment variables that set options: kind, name and the names of the options, in the order in which they apply, and options of kind ``code`` that have another value; one of ``packages`` a list of names and versions.
CREATE OR REPLACE TABLE raw.environment (
    "t" DOUBLE,
    "section" VARCHAR,
    "name" VARCHAR,
    "value" JSON,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('environment');
INSERT INTO raw.environment BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('environment')
WHERE "t" IS NOT NULL
    AND "section" IS NOT NULL
    AND "name" IS NOT NULL
    AND isfinite(t);

-- A task that entered the graph, or existed when recording began. Dask files a task group under the span of its first task. If a task was submitted in another span, its ``value`` has ``submitted_span``, Dask's annotation: ``name`` and ``ids`` are lists from the outermost span inwards. Outside of spans the name is default, without ids.
CREATE OR REPLACE TABLE raw.task (
    "t" DOUBLE,
    "key" VARCHAR,
    "prefix" VARCHAR,
    "group" VARCHAR,
    "dependencies" VARCHAR[],
    "priority" DOUBLE[],
    "annotations" JSON,
    "span_id" VARCHAR,
    "value" JSON,
    "client" VARCHAR,
    "state" VARCHAR,
    "stimulus_id" VARCHAR,
    "worker" VARCHAR,
    "run_id" BIGINT,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('task');
INSERT INTO raw.task BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('task')
WHERE "t" IS NOT NULL
    AND "key" IS NOT NULL
    AND isfinite(t);

-- A state transition of a task on the scheduler.
CREATE OR REPLACE TABLE raw.transition (
    "t" DOUBLE,
    "key" VARCHAR,
    "start" VARCHAR,
    "finish" VARCHAR,
    "stimulus_id" VARCHAR,
    "worker" VARCHAR,
    "run_id" BIGINT,
    "thread" BIGINT,
    "nbytes" BIGINT,
    "typename" VARCHAR,
    "startstops" STRUCT("action" VARCHAR, "start" DOUBLE, "stop" DOUBLE, "source" VARCHAR)[],
    "start_t" DOUBLE,
    "cause" VARCHAR,
    "exception" VARCHAR,
    "traceback" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('transition');
INSERT INTO raw.transition BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('transition')
WHERE "t" IS NOT NULL
    AND "key" IS NOT NULL
    AND "start" IS NOT NULL
    AND "finish" IS NOT NULL
    AND isfinite(t);

-- A worker joined, or was connected when recording began.
CREATE OR REPLACE TABLE raw.worker_added (
    "t" DOUBLE,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "name" VARCHAR,
    "host" VARCHAR,
    "pid" BIGINT,
    "nthreads" BIGINT,
    "memory_limit" BIGINT,
    "nanny" VARCHAR,
    "local_directory" VARCHAR,
    "resources" JSON,
    "versions" JSON,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('worker_added');
INSERT INTO raw.worker_added BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('worker_added')
WHERE "t" IS NOT NULL
    AND "name" IS NOT NULL
    AND isfinite(t);

-- A worker left the scheduler.
CREATE OR REPLACE TABLE raw.worker_removed (
    "t" DOUBLE,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "stimulus_id" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('worker_removed');
INSERT INTO raw.worker_removed BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('worker_removed')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- A client connected, or was connected when recording began.
CREATE OR REPLACE TABLE raw.client_added (
    "t" DOUBLE,
    "client" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('client_added');
INSERT INTO raw.client_added BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('client_added')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- A client disconnected.
CREATE OR REPLACE TABLE raw.client_removed (
    "t" DOUBLE,
    "client" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('client_removed');
INSERT INTO raw.client_removed BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('client_removed')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- Changes of the keys that a client wants, whose results Dask therefore keeps in memory. Queues, variables and published datasets of Dask also count as clients, and so does its placeholder ``fire-and-forget``. Keys that were wanted when recording began are recorded as desired then. No release is recorded when Dask forgets a wanted key, or when a task of ``fire-and-forget`` ends. Changes within a millisecond are recorded as one, with the time of the first.
CREATE OR REPLACE TABLE raw.wanted_keys (
    "t" DOUBLE,
    "client" VARCHAR,
    "changes" STRUCT("t" DOUBLE, "action" VARCHAR, "keys" VARCHAR[])[],
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('wanted_keys');
INSERT INTO raw.wanted_keys BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('wanted_keys')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- State of a worker, as known to the scheduler, at a sampling time.
CREATE OR REPLACE TABLE raw.worker_sample (
    "t" DOUBLE,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "memory_limit" BIGINT,
    "nthreads" BIGINT,
    "processing" BIGINT,
    "executing" BIGINT,
    "occupancy" DOUBLE,
    "nbytes" BIGINT,
    "last_seen" DOUBLE,
    "metrics" STRUCT("cpu" DOUBLE, "memory" BIGINT, "managed_bytes" BIGINT, "spilled_memory" BIGINT, "spilled_disk" BIGINT, "ready" BIGINT, "event_loop_interval" DOUBLE, "num_fds" BIGINT, "incoming_bytes" BIGINT, "outgoing_bytes" BIGINT, "host_net_read_bps" DOUBLE, "host_net_write_bps" DOUBLE, "host_disk_read_bps" DOUBLE, "host_disk_write_bps" DOUBLE, "loop_cpu_seconds" DOUBLE),
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('worker_sample');
INSERT INTO raw.worker_sample BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('worker_sample')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- Load of the scheduler's process and event loop at a tick. In a ``LocalCluster`` the process, and with a synchronous client the event loop's thread, are also the client's.
CREATE OR REPLACE TABLE raw.scheduler_sample (
    "t" DOUBLE,
    "server_id" VARCHAR,
    "metrics" STRUCT("cpu" DOUBLE, "memory" BIGINT, "managed_bytes" BIGINT, "spilled_memory" BIGINT, "spilled_disk" BIGINT, "ready" BIGINT, "event_loop_interval" DOUBLE, "num_fds" BIGINT, "incoming_bytes" BIGINT, "outgoing_bytes" BIGINT, "host_net_read_bps" DOUBLE, "host_net_write_bps" DOUBLE, "host_disk_read_bps" DOUBLE, "host_disk_write_bps" DOUBLE, "loop_cpu_seconds" DOUBLE),
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('scheduler_sample');
INSERT INTO raw.scheduler_sample BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('scheduler_sample')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- A stall of the event loop of a worker or, without ``worker``, of the scheduler. Dask runs a tick on the loop every 20 ms by default. The record is of one that ran at least 0.1 s late, from when it was due until it ran.
CREATE OR REPLACE TABLE raw.stall (
    "t" DOUBLE,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('stall');
INSERT INTO raw.stall BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('stall')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- Activity of the program of the recording client: samples of its main thread every 0.1 s. Activities: ``wait`` for waiting for Dask, ``dask`` for other work of Dask on behalf of the program, such as creating graphs, ``own`` for everything else. Name and filename are those of the innermost function that belongs neither to Dask nor to an installed package. Consecutive samples of one function are one record. Without such a function there is no record, as in a notebook that is idle, and for asynchronous clients.
CREATE OR REPLACE TABLE raw.client_activity (
    "t" DOUBLE,
    "client" VARCHAR,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "activity" VARCHAR,
    "name" VARCHAR,
    "filename" VARCHAR,
    "measured" STRUCT("until" VARCHAR, "source" VARCHAR, "events" BIGINT, "open_seconds" DOUBLE, "process_seconds" DOUBLE, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE, "compression" VARCHAR, "cpu_seconds" DOUBLE, "bytes_read" BIGINT, "requests" BIGINT, "columns" VARCHAR[], "branches" STRUCT("branch" VARCHAR, "compressed_bytes" BIGINT, "uncompressed_bytes" BIGINT, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE)[], "file_branches" BIGINT, "file_bytes" BIGINT, "memory_before" BIGINT, "memory_after" BIGINT, "memory_peak" BIGINT, "memory_delta" BIGINT, "sent_bytes" BIGINT, "disk_bytes" BIGINT, "from_checkpoint" BOOLEAN, "module" VARCHAR, "rank" BIGINT, "opens" BIGINT, "reads" BIGINT, "writes" BIGINT, "bytes_written" BIGINT, "write_seconds" DOUBLE, "metadata_seconds" DOUBLE, "offset_bytes" BIGINT),
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('client_activity');
INSERT INTO raw.client_activity BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('client_activity')
WHERE "t" IS NOT NULL
    AND "activity" IS NOT NULL
    AND "name" IS NOT NULL
    AND isfinite(t);

-- Number of workers of the cluster object from which the recording client was created. Its value has ``planned``, the workers that the cluster should have, by ``scale`` or ``adapt``, and ``requested``, those that it has requested, for example by submitting batch jobs. It is recorded at the start and, with a delay of up to 0.5 s, when it has changed.
CREATE OR REPLACE TABLE raw.cluster_size (
    "t" DOUBLE,
    "client" VARCHAR,
    "value" JSON,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('cluster_size');
INSERT INTO raw.cluster_size BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('cluster_size')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- A graph as the recording client sent it, before the scheduler created its tasks. Its value has: ``layers``, a list of name, type and tasks (null if counting would materialize them; for an expression the number of partitions) and, for a fused expression, the types of its parts in ``fused``; ``more_layers``, the number of layers left out; ``collections``, the types of the computed collections; and, if code is recorded (opt-in), ``code``: digest, filename, line_number, is_new and, the first time, text and first_line.
CREATE OR REPLACE TABLE raw.graph (
    "t" DOUBLE,
    "client" VARCHAR,
    "key" VARCHAR,
    "value" JSON,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('graph');
INSERT INTO raw.graph BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('graph')
WHERE "t" IS NOT NULL
    AND "key" IS NOT NULL
    AND isfinite(t);

-- A graph as the scheduler received it from any client. The ``value`` of a graph of 1 MiB or more has ``groups``, a list of the first 100 task groups of its new tasks: group, tasks, examined (up to 10 tasks) and nbytes, the size of the arguments of these and of what their functions hold (partial arguments, closures, attributes), by Dask's sizeof.
CREATE OR REPLACE TABLE raw.graph_update (
    "t" DOUBLE,
    "client" VARCHAR,
    "stimulus_id" VARCHAR,
    "nbytes" BIGINT,
    "value" JSON,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('graph_update');
INSERT INTO raw.graph_update BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('graph_update')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- A computation of Dask: it begins when an idle scheduler receives a graph. All graphs that arrive until the scheduler is idle again are part of it. It is recorded again with the ``stimulus_id`` of each further graph. If code is recorded (opt-in) and clients send it, its value has ``codes``: a list of digest, filename, line_number and, the first time, text and first_line.
CREATE OR REPLACE TABLE raw.computation (
    "t" DOUBLE,
    "name" VARCHAR,
    "client" VARCHAR,
    "stimulus_id" VARCHAR,
    "value" JSON,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('computation');
INSERT INTO raw.computation BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('computation')
WHERE "t" IS NOT NULL
    AND "name" IS NOT NULL
    AND isfinite(t);

-- A Dask span, recorded when its first task enters the graph.
CREATE OR REPLACE TABLE raw.span (
    "t" DOUBLE,
    "span_id" VARCHAR,
    "span_name" VARCHAR[],
    "parent_id" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('span');
INSERT INTO raw.span BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('span')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- The increase of one fine metric of a worker since its last heartbeat. Metrics of tasks have a span and a prefix. The only activity of failed tasks is ``failed``. Sums over workers equal the scheduler's totals per span.
CREATE OR REPLACE TABLE raw.fine_metric (
    "t" DOUBLE,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "context" VARCHAR,
    "span_id" VARCHAR,
    "prefix" VARCHAR,
    "activity" VARCHAR,
    "unit" VARCHAR,
    "delta" DOUBLE,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('fine_metric');
INSERT INTO raw.fine_metric BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('fine_metric')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- Samples of the statistical profiler of a worker for tasks of a prefix. A record covers several cycles of Dask's profiler, each once. The source is a worker's ``profile_keys_history``, which separates prefixes, and not its ``profile_history``, which adds up all tasks of the process. The profile of the scheduler's event loop has no worker and no prefix.
CREATE OR REPLACE TABLE raw.profile (
    "t" DOUBLE,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "prefix" VARCHAR,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "interval_seconds" DOUBLE,
    "tree" STRUCT("frames" STRUCT("name" VARCHAR, "filename" VARCHAR, "line_number" BIGINT)[], "parents" BIGINT[], "node_frames" BIGINT[], "line_numbers" BIGINT[], "slices" STRUCT("start_t" DOUBLE, "stop_t" DOUBLE, "nodes" BIGINT[], "counts" BIGINT[], "innermost" BIGINT[])[]),
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('profile');
INSERT INTO raw.profile BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('profile')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- A coffea chunk, or a metadata read of a file, which has no entry range. A chunk has two kinds of records: one without ``run_id``, written when its task enters the graph, describes the chunk; one with ``run_id`` per attempt has the measurements of the worker. Without a cluster there are no tasks: the recorder creates the key and counts the attempts. Of metadata reads, only those that fail have a record with ``run_id``.
CREATE OR REPLACE TABLE raw.chunk (
    "t" DOUBLE,
    "key" VARCHAR,
    "run_id" BIGINT,
    "dataset" VARCHAR,
    "filename" VARCHAR,
    "treename" VARCHAR,
    "entry_start" BIGINT,
    "entry_stop" BIGINT,
    "file_uuid" VARCHAR,
    "usermeta" JSON,
    "worker" VARCHAR,
    "thread" BIGINT,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "measured" STRUCT("until" VARCHAR, "source" VARCHAR, "events" BIGINT, "open_seconds" DOUBLE, "process_seconds" DOUBLE, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE, "compression" VARCHAR, "cpu_seconds" DOUBLE, "bytes_read" BIGINT, "requests" BIGINT, "columns" VARCHAR[], "branches" STRUCT("branch" VARCHAR, "compressed_bytes" BIGINT, "uncompressed_bytes" BIGINT, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE)[], "file_branches" BIGINT, "file_bytes" BIGINT, "memory_before" BIGINT, "memory_after" BIGINT, "memory_peak" BIGINT, "memory_delta" BIGINT, "sent_bytes" BIGINT, "disk_bytes" BIGINT, "from_checkpoint" BOOLEAN, "module" VARCHAR, "rank" BIGINT, "opens" BIGINT, "reads" BIGINT, "writes" BIGINT, "bytes_written" BIGINT, "write_seconds" DOUBLE, "metadata_seconds" DOUBLE, "offset_bytes" BIGINT),
    "nbytes" BIGINT,
    "exception" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('chunk');
INSERT INTO raw.chunk BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('chunk')
WHERE "t" IS NOT NULL
    AND "key" IS NOT NULL
    AND isfinite(t);

-- One execution of a section of code that the user named.
CREATE OR REPLACE TABLE raw.section (
    "t" DOUBLE,
    "key" VARCHAR,
    "run_id" BIGINT,
    "name" VARCHAR,
    "worker" VARCHAR,
    "thread" BIGINT,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "measured" STRUCT("until" VARCHAR, "source" VARCHAR, "events" BIGINT, "open_seconds" DOUBLE, "process_seconds" DOUBLE, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE, "compression" VARCHAR, "cpu_seconds" DOUBLE, "bytes_read" BIGINT, "requests" BIGINT, "columns" VARCHAR[], "branches" STRUCT("branch" VARCHAR, "compressed_bytes" BIGINT, "uncompressed_bytes" BIGINT, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE)[], "file_branches" BIGINT, "file_bytes" BIGINT, "memory_before" BIGINT, "memory_after" BIGINT, "memory_peak" BIGINT, "memory_delta" BIGINT, "sent_bytes" BIGINT, "disk_bytes" BIGINT, "from_checkpoint" BOOLEAN, "module" VARCHAR, "rank" BIGINT, "opens" BIGINT, "reads" BIGINT, "writes" BIGINT, "bytes_written" BIGINT, "write_seconds" DOUBLE, "metadata_seconds" DOUBLE, "offset_bytes" BIGINT),
    "exception" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('section');
INSERT INTO raw.section BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('section')
WHERE "t" IS NOT NULL
    AND "key" IS NOT NULL
    AND "name" IS NOT NULL
    AND isfinite(t);

-- A state transition of a task on a worker (opt-in, but for tasks that secede).
CREATE OR REPLACE TABLE raw.worker_transition (
    "t" DOUBLE,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "key" VARCHAR,
    "start" VARCHAR,
    "finish" VARCHAR,
    "state" VARCHAR,
    "stimulus_id" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('worker_transition');
INSERT INTO raw.worker_transition BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('worker_transition')
WHERE "t" IS NOT NULL
    AND "key" IS NOT NULL
    AND "start" IS NOT NULL
    AND "finish" IS NOT NULL
    AND isfinite(t);

-- A transfer of results between two workers, as reported by one of them (opt-in). A transfer has a record per worker that reports it. Clients, and the scheduler on their behalf, report none.
CREATE OR REPLACE TABLE raw.transfer (
    "t" DOUBLE,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "source" VARCHAR,
    "destination" VARCHAR,
    "nbytes" BIGINT,
    "keys" MAP(VARCHAR, BIGINT),
    "measured" STRUCT("until" VARCHAR, "source" VARCHAR, "events" BIGINT, "open_seconds" DOUBLE, "process_seconds" DOUBLE, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE, "compression" VARCHAR, "cpu_seconds" DOUBLE, "bytes_read" BIGINT, "requests" BIGINT, "columns" VARCHAR[], "branches" STRUCT("branch" VARCHAR, "compressed_bytes" BIGINT, "uncompressed_bytes" BIGINT, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE)[], "file_branches" BIGINT, "file_bytes" BIGINT, "memory_before" BIGINT, "memory_after" BIGINT, "memory_peak" BIGINT, "memory_delta" BIGINT, "sent_bytes" BIGINT, "disk_bytes" BIGINT, "from_checkpoint" BOOLEAN, "module" VARCHAR, "rank" BIGINT, "opens" BIGINT, "reads" BIGINT, "writes" BIGINT, "bytes_written" BIGINT, "write_seconds" DOUBLE, "metadata_seconds" DOUBLE, "offset_bytes" BIGINT),
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('transfer');
INSERT INTO raw.transfer BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('transfer')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- A result that moved between memory and disk of a worker (opt-in).
CREATE OR REPLACE TABLE raw.spill (
    "t" DOUBLE,
    "worker" VARCHAR,
    "server_id" VARCHAR,
    "key" VARCHAR,
    "start" VARCHAR,
    "finish" VARCHAR,
    "nbytes" BIGINT,
    "measured" STRUCT("until" VARCHAR, "source" VARCHAR, "events" BIGINT, "open_seconds" DOUBLE, "process_seconds" DOUBLE, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE, "compression" VARCHAR, "cpu_seconds" DOUBLE, "bytes_read" BIGINT, "requests" BIGINT, "columns" VARCHAR[], "branches" STRUCT("branch" VARCHAR, "compressed_bytes" BIGINT, "uncompressed_bytes" BIGINT, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE)[], "file_branches" BIGINT, "file_bytes" BIGINT, "memory_before" BIGINT, "memory_after" BIGINT, "memory_peak" BIGINT, "memory_delta" BIGINT, "sent_bytes" BIGINT, "disk_bytes" BIGINT, "from_checkpoint" BOOLEAN, "module" VARCHAR, "rank" BIGINT, "opens" BIGINT, "reads" BIGINT, "writes" BIGINT, "bytes_written" BIGINT, "write_seconds" DOUBLE, "metadata_seconds" DOUBLE, "offset_bytes" BIGINT),
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('spill');
INSERT INTO raw.spill BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('spill')
WHERE "t" IS NOT NULL
    AND "key" IS NOT NULL
    AND "start" IS NOT NULL
    AND "finish" IS NOT NULL
    AND isfinite(t);

-- A Dask event, logged by the scheduler, a worker, a client or the user.
CREATE OR REPLACE TABLE raw.event (
    "t" DOUBLE,
    "topic" VARCHAR,
    "worker" VARCHAR,
    "payload" JSON,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('event');
INSERT INTO raw.event BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('event')
WHERE "t" IS NOT NULL
    AND "topic" IS NOT NULL
    AND isfinite(t);

-- Records that are missing from the trace.
CREATE OR REPLACE TABLE raw.loss (
    "t" DOUBLE,
    "reason" VARCHAR,
    "record_kind" VARCHAR,
    "records" BIGINT,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "detail" VARCHAR,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('loss');
INSERT INTO raw.loss BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('loss')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- The first record of data that was imported from another program. ``roast-analyze import`` appends it to the recording, directly followed by the records that it counts, to which its checksum and size refer. All have the ``t`` of the end of the recording, so that the duration of the run is unchanged.
CREATE OR REPLACE TABLE raw.import (
    "t" DOUBLE,
    "name" VARCHAR,
    "source" VARCHAR,
    "filename" VARCHAR,
    "worker" VARCHAR,
    "pid" BIGINT,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "versions" JSON,
    "value" JSON,
    "records_by_kind" MAP(VARCHAR, BIGINT),
    "nbytes" BIGINT,
    "crc32" BIGINT,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('import');
INSERT INTO raw.import BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('import')
WHERE "t" IS NOT NULL
    AND "name" IS NOT NULL
    AND "records_by_kind" IS NOT NULL
    AND isfinite(t);

-- Access of a process, or of all processes of a job, to a file through one I/O layer. Imported: a record of a module of Darshan.
CREATE OR REPLACE TABLE raw.io_file (
    "t" DOUBLE,
    "source" VARCHAR,
    "filename" VARCHAR,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "measured" STRUCT("until" VARCHAR, "source" VARCHAR, "events" BIGINT, "open_seconds" DOUBLE, "process_seconds" DOUBLE, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE, "compression" VARCHAR, "cpu_seconds" DOUBLE, "bytes_read" BIGINT, "requests" BIGINT, "columns" VARCHAR[], "branches" STRUCT("branch" VARCHAR, "compressed_bytes" BIGINT, "uncompressed_bytes" BIGINT, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE)[], "file_branches" BIGINT, "file_bytes" BIGINT, "memory_before" BIGINT, "memory_after" BIGINT, "memory_peak" BIGINT, "memory_delta" BIGINT, "sent_bytes" BIGINT, "disk_bytes" BIGINT, "from_checkpoint" BOOLEAN, "module" VARCHAR, "rank" BIGINT, "opens" BIGINT, "reads" BIGINT, "writes" BIGINT, "bytes_written" BIGINT, "write_seconds" DOUBLE, "metadata_seconds" DOUBLE, "offset_bytes" BIGINT),
    "value" JSON,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('io_file');
INSERT INTO raw.io_file BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('io_file')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- One read or write call. Imported: a segment of Darshan's DXT.
CREATE OR REPLACE TABLE raw.io_segment (
    "t" DOUBLE,
    "source" VARCHAR,
    "filename" VARCHAR,
    "host" VARCHAR,
    "activity" VARCHAR,
    "start_t" DOUBLE,
    "stop_t" DOUBLE,
    "nbytes" BIGINT,
    "measured" STRUCT("until" VARCHAR, "source" VARCHAR, "events" BIGINT, "open_seconds" DOUBLE, "process_seconds" DOUBLE, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE, "compression" VARCHAR, "cpu_seconds" DOUBLE, "bytes_read" BIGINT, "requests" BIGINT, "columns" VARCHAR[], "branches" STRUCT("branch" VARCHAR, "compressed_bytes" BIGINT, "uncompressed_bytes" BIGINT, "read_seconds" DOUBLE, "decompress_seconds" DOUBLE)[], "file_branches" BIGINT, "file_bytes" BIGINT, "memory_before" BIGINT, "memory_after" BIGINT, "memory_peak" BIGINT, "memory_delta" BIGINT, "sent_bytes" BIGINT, "disk_bytes" BIGINT, "from_checkpoint" BOOLEAN, "module" VARCHAR, "rank" BIGINT, "opens" BIGINT, "reads" BIGINT, "writes" BIGINT, "bytes_written" BIGINT, "write_seconds" DOUBLE, "metadata_seconds" DOUBLE, "offset_bytes" BIGINT),
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('io_segment');
INSERT INTO raw.io_segment BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('io_segment')
WHERE "t" IS NOT NULL
    AND isfinite(t);

-- A function measured by a tracing profiler, with its callees. Imported from Yappi. ``value`` has ``index``, ``line_number``, ``builtin``, ``calls``, ``actual_calls`` (without recursive ones), ``self_seconds`` and ``total_seconds``, ``thread`` and ``thread_name`` and ``tag`` if known, ``code_flags`` (Python's ``co_flags``) if the file has them, and ``callees``: a list of index, calls, actual_calls, self_seconds and total_seconds of calls from this function.
CREATE OR REPLACE TABLE raw.function (
    "t" DOUBLE,
    "source" VARCHAR,
    "name" VARCHAR,
    "filename" VARCHAR,
    "value" JSON,
    "segment" BIGINT,
    "trace_id" VARCHAR
);
SET VARIABLE roast_columns = _columns_of('function');
INSERT INTO raw.function BY NAME
SELECT * EXCLUDE (place) REPLACE (place.segment AS segment, place.trace_id AS trace_id)
FROM _records_of('function')
WHERE "t" IS NOT NULL
    AND "name" IS NOT NULL
    AND isfinite(t);

-- -- Segments and damage --------------------------------------------------------------------

CREATE OR REPLACE TEMP TABLE _kept AS
    SELECT 'header' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.header GROUP BY ALL
    UNION ALL
    SELECT 'trailer' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.trailer GROUP BY ALL
    UNION ALL
    SELECT 'environment' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.environment GROUP BY ALL
    UNION ALL
    SELECT 'task' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.task GROUP BY ALL
    UNION ALL
    SELECT 'transition' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.transition GROUP BY ALL
    UNION ALL
    SELECT 'worker_added' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.worker_added GROUP BY ALL
    UNION ALL
    SELECT 'worker_removed' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.worker_removed GROUP BY ALL
    UNION ALL
    SELECT 'client_added' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.client_added GROUP BY ALL
    UNION ALL
    SELECT 'client_removed' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.client_removed GROUP BY ALL
    UNION ALL
    SELECT 'wanted_keys' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.wanted_keys GROUP BY ALL
    UNION ALL
    SELECT 'worker_sample' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.worker_sample GROUP BY ALL
    UNION ALL
    SELECT 'scheduler_sample' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.scheduler_sample GROUP BY ALL
    UNION ALL
    SELECT 'stall' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.stall GROUP BY ALL
    UNION ALL
    SELECT 'client_activity' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.client_activity GROUP BY ALL
    UNION ALL
    SELECT 'cluster_size' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.cluster_size GROUP BY ALL
    UNION ALL
    SELECT 'graph' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.graph GROUP BY ALL
    UNION ALL
    SELECT 'graph_update' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.graph_update GROUP BY ALL
    UNION ALL
    SELECT 'computation' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.computation GROUP BY ALL
    UNION ALL
    SELECT 'span' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.span GROUP BY ALL
    UNION ALL
    SELECT 'fine_metric' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.fine_metric GROUP BY ALL
    UNION ALL
    SELECT 'profile' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.profile GROUP BY ALL
    UNION ALL
    SELECT 'chunk' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.chunk GROUP BY ALL
    UNION ALL
    SELECT 'section' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.section GROUP BY ALL
    UNION ALL
    SELECT 'worker_transition' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.worker_transition GROUP BY ALL
    UNION ALL
    SELECT 'transfer' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.transfer GROUP BY ALL
    UNION ALL
    SELECT 'spill' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.spill GROUP BY ALL
    UNION ALL
    SELECT 'event' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.event GROUP BY ALL
    UNION ALL
    SELECT 'loss' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.loss GROUP BY ALL
    UNION ALL
    SELECT 'import' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.import GROUP BY ALL
    UNION ALL
    SELECT 'io_file' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.io_file GROUP BY ALL
    UNION ALL
    SELECT 'io_segment' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.io_segment GROUP BY ALL
    UNION ALL
    SELECT 'function' AS kind, segment, trace_id, count(*) AS records, min(t) AS start_t, max(t) AS stop_t FROM raw.function GROUP BY ALL;

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
        'version ' || schema_version || ' read as 2.6: renamed fields are missing'
    FROM versions
    WHERE version[1] < 2
    UNION ALL
    SELECT
        file,
        5,
        0,
        'newer schema version',
        NULL,
        'version ' || schema_version || ' read as 2.6; upgrade: pip install -U ''.[analyze]'' in a clone of roast'
    FROM versions
    WHERE version[1] = 2 AND version[2] > 6
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

-- First and last instant of each trace: one row per trace.
CREATE OR REPLACE VIEW _trace_range AS
SELECT trace_id, min(start_t) AS start_t, max(stop_t) AS stop_t
FROM raw.segments
GROUP BY trace_id;

-- Negative durations come from clock differences or corrections, and count as 0. greatest()
-- would turn null into 0.
CREATE OR REPLACE MACRO _clip_negative(seconds) AS CASE WHEN seconds < 0 THEN 0 ELSE seconds END;

-- Return whether an attempt at a task or chunk failed; cancelled and rescheduled ones did not.
CREATE OR REPLACE MACRO _is_failed(outcome) AS outcome IN ('erred', 'retried', 'lost', 'skipped');

-- Return whether an attempt computed a result that was kept, given its row of _discarded_results, if any.
CREATE OR REPLACE MACRO _is_kept(outcome, discarded_seq) AS outcome = 'memory' AND discarded_seq IS NULL;

-- Power of two by which to widen time buckets so that there are at most about `pairs` pairs of a
-- bucket and a worker, but at least `fewest` buckets. greatest() ignores the null of a trace
-- without workers.
CREATE OR REPLACE MACRO _widening(buckets, workers, pairs, fewest) AS
    2 ** greatest(0, least(ceil(log2(buckets * workers / pairs)), floor(log2(buckets / fewest))));

-- The scheduler, the recording client and the workers. Segments repeat these facts; each is one
-- row here. Before schema version 2.3 the recorder derived jobs, CPU model and limits of control
-- groups itself; since then it records the variables and files that they are derived from.
CREATE OR REPLACE VIEW _processes AS
WITH recorded AS (
    SELECT DISTINCT ON (trace_id, name, server_id)
        rowid AS seq,
        trace_id,
        t,
        worker,
        server_id,
        json_transform(
            value,
            '{
                "role": "VARCHAR", "pid": "BIGINT", "python": "VARCHAR",
                "implementation": "VARCHAR", "configuration": "VARCHAR",
                "defaults": "VARCHAR", "config_sources": "VARCHAR",
                "packages": "VARCHAR", "plugins": ["VARCHAR"],
                "machine": {
                    "host": "VARCHAR", "system": "VARCHAR", "platform": "VARCHAR",
                    "kernel": "VARCHAR", "architecture": "VARCHAR", "cpu_model": "VARCHAR",
                    "cores": "BIGINT", "usable_cores": "BIGINT", "cgroup_cores": "DOUBLE",
                    "memory_bytes": "BIGINT", "cgroup_memory_bytes": "BIGINT",
                    "open_files_limit": "BIGINT"
                },
                "jobs": [{
                    "system": "VARCHAR", "job_id": "VARCHAR", "array_id": "VARCHAR",
                    "array_index": "VARCHAR", "name": "VARCHAR", "queue": "VARCHAR",
                    "cluster": "VARCHAR", "namespace": "VARCHAR", "node": "VARCHAR",
                    "slot": "VARCHAR", "nodes": "BIGINT", "cores": "BIGINT",
                    "memory_bytes": "BIGINT", "start_t": "DOUBLE", "end_t": "DOUBLE"
                }],
                "variables": "JSON",
                "files": [{"path": "VARCHAR", "text": "VARCHAR"}]
            }'
        ) AS process
    FROM raw.environment
    WHERE section = 'process' AND json_type(value) = 'OBJECT'
    ORDER BY rowid
)
SELECT
    seq,
    trace_id,
    t,
    worker,
    server_id,
    process.role AS role,
    process,
    coalesce(
        process.machine.cpu_model,
        trim(left(regexp_extract(
            [file.text FOR file IN process.files IF file.path = '/proc/cpuinfo'][1],
            ':(.*)$',
            1
        ), 200))
    ) AS cpu_model,
    -- A limit applies to all groups within its group, so the smallest one counts. Version 2 of
    -- control groups has "quota period" or "max period" in one file, version 1 has two files.
    coalesce(
        process.machine.cgroup_cores,
        list_min([
            cpu[1] / nullif(cpu[2], 0)
            FOR cpu IN [
                [
                    try_cast(split_part(trim(file.text), ' ', 1) AS DOUBLE),
                    try_cast(
                        coalesce(
                            [
                                other.text FOR other IN process.files
                                IF file.path LIKE '%/cpu.cfs_quota_us'
                                AND other.path = replace(file.path, 'quota', 'period')
                            ][1],
                            split_part(trim(file.text), ' ', 2)
                        ) AS DOUBLE
                    )
                ]
                FOR file IN process.files
                IF file.path LIKE '%/cpu.max' OR file.path LIKE '%/cpu.cfs_quota_us'
            ]
            IF cpu[1] >= 0
        ])
    ) AS cgroup_cores,
    -- Version 1 has a number near 2^63 where there is no limit.
    coalesce(
        process.machine.cgroup_memory_bytes,
        list_min([
            nbytes
            FOR nbytes IN [
                try_cast(trim(file.text) AS BIGINT)
                FOR file IN process.files
                IF regexp_matches(file.path, '/memory\.(max|limit_in_bytes)$')
            ]
            IF nbytes >= 0 AND nbytes < 1::BIGINT << 60
        ])
    ) AS cgroup_memory_bytes
FROM recorded
WHERE process.role IS NOT NULL;

CREATE OR REPLACE VIEW events AS
SELECT t, topic, worker, payload, trace_id
FROM raw.event
ORDER BY trace_id, rowid;

COMMENT ON VIEW events IS 'Events logged by scheduler, workers, clients or the user. One row per Dask event and topic.';
COMMENT ON COLUMN events.t IS 'Time of logging, in seconds since the epoch.';
COMMENT ON COLUMN events.topic IS 'Topic of the event.';
COMMENT ON COLUMN events.worker IS 'Address of the worker that the event is about or comes from.';
COMMENT ON COLUMN events.payload IS 'Event message, as JSON.';
COMMENT ON COLUMN events.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW imports AS
SELECT
    name AS tool,
    filename,
    try_cast(coalesce(list_sum(map_values(records_by_kind)), 0) AS BIGINT) AS records,
    try_cast(value ->> '$.imported_t' AS DOUBLE) AS imported_t,
    start_t,
    stop_t,
    worker,
    pid,
    versions,
    value AS facts,
    source,
    segment,
    trace_id
FROM raw.import
ORDER BY trace_id, rowid;

COMMENT ON VIEW imports IS 'Files of other tools imported into the trace. One row per imported file.';
COMMENT ON COLUMN imports.tool IS 'Tool: darshan or yappi.';
COMMENT ON COLUMN imports.filename IS 'Name of the imported file.';
COMMENT ON COLUMN imports.records IS 'Records created from the file.';
COMMENT ON COLUMN imports.imported_t IS 'Time of the import, in seconds since the epoch, on the clock of the importing machine.';
COMMENT ON COLUMN imports.start_t IS 'Start of the measurement, in seconds since the epoch, on the clock of the measured machine. Null if the file does not contain it.';
COMMENT ON COLUMN imports.stop_t IS 'End, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN imports.worker IS 'Worker that was measured, if given at import.';
COMMENT ON COLUMN imports.pid IS 'Process that was measured, if it was one and the file contains its id.';
COMMENT ON COLUMN imports.versions IS 'Versions of the measuring tool and of the reader, by name, as JSON.';
COMMENT ON COLUMN imports.facts IS 'Other information from the file, as JSON.';
COMMENT ON COLUMN imports.source IS 'ID of the file: the first 16 hexadecimal digits of its SHA-256.';
COMMENT ON COLUMN imports.segment IS 'Segment that contains the imported records.';
COMMENT ON COLUMN imports.trace_id IS 'ID of the trace.';

-- Records: profile
-- Profile records with a malformed tree. In a correct tree, a parent comes before its children,
-- every node but the root has a function, and each node of a slice exists, occurs once and has its
-- parent in the slice. Sizes are bounded so that sums do not overflow.
CREATE OR REPLACE TABLE _damaged_profiles AS
SELECT
    rowid AS record,
    t,
    segment,
    trace_id
FROM raw.profile
WHERE NOT coalesce(
    len(tree.node_frames) = len(tree.parents)
    AND list_count(tree.frames) = len(tree.frames)
    AND list_bool_and(list_transform(
        tree.parents,
        lambda parent, place: CASE
            WHEN place = 1 THEN parent IS NULL
            ELSE coalesce(parent BETWEEN 0 AND place - 2, false)
        END
    ))
    AND list_bool_and(list_transform(
        tree.node_frames,
        lambda frame, place: place = 1
        OR coalesce(frame BETWEEN 0 AND len(tree.frames) - 1, false)
    ))
    AND coalesce(
        list_bool_and(list_transform(
            tree.slices,
            lambda slice: coalesce(
                len(slice.counts) = len(slice.nodes)
                AND list_unique(slice.nodes) = len(slice.nodes)
                AND list_count(slice.counts) = len(slice.counts)
                AND (
                    slice.innermost IS NULL
                    OR (
                        len(slice.innermost) = len(slice.nodes)
                        AND list_count(slice.innermost) = len(slice.innermost)
                        AND list_min(slice.innermost) >= 0
                        AND list_max(slice.innermost) < 1000000000
                    )
                )
                AND coalesce(
                    list_min(slice.nodes) >= 0
                    AND list_max(slice.nodes) < len(tree.parents)
                    AND list_min(slice.counts) >= 0
                    AND list_max(slice.counts) < 1000000000
                    AND list_has_all(
                        slice.nodes,
                        list_filter(
                            list_select(
                                tree.parents,
                                list_transform(slice.nodes, lambda node: coalesce(node + 1, 0))
                            ),
                            lambda parent: parent IS NOT NULL
                        )
                    ),
                    len(slice.nodes) = 0
                ),
                false
            )
        )),
        true
    ),
    false
);

CREATE OR REPLACE VIEW trace_info AS
SELECT
    segments.segment,
    header.schema_version,
    segments.start_t,
    segments.stop_t,
    segments.has_trailer AS clean_end,
    trailer.reason AS end_reason,
    header.versions ->> 'dask' AS dask_version,
    header.versions ->> 'distributed' AS distributed_version,
    header.versions ->> 'python' AS python_version,
    header.versions ->> 'roast-trace' AS recorder_version,
    header.scheduler,
    header.utc_offset_seconds,
    header.clock_offset_seconds,
    header.settings,
    segments.records,
    trailer.redacted_values,
    segments.path,
    header.settings ->> 'label' AS label,
    segments.trace_id
FROM raw.segments AS segments
LEFT JOIN (
    FROM raw.header
    WHERE rowid IN (SELECT min(rowid) FROM raw.header GROUP BY trace_id, segment)
) AS header USING (trace_id, segment)
LEFT JOIN (
    FROM raw.trailer
    WHERE rowid IN (SELECT min(rowid) FROM raw.trailer GROUP BY trace_id, segment)
) AS trailer USING (trace_id, segment)
ORDER BY segments.trace_id, segments.segment;

COMMENT ON VIEW trace_info IS 'Segments of the trace, with versions and settings. One row per segment.';
COMMENT ON COLUMN trace_info.segment IS 'Segment number, from 1.';
COMMENT ON COLUMN trace_info.schema_version IS 'Version of the trace format. Null if the header is missing.';
COMMENT ON COLUMN trace_info.start_t IS 'First record, in seconds since the epoch.';
COMMENT ON COLUMN trace_info.stop_t IS 'Last record, in seconds since the epoch.';
COMMENT ON COLUMN trace_info.clean_end IS 'True if the segment ends with a trailer: the recording ended cleanly.';
COMMENT ON COLUMN trace_info.end_reason IS 'Why the segment ended, such as: recording was stopped · the recorded block raised ValueError · the program raised ValueError · the scheduler closed. Null if it did not end cleanly.';
COMMENT ON COLUMN trace_info.dask_version IS 'Version of dask on the scheduler.';
COMMENT ON COLUMN trace_info.distributed_version IS 'Version of distributed on the scheduler.';
COMMENT ON COLUMN trace_info.python_version IS 'Version of Python on the scheduler.';
COMMENT ON COLUMN trace_info.recorder_version IS 'Version of roast that made the recording.';
COMMENT ON COLUMN trace_info.scheduler IS 'Address of the scheduler.';
COMMENT ON COLUMN trace_info.utc_offset_seconds IS 'Local time of the scheduler minus UTC.';
COMMENT ON COLUMN trace_info.clock_offset_seconds IS 'Clock of the process that wrote the file minus the scheduler''s clock.';
COMMENT ON COLUMN trace_info.settings IS 'Recorder settings, as JSON.';
COMMENT ON COLUMN trace_info.records IS 'Records of known kinds in the segment.';
COMMENT ON COLUMN trace_info.redacted_values IS 'Number of secrets replaced by <redacted> up to the end of this segment. Null if it did not end cleanly.';
COMMENT ON COLUMN trace_info.path IS 'File name.';
COMMENT ON COLUMN trace_info.label IS 'Name of the run, given when it was recorded.';
COMMENT ON COLUMN trace_info.trace_id IS 'ID of the trace.';

-- Return whether a value of the configuration differs between runs with equal settings: an address,
-- a port, a folder for temporary files, or a list that Dask extends with each scheduler of a process.
CREATE OR REPLACE MACRO _is_run_specific(name, value) AS
    name = 'distributed.scheduler.http.routes'
    OR regexp_matches(name, '(^|[.-])(address|port|host|temporary-directory|local-directory|log-directory|scheduler-file|pid-file)$')
    OR regexp_matches(coalesce(value, ''), '^(tcp|tls|ws|wss|ucx|ucxx|inproc|http|https)://|^/(tmp|scratch|var/tmp|run)(/|$)|:[0-9]{4,5}$');

-- Return a value of an HTCondor ad, a text of lines such as Cpus = 2 and Name = "slot1@host".
CREATE OR REPLACE MACRO _job_ad(ad, name) AS
    nullif(regexp_extract(ad, '(?:^|\n)' || name || ' = "?([^"\n]*)', 1), '');

-- Return the first variable that is a size, in bytes: 2^34 of "16Gi", "16 GB" and "16g".
CREATE OR REPLACE MACRO _job_bytes(variables, names) AS
    list_filter(
        list_transform(
            list_transform(
                names,
                lambda name: regexp_extract(
                    trim(variables ->> name),
                    '^(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)i?[bB]?$',
                    ['number', 'unit']
                )
            ),
            -- A number near 2^64 means that there is no limit.
            lambda size: try_cast(
                try_cast(size.number AS DOUBLE)
                * pow(1024, coalesce(strpos('kmgt', nullif(lower(size.unit), '')), 0))
                AS BIGINT
            )
        ),
        lambda nbytes: nbytes IS NOT NULL
    )[1];

-- Return the hosts of a recorded file with a host per line, separated by commas.
CREATE OR REPLACE MACRO _job_hosts(files, path) AS
    replace([f.text FOR f IN files IF f.path = path][1], chr(10), ',');

-- Return the first variable that begins with an integer: 8 of "8(x2)", 8 cores on two nodes each.
CREATE OR REPLACE MACRO _job_integer(variables, names) AS
    list_filter(
        list_transform(
            names,
            lambda name: try_cast(
                regexp_extract(trim(variables ->> name), '^\d{1,15}') AS BIGINT
            )
        ),
        lambda number: number IS NOT NULL
    )[1];

-- Return the first variable that is set, as text of at most 200 characters.
CREATE OR REPLACE MACRO _job_text(variables, names) AS
    left(trim([variables ->> name FOR name IN names IF trim(variables ->> name) <> ''][1]), 200);

-- Lists that processes share, without duplicates: section is packages, configuration,
-- config_sources or defaults.
CREATE OR REPLACE VIEW _sheets AS
SELECT trace_id, section, name, min_by(value, rowid) AS value
FROM raw.environment
WHERE section IN ('packages', 'configuration', 'config_sources', 'defaults')
GROUP BY trace_id, section, name;

-- Divide the computation of an attempt that seceded: from then on it held no thread of the worker, and
-- computed or waited.
CREATE OR REPLACE MACRO _secede_phases(startstops, seceded_t) AS list_concat(
    list_transform(
        startstops,
        lambda part: if(
            part.action = 'compute',
            struct_update(part, stop := greatest(least(part.stop, seceded_t), part.start)),
            part
        )
    ),
    list_transform(
        list_filter(startstops, lambda part: part.action = 'compute' AND part.stop > seceded_t),
        lambda part: struct_update(
            part, action := 'seceded', start := greatest(part.start, seceded_t)
        )
    )
);

-- Records: worker_transition
-- Times at which tasks left the threads of their worker (secede, worker_client), by the rowid of the
-- transition that ended the attempt.
CREATE OR REPLACE TABLE _secessions AS
SELECT ending.rowid AS end_seq, min(secession.t) AS t
FROM (
    SELECT trace_id, worker, key, t FROM raw.worker_transition WHERE finish = 'long-running'
) AS secession
ASOF INNER JOIN (FROM raw.transition SELECT rowid, * WHERE "start" = 'processing') AS ending
    ON secession.trace_id = ending.trace_id
    AND secession.key = ending.key
    AND secession.t <= ending.t
WHERE secession.worker = ending.worker
GROUP BY ending.rowid;

-- Graphs as submitted by the recording client. A graph is matched on the scheduler by one of
-- its keys: the first task of that key submitted then or up to 0.1 s before, since clocks
-- differ. If the scheduler already had the task, there is no match.
CREATE OR REPLACE VIEW _client_graphs AS
SELECT
    graph.rowid AS seq,
    graph.trace_id,
    graph.t,
    graph.client,
    graph.key,
    json_transform(
        graph.value,
        '{
            "layers": [{"name": "VARCHAR", "type": "VARCHAR", "tasks": "BIGINT", "fused": ["VARCHAR"]}],
            "more_layers": "BIGINT",
            "collections": ["VARCHAR"],
            "code": {
                "digest": "VARCHAR", "filename": "VARCHAR", "line_number": "BIGINT",
                "first_line": "BIGINT", "text": "VARCHAR"
            }
        }'
    ) AS description,
    task.stimulus_id,
    task.t AS entered_t
FROM raw.graph AS graph
ASOF LEFT JOIN raw.task AS task
    ON graph.trace_id = task.trace_id
    AND graph.key = task.key
    AND graph.t - 0.1 <= task.t;

-- Clip the phases of an attempt to a range; phases outside take no time.
CREATE OR REPLACE MACRO _clip_phases(startstops, from_t, until_t) AS list_transform(
    -- least() and greatest() ignore nulls.
    list_filter(startstops, lambda part: part.start IS NOT NULL AND part.stop IS NOT NULL),
    lambda part: struct_pack(
        action := part.action,
        start := least(greatest(part.start, from_t), until_t),
        stop := least(greatest(part.stop, from_t), until_t)
    )
);

-- Records: chunk
-- Keys of chunk records. A key known to the scheduler without entries reads the number of
-- entries of a file, and is not a chunk.
CREATE OR REPLACE TABLE _coffea_keys AS
SELECT
    trace_id,
    key,
    CASE
        WHEN bool_or(measured.until = 'metadata') THEN 'file metadata'
        WHEN bool_or(entry_start IS NOT NULL OR measured.events IS NOT NULL)
            OR NOT bool_or(run_id IS NULL) THEN 'chunk'
        ELSE 'file metadata'
    END AS role,
    coalesce(bool_or(measured.until = 'read'), false) AS goes_on
FROM raw.chunk
GROUP BY trace_id, key;

-- Attempts that were dispatched before the first transition of their key was recorded: a task was
-- processing when recording began, or its first recorded transition ends an attempt. The existing
-- tasks are recorded in steps, while transitions are recorded already. So an attempt that is in the
-- record of its task can also have a transition that began it: one with the same run id, or, since
-- work stealing changes the run id and old versions of Dask have none, the latest one before that
-- record if it did not end meanwhile. Then it is not counted again.
CREATE OR REPLACE VIEW _earlier_attempts AS
WITH existing AS (
    SELECT rowid AS task, key, t, state, worker, run_id, trace_id
    FROM raw.task
    WHERE state IS NOT NULL
),
steps AS (
    SELECT
        existing.*,
        transition.rowid AS seq,
        transition.t AS step_t,
        transition.run_id AS step_run_id,
        transition.finish = 'processing' AS begins
    FROM existing
    LEFT JOIN raw.transition AS transition
        ON existing.trace_id = transition.trace_id
        AND existing.key = transition.key
        AND (transition.finish = 'processing' OR transition."start" = 'processing')
)
SELECT
    -1 - task AS seq,
    key,
    t,
    -- The record of a task can be about a later attempt than the one that its first transition ends.
    CASE WHEN is_processing AND NOT is_begun THEN worker END AS worker,
    CASE WHEN is_processing AND NOT is_begun THEN run_id END AS run_id,
    trace_id
FROM (
    SELECT
        task,
        key,
        t,
        worker,
        run_id,
        trace_id,
        coalesce(state = 'processing' AND worker IS NOT NULL, false) AS is_processing,
        coalesce(bool_or(begins AND step_run_id = run_id), false)
            OR coalesce(arg_max(begins, seq) FILTER (step_t <= t), false) AS is_begun,
        coalesce(NOT arg_min(begins, seq), false) AS ends_first
    FROM steps
    GROUP BY ALL
)
WHERE ends_first OR (is_processing AND NOT is_begun);

-- Error that coffea wraps as Exception("Failed processing file: WorkItem(…). The error was:
-- OSError('…')."), or with "Failed creating nanoevents". The outer repr escapes the backslashes of
-- the quoted error, and its quotation marks if it contains both kinds.
CREATE OR REPLACE MACRO _error_cause(exception) AS CASE
    WHEN regexp_matches(exception, 'Failed (processing file|creating nanoevents): ')
        THEN coalesce(
            regexp_replace(
                nullif(regexp_extract(exception, 'The error was: (.+?)\.?["'']?\)?$', 1, 's'), ''),
                '\\(\\|'')',
                '\1',
                'g'
            ),
            exception
        )
    ELSE exception
END;

-- Type of an exception from its text, such as KeyError, with the module if the text contains it. The
-- text of errors of zlib and struct is only error('…').
CREATE OR REPLACE MACRO _exception_type(exception) AS CASE
    WHEN regexp_matches(exception, '^\s*error\(["'']Error -?\d+ while ') THEN 'zlib.error'
    WHEN regexp_matches(exception, '^\s*error\(["''](un)?pack') THEN 'struct.error'
    ELSE nullif(regexp_extract(exception, '^\s*([\w.]*\w)', 1), '')
END;

-- Return whether an attempt ended with an exception that was not suppressed.
CREATE OR REPLACE MACRO _has_raised(outcome) AS outcome IN ('erred', 'retried');

-- File that a coffea task reads, its number of entries included. Tasks that read several files
-- (dask-awkward) have none.
CREATE OR REPLACE TABLE _task_files AS
SELECT trace_id, key, any_value(chunk.filename) AS filename
FROM raw.chunk AS chunk
GROUP BY trace_id, key
HAVING count(DISTINCT chunk.filename) = 1;

-- Time of tasks in the states before a result: from the transition into the state to the next
-- transition of the key. A task that was in such a state when recording began counts from then.
-- Sorting numbers takes half as long as sorting texts, so keys are replaced by hashes of 64 bits, and
-- states by their positions. Two of a million keys have the same hash with a probability of 3e-8;
-- their times would then be mixed up.
CREATE OR REPLACE VIEW _task_states AS
SELECT
    ['waiting', 'queued', 'no-worker', 'processing'][state] AS state,
    t AS from_t,
    lead(t) OVER in_order AS until_t,
    lead(seq) OVER in_order AS until_seq,
    trace_id
FROM (
    SELECT
        seq,
        hash(trace_id, key) AS task,
        list_position(['waiting', 'queued', 'no-worker', 'processing'], state)::UTINYINT AS state,
        t,
        trace_id
    FROM (
        SELECT rowid AS seq, key, finish AS state, t, trace_id FROM raw.transition
        UNION ALL
        SELECT -1 - task.rowid, task.key, task.state, task.t, task.trace_id
        FROM raw.task AS task
        ANTI JOIN raw.transition AS transition
            ON task.trace_id = transition.trace_id
            AND task.key = transition.key
            -- The record of the task is from after the transition.
            AND transition.t <= task.t
        WHERE task.state IS NOT NULL
    )
)
WINDOW in_order AS (PARTITION BY task ORDER BY seq)
QUALIFY state IS NOT NULL;

-- Arrivals of tasks at a worker, and how far each got before the next arrival of the same key.
-- The stimulus of the arrival contains the time at which the scheduler sent the task. Nearly
-- all tasks arrive once at a worker; a window separates repeated arrivals.
CREATE OR REPLACE VIEW _worker_arrivals AS
WITH steps AS (
    SELECT
        rowid AS seq,
        trace_id,
        worker,
        server_id,
        key,
        t,
        stimulus_id,
        finish = 'waiting' AND starts_with(stimulus_id, 'compute-task-') AS arrives,
        finish IN ('ready', 'constrained') AS is_ready,
        finish = 'executing' AS executes
    FROM raw.worker_transition
    WHERE finish IN ('waiting', 'ready', 'constrained', 'executing')
),
first_arrivals AS (
    SELECT
        trace_id,
        worker,
        server_id,
        key,
        any_value(stimulus_id) FILTER (arrives) AS stimulus_id,
        min(t) FILTER (arrives) AS arrived_t,
        min(t) FILTER (is_ready) AS ready_t,
        min(t) FILTER (executes) AS executing_t,
        count(*) FILTER (arrives) = 1 AND min(seq) FILTER (arrives) = min(seq) AS is_simple
    FROM steps
    GROUP BY trace_id, worker, server_id, key
    HAVING count(*) FILTER (arrives) > 0
),
numbered AS (
    SELECT
        steps.*,
        count(*) FILTER (arrives) OVER (
            PARTITION BY trace_id, worker, steps.server_id, key
            ORDER BY seq
            ROWS UNBOUNDED PRECEDING
        ) AS number
    FROM steps
    INNER JOIN first_arrivals AS place USING (trace_id, worker, key)
    WHERE NOT place.is_simple AND steps.server_id IS NOT DISTINCT FROM place.server_id
),
arrivals AS (
    SELECT trace_id, worker, key, stimulus_id, arrived_t, ready_t, executing_t
    FROM first_arrivals
    WHERE is_simple
    UNION ALL
    SELECT
        trace_id,
        worker,
        key,
        any_value(stimulus_id) FILTER (arrives) AS stimulus_id,
        min(t) FILTER (arrives) AS arrived_t,
        min(t) FILTER (is_ready) AS ready_t,
        min(t) FILTER (executes) AS executing_t
    FROM numbered
    WHERE number > 0
    GROUP BY trace_id, worker, server_id, key, number
)
SELECT
    *, try_cast(replace(stimulus_id, 'compute-task-', '') AS DOUBLE) AS sent_t
FROM arrivals;

CREATE OR REPLACE VIEW client_activity AS
SELECT
    client,
    start_t,
    stop_t,
    stop_t - start_t AS seconds,
    activity,
    name AS "function",
    filename,
    measured.cpu_seconds,
    trace_id
FROM raw.client_activity
ORDER BY trace_id, start_t, rowid;

COMMENT ON VIEW client_activity IS 'Activity of the program of the recording client, sampled every 0.1 s. One row per period of at most 10 s in one function. Between rows no code of the program ran, as in a notebook that waits for its user. Empty for asynchronous clients and before trace format 2.4.';
COMMENT ON COLUMN client_activity.client IS 'Client.';
COMMENT ON COLUMN client_activity.start_t IS 'Start, in seconds since the epoch.';
COMMENT ON COLUMN client_activity.stop_t IS 'End, in seconds since the epoch.';
COMMENT ON COLUMN client_activity.seconds IS 'Duration.';
COMMENT ON COLUMN client_activity.activity IS 'wait: for Dask · dask: other work of Dask that the program called, such as making graphs · own: everything else.';
COMMENT ON COLUMN client_activity."function" IS 'Innermost function of the program, which may have called installed packages.';
COMMENT ON COLUMN client_activity.filename IS 'File of the function.';
COMMENT ON COLUMN client_activity.cpu_seconds IS 'CPU time of the main thread. Much less than seconds for own work means that it waited, as for files.';
COMMENT ON COLUMN client_activity.trace_id IS 'ID of the trace.';

-- In file order, trace by trace, which is the scheduler's order. Sorting would take longer than
-- most queries.
CREATE OR REPLACE VIEW transitions AS
SELECT
    t,
    key,
    "start",
    finish,
    stimulus_id,
    worker,
    run_id,
    thread,
    nbytes,
    typename,
    startstops,
    cause,
    exception,
    traceback,
    rowid AS seq,
    trace_id
FROM raw.transition;

COMMENT ON VIEW transitions IS 'Scheduler transitions, as recorded. One row per state change of a task.';
COMMENT ON COLUMN transitions.t IS 'Time, in seconds since the epoch.';
COMMENT ON COLUMN transitions.key IS 'Task key.';
COMMENT ON COLUMN transitions.start IS 'State before.';
COMMENT ON COLUMN transitions.finish IS 'State after.';
COMMENT ON COLUMN transitions.stimulus_id IS 'Stimulus: Dask''s ID of what caused the transition.';
COMMENT ON COLUMN transitions.worker IS 'Worker that the task was sent to, or that reported its end.';
COMMENT ON COLUMN transitions.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN transitions.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN transitions.nbytes IS 'Size of the result.';
COMMENT ON COLUMN transitions.typename IS 'Type of the result.';
COMMENT ON COLUMN transitions.startstops IS 'Phases of the attempt: action, start, stop, source. task_phases has one row per phase.';
COMMENT ON COLUMN transitions.cause IS 'Key of the task whose failure caused this one.';
COMMENT ON COLUMN transitions.exception IS 'Exception text.';
COMMENT ON COLUMN transitions.traceback IS 'Traceback text.';
COMMENT ON COLUMN transitions.seq IS 'Position in the scheduler''s order within the trace.';
COMMENT ON COLUMN transitions.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW worker_transitions AS
SELECT
    t,
    worker,
    key,
    "start",
    finish,
    coalesce(state, finish) AS state,
    stimulus_id,
    server_id,
    rowid AS seq,
    trace_id
FROM raw.worker_transition
ORDER BY trace_id, t, rowid;

COMMENT ON VIEW worker_transitions IS 'State changes of tasks on workers. One row per change. Workers use other states than the scheduler, and track results that they fetch as tasks. Empty unless recorded with worker_transitions=True.';
COMMENT ON COLUMN worker_transitions.t IS 'Time, in seconds since the epoch, as the worker estimates the scheduler''s clock.';
COMMENT ON COLUMN worker_transitions.worker IS 'Worker address.';
COMMENT ON COLUMN worker_transitions.key IS 'Task key.';
COMMENT ON COLUMN worker_transitions.start IS 'State before.';
COMMENT ON COLUMN worker_transitions.finish IS 'Requested state.';
COMMENT ON COLUMN worker_transitions.state IS 'State after: finish, or cancelled or resumed if the change has to wait.';
COMMENT ON COLUMN worker_transitions.stimulus_id IS 'Stimulus: Dask''s ID of what caused the transition. For →waiting of a dispatched task, compute-task- and the time at which the scheduler sent it.';
COMMENT ON COLUMN worker_transitions.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN worker_transitions.seq IS 'Position in the trace. Ordered within a worker.';
COMMENT ON COLUMN worker_transitions.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW worker_samples AS
SELECT
    t,
    worker,
    metrics.cpu AS cpu_percent,
    metrics.memory AS memory_bytes,
    nullif(memory_limit, 0) AS memory_limit_bytes,
    -- Dask counts spilled results as managed, by their size in memory.
    CASE
        WHEN metrics.managed_bytes IS NOT NULL
        THEN greatest(metrics.managed_bytes - coalesce(metrics.spilled_memory, 0), 0)
    END AS managed_bytes,
    metrics.spilled_disk AS spilled_bytes,
    nthreads,
    processing,
    executing,
    metrics.ready,
    occupancy AS occupancy_seconds,
    nbytes AS stored_bytes,
    last_seen AS last_seen_t,
    metrics.event_loop_interval AS event_loop_interval_seconds,
    metrics.num_fds,
    metrics.incoming_bytes,
    metrics.outgoing_bytes,
    metrics.host_net_read_bps,
    metrics.host_net_write_bps,
    metrics.host_disk_read_bps,
    metrics.host_disk_write_bps,
    server_id,
    trace_id
FROM raw.worker_sample
ORDER BY trace_id, rowid;

COMMENT ON VIEW worker_samples IS 'Load and memory of each worker over time. One row per worker and sampling tick.';
COMMENT ON COLUMN worker_samples.t IS 'Sampling tick, in seconds since the epoch; the same for all workers.';
COMMENT ON COLUMN worker_samples.worker IS 'Worker address.';
COMMENT ON COLUMN worker_samples.cpu_percent IS 'CPU use of the process. 100 is one core.';
COMMENT ON COLUMN worker_samples.memory_bytes IS 'Process memory.';
COMMENT ON COLUMN worker_samples.memory_limit_bytes IS 'Memory limit. Null if there is none.';
COMMENT ON COLUMN worker_samples.managed_bytes IS 'Results held in memory, without spilled ones.';
COMMENT ON COLUMN worker_samples.spilled_bytes IS 'Results spilled, by size on disk.';
COMMENT ON COLUMN worker_samples.nthreads IS 'Number of threads that compute.';
COMMENT ON COLUMN worker_samples.processing IS 'Tasks assigned by the scheduler.';
COMMENT ON COLUMN worker_samples.executing IS 'Tasks computing.';
COMMENT ON COLUMN worker_samples.ready IS 'Tasks waiting for a thread.';
COMMENT ON COLUMN worker_samples.occupancy_seconds IS 'Dask''s estimate of the remaining work assigned to workers.';
COMMENT ON COLUMN worker_samples.stored_bytes IS 'Results held by the worker, as counted by the scheduler.';
COMMENT ON COLUMN worker_samples.last_seen_t IS 'Last heartbeat, in seconds since the epoch: the time at which the values were current.';
COMMENT ON COLUMN worker_samples.event_loop_interval_seconds IS 'Mean interval of the event loop. 0.02 is idle; more means a blocked loop.';
COMMENT ON COLUMN worker_samples.num_fds IS 'Open file descriptors.';
COMMENT ON COLUMN worker_samples.incoming_bytes IS 'Bytes of incoming transfers in progress.';
COMMENT ON COLUMN worker_samples.outgoing_bytes IS 'Bytes of outgoing transfers in progress.';
COMMENT ON COLUMN worker_samples.host_net_read_bps IS 'Incoming network traffic of the host, in bytes per second.';
COMMENT ON COLUMN worker_samples.host_net_write_bps IS 'Outgoing network traffic of the host, in bytes per second.';
COMMENT ON COLUMN worker_samples.host_disk_read_bps IS 'Disk reads of the host, in bytes per second.';
COMMENT ON COLUMN worker_samples.host_disk_write_bps IS 'Disk writes of the host, in bytes per second.';
COMMENT ON COLUMN worker_samples.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN worker_samples.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW scheduler_samples AS
SELECT
    t,
    metrics.cpu AS cpu_percent,
    -- The last sample can be taken in another thread, after the event loop has ended.
    if(loop_percent >= 0, loop_percent, NULL) AS loop_cpu_percent,
    metrics.event_loop_interval AS event_loop_interval_seconds,
    metrics.memory AS memory_bytes,
    metrics.num_fds,
    metrics.host_net_read_bps,
    metrics.host_net_write_bps,
    metrics.host_disk_read_bps,
    metrics.host_disk_write_bps,
    server_id,
    trace_id
FROM (
    SELECT
        *,
        rowid AS seq,
        100 * (metrics.loop_cpu_seconds - lag(metrics.loop_cpu_seconds) OVER samples)
            / nullif(t - lag(t) OVER samples, 0) AS loop_percent
    FROM raw.scheduler_sample
    WINDOW samples AS (PARTITION BY trace_id, server_id ORDER BY rowid)
)
ORDER BY trace_id, seq;

COMMENT ON VIEW scheduler_samples IS 'Load of the scheduler over time. One row per sampling tick. In a LocalCluster the process is also the client''s. Empty before trace format 2.4.';
COMMENT ON COLUMN scheduler_samples.t IS 'Sampling tick, in seconds since the epoch.';
COMMENT ON COLUMN scheduler_samples.cpu_percent IS 'CPU use of the process. 100 is one core.';
COMMENT ON COLUMN scheduler_samples.loop_cpu_percent IS 'CPU use of the thread of the event loop since the previous sample. At 100 the scheduler is saturated.';
COMMENT ON COLUMN scheduler_samples.event_loop_interval_seconds IS 'Mean interval of the event loop. 0.02 is idle; more means a busy or blocked loop.';
COMMENT ON COLUMN scheduler_samples.memory_bytes IS 'Process memory.';
COMMENT ON COLUMN scheduler_samples.num_fds IS 'Open file descriptors.';
COMMENT ON COLUMN scheduler_samples.host_net_read_bps IS 'Incoming network traffic of the host, in bytes per second.';
COMMENT ON COLUMN scheduler_samples.host_net_write_bps IS 'Outgoing network traffic of the host, in bytes per second.';
COMMENT ON COLUMN scheduler_samples.host_disk_read_bps IS 'Disk reads of the host, in bytes per second.';
COMMENT ON COLUMN scheduler_samples.host_disk_write_bps IS 'Disk writes of the host, in bytes per second.';
COMMENT ON COLUMN scheduler_samples.server_id IS 'ID of the scheduler process.';
COMMENT ON COLUMN scheduler_samples.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW spills AS
SELECT
    t,
    worker,
    key,
    "start",
    finish,
    nbytes AS bytes,
    measured.disk_bytes AS disk_bytes,
    trace_id
FROM raw.spill
ORDER BY trace_id, rowid;

COMMENT ON VIEW spills IS 'Results spilled to disk or read back by workers. One row per move. Empty unless recorded with worker_transitions=True.';
COMMENT ON COLUMN spills.t IS 'Time of completion, in seconds since the epoch.';
COMMENT ON COLUMN spills.worker IS 'Worker address.';
COMMENT ON COLUMN spills.key IS 'Key of the result.';
COMMENT ON COLUMN spills.start IS 'From: memory or disk.';
COMMENT ON COLUMN spills.finish IS 'To: disk or memory.';
COMMENT ON COLUMN spills.bytes IS 'Size in memory, measured by Dask''s sizeof. Null if the result did not stay in memory.';
COMMENT ON COLUMN spills.disk_bytes IS 'Size on disk, serialized and compressed. Null for a result that was read back.';
COMMENT ON COLUMN spills.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW stalls AS
SELECT
    CASE WHEN worker IS NULL THEN 'scheduler' ELSE 'worker' END AS process,
    worker,
    start_t,
    stop_t,
    stop_t - start_t AS seconds,
    server_id,
    trace_id
FROM raw.stall
ORDER BY trace_id, start_t, rowid;

COMMENT ON VIEW stalls IS 'Stalls of event loops: times in which a scheduler or worker could neither send nor receive. One row per stall of at least 0.1 s. Typical causes are code that holds the GIL, large arguments inside of tasks, which workers deserialize on the event loop, and overloaded machines. Empty before trace format 2.4.';
COMMENT ON COLUMN stalls.process IS 'scheduler or worker.';
COMMENT ON COLUMN stalls.worker IS 'Worker address. Null for the scheduler.';
COMMENT ON COLUMN stalls.start_t IS 'Time at which the event loop was due to continue, in seconds since the epoch. The stall may have begun up to 0.02 s before.';
COMMENT ON COLUMN stalls.stop_t IS 'Time at which it continued, in seconds since the epoch.';
COMMENT ON COLUMN stalls.seconds IS 'Duration.';
COMMENT ON COLUMN stalls.server_id IS 'ID of the process.';
COMMENT ON COLUMN stalls.trace_id IS 'ID of the trace.';

-- Interquartile range divided by the median.
CREATE OR REPLACE MACRO _relative_iqr(value) AS CASE
    WHEN count(value) > 1
        THEN (quantile_cont(value, 0.75) - quantile_cont(value, 0.25)) / nullif(median(value), 0)
END;

-- Sum of the known values of a list: 0 if the list is empty, null if all values are null.
CREATE OR REPLACE MACRO _sum_or_zero(list) AS CASE WHEN len(list) = 0 THEN 0 ELSE list_sum(list) END;

-- Round a number of events to two digits: up (1), down (-1) or to the nearest (0).
CREATE OR REPLACE MACRO _round_two_digits(n, direction) AS CASE
    WHEN n >= 1 THEN round(n / 10 ** (floor(log10(n)) - 1) + 0.4999 * direction)
        * 10 ** (floor(log10(n)) - 1)
END;

-- Fine metrics without idle time and without duplicates: Dask reports p2p work inside tasks
-- twice, in context p2p as `foreground`, and in execute with p2p- before the activity. Only the
-- second one has the task. Rows do not come from fine_metric_deltas, which sorts them.
CREATE OR REPLACE VIEW _activity_deltas AS
SELECT t, worker, server_id, context, span_id, prefix, activity, unit, delta, trace_id
FROM raw.fine_metric
WHERE activity IS DISTINCT FROM 'idle'
    AND (context IS DISTINCT FROM 'p2p' OR prefix IS DISTINCT FROM 'foreground');

CREATE OR REPLACE VIEW spans AS
SELECT span_id, span_name[-1] AS name, span_name AS path, parent_id, t, trace_id
FROM raw.span
WHERE rowid IN (SELECT min(rowid) FROM raw.span GROUP BY trace_id, span_id)
ORDER BY trace_id, rowid;

COMMENT ON VIEW spans IS 'Named parts of the work. One row per span. Empty if none were recorded.';
COMMENT ON COLUMN spans.span_id IS 'ID of the span.';
COMMENT ON COLUMN spans.name IS 'Span name, without the enclosing spans.';
COMMENT ON COLUMN spans.path IS 'Names from the outermost span to this one.';
COMMENT ON COLUMN spans.parent_id IS 'ID of the enclosing span.';
COMMENT ON COLUMN spans.t IS 'First time seen, in seconds since the epoch.';
COMMENT ON COLUMN spans.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW fine_metric_deltas AS
SELECT
    t,
    worker,
    server_id,
    context,
    span_id,
    prefix,
    activity,
    unit,
    delta,
    trace_id
FROM raw.fine_metric
ORDER BY trace_id, t, rowid;

COMMENT ON VIEW fine_metric_deltas IS 'Fine performance metrics over time. One row per worker heartbeat and metric, with the increase since the last heartbeat; fine_metrics has the sums. Work of p2p inside tasks is reported twice: as foreground of p2p, and in execute with p2p- before the activity. Empty if no metrics were recorded.';
COMMENT ON COLUMN fine_metric_deltas.t IS 'Arrival at the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN fine_metric_deltas.worker IS 'Worker address.';
COMMENT ON COLUMN fine_metric_deltas.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN fine_metric_deltas.context IS 'execute, get-data, gather-dep, p2p or memory-monitor.';
COMMENT ON COLUMN fine_metric_deltas.span_id IS 'Span of the work.';
COMMENT ON COLUMN fine_metric_deltas.prefix IS 'Key prefix of the tasks. For p2p, foreground or the background task.';
COMMENT ON COLUMN fine_metric_deltas.activity IS 'Activity.';
COMMENT ON COLUMN fine_metric_deltas.unit IS 'Unit of the delta.';
COMMENT ON COLUMN fine_metric_deltas.delta IS 'Increase since the last heartbeat.';
COMMENT ON COLUMN fine_metric_deltas.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW fine_metrics AS
SELECT
    worker,
    server_id,
    context,
    span_id,
    prefix,
    activity,
    unit,
    sum(delta) AS value,
    trace_id
FROM raw.fine_metric
GROUP BY trace_id, worker, server_id, context, span_id, prefix, activity, unit
ORDER BY trace_id, unit, value DESC, worker, context, span_id, prefix, activity, server_id;

COMMENT ON VIEW fine_metrics IS 'Fine performance metrics, summed over the recording. One row per worker, span, prefix, activity and unit. Work of p2p inside tasks is reported twice: as foreground of p2p, and in execute with p2p- before the activity. Empty if no metrics were recorded.';
COMMENT ON COLUMN fine_metrics.worker IS 'Worker address.';
COMMENT ON COLUMN fine_metrics.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN fine_metrics.context IS 'execute, get-data, gather-dep, p2p or memory-monitor.';
COMMENT ON COLUMN fine_metrics.span_id IS 'Span of the work.';
COMMENT ON COLUMN fine_metrics.prefix IS 'Key prefix of the tasks. For p2p, foreground or the background task.';
COMMENT ON COLUMN fine_metrics.activity IS 'Activity.';
COMMENT ON COLUMN fine_metrics.unit IS 'Unit of the value.';
COMMENT ON COLUMN fine_metrics.value IS 'Sum over the recording. Values of a span exclude those of nested spans.';
COMMENT ON COLUMN fine_metrics.trace_id IS 'ID of the trace.';

-- Functions measured by a tracing profiler, with their numbers as columns.
CREATE OR REPLACE VIEW _functions AS
SELECT
    record.rowid AS function,
    record.name,
    record.filename,
    record.name || ' (' || coalesce(record.filename, '?')
        || coalesce(':' || numbers.line_number, '') || ')' AS label,
    numbers.*,
    facts.worker,
    facts.value ->> '$.clock' AS clock,
    facts.filename AS log,
    record.source,
    record.trace_id
FROM (
    SELECT
        rowid,
        *,
        try_cast(value AS STRUCT(
            "index" BIGINT, line_number BIGINT, builtin BOOLEAN, code_flags BIGINT, calls BIGINT, actual_calls BIGINT,
            self_seconds DOUBLE, total_seconds DOUBLE, thread BIGINT, thread_name VARCHAR,
            tag BIGINT,
            callees STRUCT(
                "index" BIGINT, calls BIGINT, actual_calls BIGINT, self_seconds DOUBLE,
                total_seconds DOUBLE
            )[]
        )) AS numbers
    FROM raw.function
) AS record
LEFT JOIN raw.import AS facts USING (trace_id, source);

-- Time buckets of a recording, of a given length in seconds or, if null, of 1, 2 or 5 times a
-- power of ten, chosen so that there are more than 150 and at most 400 buckets. The last one ends with the
-- recording. One row per trace; a recording of zero length has no buckets.
CREATE OR REPLACE MACRO _buckets(bucket_seconds) AS TABLE
SELECT
    trace_id,
    start_t,
    extent,
    width,
    CASE
        WHEN extent / width > 1e6 THEN error(
            'a bucket of ' || bucket_seconds || ' s makes more than a million of them'
        )
        ELSE ceil(extent / width)
    END::BIGINT AS buckets
FROM (
    SELECT
        trace_id,
        start_t,
        extent,
        CASE
            WHEN bucket_seconds::DOUBLE > 0 THEN bucket_seconds::DOUBLE
            WHEN bucket_seconds IS NOT NULL THEN error(
                'a bucket takes more than 0 s, not ' || bucket_seconds
            )
            -- Division makes 5 / 1000 exactly 0.005.
            ELSE CASE
                WHEN extent * per <= 400 THEN 1
                WHEN extent * per <= 800 THEN 2
                WHEN extent * per <= 2000 THEN 5
                ELSE 10
            END / per
        END AS width
    FROM (
        SELECT
            trace_id,
            start_t,
            stop_t - start_t AS extent,
            10.0 ** -floor(log10((stop_t - start_t) / 400)) AS per
        FROM _trace_range
        WHERE stop_t > start_t
    )
);

-- Total time of phases whose action has a prefix: null without any phase, 0 without a matching
-- one. Negative durations (clock corrections) count as 0.
CREATE OR REPLACE MACRO _phase_seconds(startstops, action_prefix) AS CASE
    WHEN len(startstops) > 0 THEN coalesce(
        list_sum(list_transform(
            list_filter(startstops, lambda part: starts_with(part.action, action_prefix)),
            lambda part: _clip_negative(part.stop - part.start)
        )),
        0
    )
END;

-- Both ends report a transfer. Two reports match if workers and keys are the same and the times
-- overlap within 1 s, for clock differences. If the same keys were transferred several times
-- between the same workers, reports match if each is the nearest to the other.
CREATE OR REPLACE VIEW transfers AS
WITH words AS (
    SELECT
        rowid AS seq,
        trace_id,
        source,
        destination,
        start_t,
        stop_t,
        nbytes,
        keys,
        list_sort(map_keys(keys)) AS names,
        measured.sent_bytes AS sent_bytes,
        CASE worker WHEN destination THEN 'destination' WHEN source THEN 'source' END AS reported_by
    FROM raw.transfer
),
pairs AS (
    SELECT
        received.seq AS received,
        sent.seq AS sent,
        abs(sent.start_t + sent.stop_t - received.start_t - received.stop_t) AS apart
    FROM words AS received
    INNER JOIN words AS sent USING (trace_id, source, destination, names)
    WHERE received.reported_by = 'destination'
        AND sent.reported_by = 'source'
        AND received.start_t - 1 <= sent.stop_t
        AND sent.start_t - 1 <= received.stop_t
    QUALIFY row_number() OVER (PARTITION BY received.seq ORDER BY apart, sent.seq) = 1
        AND row_number() OVER (PARTITION BY sent.seq ORDER BY apart, received.seq) = 1
)
SELECT
    word.start_t,
    word.stop_t,
    word.source,
    word.destination,
    word.nbytes AS bytes,
    word.keys,
    _clip_negative(word.stop_t - word.start_t) AS seconds,
    CASE
        WHEN word.stop_t > word.start_t THEN word.nbytes / (word.stop_t - word.start_t)
    END AS bytes_per_second,
    coalesce(sender.sent_bytes, word.sent_bytes) AS sent_bytes,
    CASE WHEN sender.seq IS NULL THEN word.reported_by ELSE 'both' END AS reported_by,
    CASE
        WHEN sender.seq IS NOT NULL THEN word.nbytes IS NOT DISTINCT FROM sender.nbytes
            AND list_sort(map_entries(word.keys)) = list_sort(map_entries(sender.keys))
    END AS sizes_agree,
    CASE word.reported_by WHEN 'source' THEN word.start_t ELSE sender.start_t END AS source_start_t,
    CASE word.reported_by WHEN 'source' THEN word.stop_t ELSE sender.stop_t END AS source_stop_t,
    CASE word.reported_by WHEN 'source' THEN word.nbytes ELSE sender.nbytes END AS source_bytes,
    word.trace_id
FROM words AS word
LEFT JOIN pairs AS pair ON word.seq = pair.received
LEFT JOIN words AS sender ON pair.sent = sender.seq
WHERE NOT EXISTS (SELECT 1 FROM pairs AS other WHERE other.sent = word.seq)
ORDER BY word.trace_id, word.seq;

COMMENT ON VIEW transfers IS 'Transfers of results between workers, and with clients. One row per transfer. Both ends report a transfer between workers; values are the receiver''s if it reported, otherwise the sender''s. Data exchanged by P2P shuffles is not included, since Dask does not log it. Empty unless recorded with transfers=True.';
COMMENT ON COLUMN transfers.start_t IS 'Start (request by the receiver), in seconds since the epoch. Null for data scattered by a client, which is not timed.';
COMMENT ON COLUMN transfers.stop_t IS 'End (arrival of all data), in seconds since the epoch.';
COMMENT ON COLUMN transfers.source IS 'Address of the sending worker. Null for a client, or the scheduler on its behalf.';
COMMENT ON COLUMN transfers.destination IS 'Address of the receiving worker. Null for a client, or the scheduler on its behalf.';
COMMENT ON COLUMN transfers.bytes IS 'Size of the data, measured by Dask''s sizeof.';
COMMENT ON COLUMN transfers.keys IS 'Size of the data by key.';
COMMENT ON COLUMN transfers.seconds IS 'Duration.';
COMMENT ON COLUMN transfers.bytes_per_second IS 'Bandwidth.';
COMMENT ON COLUMN transfers.sent_bytes IS 'Bytes written to the network by the sender, after compression. Null if not reported.';
COMMENT ON COLUMN transfers.reported_by IS 'Reporting end: both, destination or source. After a worker died, only the surviving end''s report is available. rebalance(), replicate() and transfers to a client are reported by the source alone, scattered data by the destination. Null if not recorded.';
COMMENT ON COLUMN transfers.sizes_agree IS 'True if both ends report the same size for each key. Null unless both reported.';
COMMENT ON COLUMN transfers.source_start_t IS 'Start of sending, in seconds since the epoch. Null if not reported.';
COMMENT ON COLUMN transfers.source_stop_t IS 'End of sending, in seconds since the epoch. Null if not reported.';
COMMENT ON COLUMN transfers.source_bytes IS 'Size of the data as reported by the sender. Null if not reported.';
COMMENT ON COLUMN transfers.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW machines AS
WITH before AS (
    SELECT
        trace_id,
        split_part(section, ' ', 1) AS process,
        max(value ->> '$') FILTER (name = 'host') AS host,
        max(value ->> '$') FILTER (name = 'platform') AS platform,
        max(try_cast(value ->> '$' AS BIGINT)) FILTER (name = 'cores') AS cores
    FROM raw.environment
    WHERE section IN ('scheduler machine', 'client machine')
    GROUP BY trace_id, section
)
SELECT
    host,
    process,
    processes,
    cores,
    usable_cores,
    cgroup_cores,
    memory_bytes,
    cgroup_memory_bytes,
    cpu_model,
    architecture,
    "system",
    kernel,
    platform,
    python,
    open_files_limit,
    workers,
    trace_id
FROM (
    SELECT
        * EXCLUDE (seq, worker),
        count(*) AS processes,
        list(worker ORDER BY seq) FILTER (process = 'worker') AS workers
    FROM (
        SELECT
            trace_id,
            seq,
            worker,
            role AS process,
            process.python AS python,
            process.machine.host AS host,
            process.machine.cores AS cores,
            process.machine.usable_cores AS usable_cores,
            cgroup_cores,
            process.machine.memory_bytes AS memory_bytes,
            cgroup_memory_bytes,
            cpu_model,
            process.machine.architecture AS architecture,
            process.machine."system" AS "system",
            process.machine.kernel AS kernel,
            process.machine.platform AS platform,
            process.machine.open_files_limit AS open_files_limit
        FROM _processes
        WHERE process.machine IS NOT NULL
    )
    GROUP BY ALL
    UNION ALL BY NAME
    SELECT *, 1 AS processes
    FROM before
)
ORDER BY trace_id, process, host;

COMMENT ON VIEW machines IS 'Hosts of scheduler, client and workers, with resource limits. One row per host, kind of process and limits.';
COMMENT ON COLUMN machines.host IS 'Name of the host.';
COMMENT ON COLUMN machines.process IS 'Kind of process: scheduler, client (the recording one) or worker.';
COMMENT ON COLUMN machines.processes IS 'Number of processes of that kind with the same limits.';
COMMENT ON COLUMN machines.cores IS 'Cores of the host.';
COMMENT ON COLUMN machines.usable_cores IS 'Cores that the process may run on.';
COMMENT ON COLUMN machines.cgroup_cores IS 'CPU limit of the control group, in cores; null means no limit.';
COMMENT ON COLUMN machines.memory_bytes IS 'Memory of the host.';
COMMENT ON COLUMN machines.cgroup_memory_bytes IS 'Memory limit of the control group; null means no limit.';
COMMENT ON COLUMN machines.cpu_model IS 'Model of the CPU.';
COMMENT ON COLUMN machines.architecture IS 'Architecture of the CPU.';
COMMENT ON COLUMN machines."system" IS 'Operating system.';
COMMENT ON COLUMN machines.kernel IS 'Release of the kernel.';
COMMENT ON COLUMN machines.platform IS 'Operating system, kernel and C library, as reported by Python.';
COMMENT ON COLUMN machines.python IS 'Version of Python.';
COMMENT ON COLUMN machines.open_files_limit IS 'Maximum number of open files of a process.';
COMMENT ON COLUMN machines.workers IS 'Addresses of the workers; null for other processes.';
COMMENT ON COLUMN machines.trace_id IS 'ID of the trace.';

-- Dask counts a sample in every function of a stack except the innermost one. The recorder
-- adds which one was innermost, except in the profiling cycle in which recording began. In that
-- cycle the count of a node minus those of its children (its excess) are samples in which one
-- of these children was innermost:
--
-- * a single child gets them all;
-- * with several children, a child with count 0 was innermost at least once: that sample is
--   certain, and the rest of the excess is ambiguous;
-- * without children they belong to the node itself, which was counted although it was
--   innermost, as in low-level profiling.
--
-- The scheduler's counts include the innermost function, so there an excess belongs to the node.
--
-- Paths are lists of node numbers until the last step, which processes one record at a time:
-- joining the large tree of a record would copy it into every row.
CREATE OR REPLACE VIEW _counted_stacks AS
WITH RECURSIVE nodes AS MATERIALIZED (
    SELECT
        profile.rowid AS record,
        unnest(range(len(tree.parents))) AS node,
        unnest(tree.parents) AS parent
    FROM raw.profile AS profile
    WHERE profile.rowid NOT IN (SELECT record FROM _damaged_profiles)
),
paths AS (
    SELECT record, node, []::BIGINT[] AS path
    FROM nodes
    WHERE node = 0
    UNION ALL
    SELECT nodes.record, nodes.node, list_append(paths.path, nodes.node + 1)
    FROM paths
    INNER JOIN nodes ON paths.record = nodes.record AND paths.node = nodes.parent
    -- Dask limits stacks to 100 frames. A malformed tree must not exhaust the memory.
    WHERE len(paths.path) < 400
),
slices AS (
    SELECT
        profile.rowid AS record,
        worker IS NULL AS of_scheduler,
        tree.parents AS parents,
        unnest(range(len(tree.slices))) + 1 AS slice,
        unnest(tree.slices) AS cycle
    FROM raw.profile AS profile
    WHERE profile.rowid NOT IN (SELECT record FROM _damaged_profiles)
),
counts AS (
    SELECT
        record,
        of_scheduler,
        slice,
        unnest(cycle.nodes) AS node,
        unnest(list_select(parents, list_transform(cycle.nodes, lambda node: node + 1))) AS parent,
        unnest(cycle.counts) AS samples,
        unnest(cycle.innermost) AS innermost
    FROM slices
),
children AS (
    SELECT
        record,
        slice,
        parent AS node,
        count(*) AS children,
        count(*) FILTER (samples = 0) AS uncounted,
        try_cast(sum(samples) AS BIGINT) AS samples
    FROM counts
    GROUP BY record, slice, parent
),
excesses AS (
    SELECT
        counts.record,
        of_scheduler,
        slice,
        node,
        parent,
        counts.samples,
        innermost,
        greatest(counts.samples - coalesce(children.samples, 0), 0) AS excess,
        CASE WHEN of_scheduler THEN 0 ELSE coalesce(children.children, 0) END AS children,
        CASE WHEN uncounted <= excess THEN uncounted ELSE 0 END AS certain
    FROM counts
    LEFT JOIN children USING (record, slice, node)
),
decided AS (
    SELECT
        callee.record,
        callee.slice,
        callee.node,
        CASE
            WHEN callee.innermost IS NOT NULL THEN callee.innermost
            ELSE CASE WHEN callee.children = 0 THEN callee.excess ELSE 0 END
                + CASE
                    WHEN caller.children = 1 THEN caller.excess
                    WHEN caller.children > 1 AND callee.samples = 0 THEN least(caller.certain, 1)
                    ELSE 0
                END
        END AS samples,
        CASE
            WHEN callee.innermost IS NULL AND callee.children > 1
                THEN callee.excess - callee.certain
            ELSE 0
        END AS undecided,
        callee.excess AS counted
    FROM excesses AS callee
    LEFT JOIN excesses AS caller
        ON callee.record = caller.record
        AND callee.slice = caller.slice
        AND callee.parent = caller.node
)
SELECT
    record,
    list({
        slice: slice, path: path, samples: samples, undecided: undecided, counted: counted
    } ORDER BY slice, path) AS stacks
FROM decided
INNER JOIN paths USING (record, node)
WHERE samples > 0 OR undecided > 0 OR counted > 0
GROUP BY record;

-- Jobs of batch systems, from the environment variables and files of the processes in them.
-- `place` orders the systems of one process.
CREATE OR REPLACE VIEW _jobs AS
WITH processes AS (
    SELECT
        trace_id,
        seq,
        role,
        worker,
        process.machine.host AS host,
        process.variables AS v,
        process.files AS files
    FROM _processes
    WHERE json_type(process.variables) = 'OBJECT'
),
slurm AS (
    SELECT
        *,
        1 AS place,
        'SLURM' AS "system",
        _job_text(v, ['SLURM_JOB_ID', 'SLURM_JOBID']) AS job_id,
        _job_text(v, ['SLURM_ARRAY_JOB_ID']) AS array_id,
        _job_text(v, ['SLURM_ARRAY_TASK_ID']) AS array_index,
        _job_text(v, ['SLURM_JOB_NAME']) AS name,
        _job_text(v, ['SLURM_JOB_PARTITION']) AS queue,
        _job_text(v, ['SLURM_JOB_ACCOUNT']) AS account,
        _job_text(v, ['SLURM_JOB_QOS']) AS qos,
        -- Shortened: n[01-12,20].
        trim(coalesce(v ->> 'SLURM_JOB_NODELIST', v ->> 'SLURM_NODELIST')) AS node_list,
        _job_text(v, ['SLURM_CLUSTER_NAME']) AS cluster,
        _job_text(v, ['SLURMD_NODENAME']) AS node,
        _job_text(v, ['SLURM_PROCID']) AS slot,
        _job_integer(v, ['SLURM_JOB_NUM_NODES', 'SLURM_NNODES']) AS nodes,
        _job_integer(v, ['SLURM_CPUS_PER_TASK', 'SLURM_CPUS_ON_NODE']) AS cores,
        -- A megabyte of Slurm is 2^20 bytes.
        -- As DOUBLE, because a product of integers can overflow.
        try_cast(1048576::DOUBLE * coalesce(
            _job_integer(v, ['SLURM_MEM_PER_NODE']),
            nullif(cores, 0)::DOUBLE * _job_integer(v, ['SLURM_MEM_PER_CPU'])
        ) AS BIGINT) AS memory_bytes,
        _job_integer(v, ['SLURM_JOB_START_TIME'])::DOUBLE AS start_t,
        _job_integer(v, ['SLURM_JOB_END_TIME'])::DOUBLE AS end_t
    FROM processes
    WHERE v ->> 'SLURM_JOB_ID' <> ''
),
ads AS (
    SELECT
        *,
        coalesce([f.text FOR f IN files IF f.path = v ->> '_CONDOR_JOB_AD'][1], '') AS job,
        coalesce([f.text FOR f IN files IF f.path = v ->> '_CONDOR_MACHINE_AD'][1], '') AS machine
    FROM processes
    WHERE v ->> '_CONDOR_JOB_AD' <> ''
),
htcondor AS (
    SELECT
        *,
        2 AS place,
        'HTCondor' AS "system",
        _job_ad(job, 'ClusterId') || '.' || coalesce(_job_ad(job, 'ProcId'), 'None') AS job_id,
        _job_ad(job, 'JobBatchName') AS name,
        -- HTCondor has no queues. The universe, which is recorded as a number, is most similar.
        CASE _job_ad(job, 'JobUniverse')
            WHEN '5' THEN 'vanilla'
            WHEN '7' THEN 'scheduler'
            WHEN '9' THEN 'grid'
            WHEN '10' THEN 'java'
            WHEN '11' THEN 'parallel'
            WHEN '12' THEN 'local'
            WHEN '13' THEN 'vm'
        END AS queue,
        _job_ad(job, 'AccountingGroup') AS account,
        nullif(split_part(_job_ad(job, 'GlobalJobId'), '#', 1), '') AS cluster,
        -- slot1_7@host
        coalesce(_job_ad(machine, 'Name'), _job_ad(job, 'RemoteHost'), '') AS slot_name,
        coalesce(
            _job_ad(machine, 'Machine'), nullif(regexp_extract(slot_name, '[^@]*$'), '')
        ) AS node,
        coalesce(
            _job_text(v, ['_CONDOR_SLOT']), nullif(regexp_extract(slot_name, '^(.*)@', 1), '')
        ) AS slot,
        try_cast(
            coalesce(_job_ad(machine, 'Cpus'), _job_ad(job, 'RequestCpus')) AS BIGINT
        ) AS cores,
        try_cast(1048576::DOUBLE * try_cast(
            coalesce(_job_ad(machine, 'Memory'), _job_ad(job, 'RequestMemory')) AS BIGINT
        ) AS BIGINT) AS memory_bytes,
        try_cast(_job_ad(job, 'JobStartDate') AS DOUBLE) AS start_t
    FROM ads
),
pbs AS (
    SELECT
        *,
        3 AS place,
        'PBS' AS "system",
        _job_text(v, ['PBS_JOBID']) AS job_id,
        _job_text(v, ['PBS_ARRAY_INDEX', 'PBS_ARRAYID']) AS array_index,
        _job_text(v, ['PBS_JOBNAME']) AS name,
        _job_text(v, ['PBS_QUEUE']) AS queue,
        _job_text(v, ['PBS_ACCOUNT']) AS account,
        _job_hosts(files, v ->> 'PBS_NODEFILE') AS node_list,
        _job_text(v, ['PBS_SERVER']) AS cluster,
        _job_text(v, ['PBS_NODENAME', 'HOSTNAME']) AS node,
        _job_text(v, ['PBS_NODENUM', 'PBS_VNODENUM']) AS slot,
        _job_integer(v, ['PBS_NUM_NODES']) AS nodes,
        _job_integer(v, ['NCPUS', 'PBS_NUM_PPN', 'PBS_NP']) AS cores,
        _job_bytes(v, ['PBS_RESC_MEM', 'PBS_RESC_TOTAL_MEM']) AS memory_bytes
    FROM processes
    WHERE v ->> 'PBS_JOBID' <> ''
),
lsf AS (
    SELECT
        *,
        4 AS place,
        'LSF' AS "system",
        -- One word per core: a a b b.
        regexp_extract_all(coalesce(v ->> 'LSB_HOSTS', ''), '\S+') AS hosts,
        _job_text(v, ['LSB_JOBID']) AS job_id,
        nullif(_job_text(v, ['LSB_JOBINDEX']), '0') AS array_index,
        _job_text(v, ['LSB_JOBNAME']) AS name,
        _job_text(v, ['LSB_QUEUE']) AS queue,
        _job_text(v, ['LSB_PROJECT_NAME']) AS account,
        nullif(array_to_string(list_sort(list_distinct(hosts)), ','), '') AS node_list,
        _job_text(v, ['LSF_CLUSTER_NAME']) AS cluster,
        coalesce(left(hosts[1], 200), _job_text(v, ['HOSTNAME'])) AS node,
        nullif(len(list_distinct(hosts)), 0) AS nodes,
        coalesce(
            _job_integer(v, ['LSB_DJOB_NUMPROC', 'LSB_MAX_NUM_PROCESSORS']),
            nullif(len(hosts), 0)
        ) AS cores,
        _job_bytes(v, ['LSB_CGROUP_MEM_LIMIT']) AS memory_bytes
    FROM processes
    WHERE v ->> 'LSB_JOBID' <> ''
),
sge AS (
    SELECT
        *,
        5 AS place,
        'SGE' AS "system",
        _job_text(v, ['JOB_ID']) AS job_id,
        nullif(_job_text(v, ['SGE_TASK_ID']), 'undefined') AS array_index,
        _job_text(v, ['JOB_NAME']) AS name,
        _job_text(v, ['QUEUE']) AS queue,
        _job_hosts(files, v ->> 'PE_HOSTFILE') AS node_list,
        _job_text(v, ['SGE_CLUSTER_NAME']) AS cluster,
        _job_text(v, ['HOSTNAME']) AS node,
        _job_integer(v, ['NHOSTS']) AS nodes,
        _job_integer(v, ['NSLOTS']) AS cores
    FROM processes
    WHERE v ->> 'SGE_ROOT' <> ''
),
oar AS (
    SELECT
        *,
        6 AS place,
        'OAR' AS "system",
        _job_text(v, ['OAR_JOB_ID']) AS job_id,
        _job_text(v, ['OAR_ARRAY_INDEX']) AS array_index,
        _job_text(v, ['OAR_JOB_NAME']) AS name,
        _job_text(v, ['OAR_PROJECT_NAME']) AS account,
        _job_hosts(files, v ->> 'OAR_NODEFILE') AS node_list,
        _job_text(v, ['HOSTNAME']) AS node
    FROM processes
    WHERE v ->> 'OAR_JOB_ID' <> ''
),
kubernetes AS (
    SELECT
        *,
        7 AS place,
        'Kubernetes' AS "system",
        -- Names that manifests commonly give to fields of the downward API.
        _job_text(v, ['POD_NAME', 'MY_POD_NAME', 'K8S_POD_NAME', 'HOSTNAME']) AS job_id,
        _job_text(v, ['DASK_WORKER_NAME']) AS name,
        coalesce(
            _job_text(v, ['POD_NAMESPACE', 'MY_POD_NAMESPACE', 'K8S_NAMESPACE']),
            nullif(trim([f.text FOR f IN files IF f.path LIKE '%/serviceaccount/namespace'][1]), '')
        ) AS namespace,
        _job_text(v, ['NODE_NAME', 'MY_NODE_NAME', 'K8S_NODE_NAME']) AS node,
        _job_integer(v, ['CPU_LIMIT', 'MY_CPU_LIMIT']) AS cores,
        _job_bytes(v, ['MEMORY_LIMIT', 'MEM_LIMIT', 'MY_MEM_LIMIT']) AS memory_bytes
    FROM processes
    WHERE v ->> 'KUBERNETES_SERVICE_HOST' <> ''
)
SELECT trace_id, seq, role, worker, process.machine.host AS host, 0 AS place, unnest(process.jobs, max_depth := 2)
FROM _processes
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM slurm
UNION ALL BY NAME
SELECT * EXCLUDE (v, files, job, machine, slot_name) FROM htcondor
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM pbs
UNION ALL BY NAME
SELECT * EXCLUDE (v, files, hosts) FROM lsf
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM sge
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM oar
UNION ALL BY NAME
SELECT * EXCLUDE (v, files) FROM kubernetes;

-- Dask's configuration of each group of processes with the same one. Before schema version 2.2
-- only a few options of the scheduler were recorded, without their defaults.
CREATE OR REPLACE VIEW _options AS
WITH entries AS (
    SELECT
        trace_id,
        section,
        sheet,
        entry.key AS name,
        entry.value ->> '$' AS value
    FROM (
        SELECT
            trace_id,
            section,
            name AS sheet,
            unnest(map_entries(json_transform(value, '"MAP(VARCHAR, JSON)"'))) AS entry
        FROM _sheets
        WHERE section IN ('configuration', 'defaults') AND json_type(value) = 'OBJECT'
    )
),
-- The last file or variable that sets an option, or code if it was changed later.
sources AS (
    SELECT
        trace_id,
        sheet,
        option AS name,
        max_by(source.kind, place) AS kind,
        max_by(source.name, place) AS source_name
    FROM (
        SELECT trace_id, sheet, source, place, unnest(source.options) AS option
        FROM (
            SELECT
                trace_id,
                sheet,
                unnest(entries) AS source,
                unnest(range(len(entries))) AS place
            FROM (
                SELECT
                    trace_id,
                    name AS sheet,
                    json_transform(
                        value, '[{"kind": "VARCHAR", "name": "VARCHAR", "options": ["VARCHAR"]}]'
                    ) AS entries
                FROM _sheets
                WHERE section = 'config_sources' AND json_type(value) = 'ARRAY'
            )
        )
    )
    GROUP BY trace_id, sheet, option
),
groups AS (
    SELECT
        trace_id,
        role,
        process.configuration AS configuration,
        process.defaults AS defaults,
        -- Not null: it is a key of joins.
        coalesce(process.config_sources, '') AS config_sources,
        count(*) AS processes,
        list(worker ORDER BY seq) AS workers
    FROM _processes
    WHERE process.configuration IS NOT NULL
    GROUP BY ALL
),
declared AS (
    SELECT groups.*, entries.name, entries.value AS default_value
    FROM groups
    INNER JOIN entries
        ON groups.trace_id = entries.trace_id
        AND groups.defaults = entries.sheet
        AND entries.section = 'defaults'
),
differing AS (
    SELECT groups.*, entries.name, entries.value
    FROM groups
    INNER JOIN entries
        ON groups.trace_id = entries.trace_id
        AND groups.configuration = entries.sheet
        AND entries.section = 'configuration'
)
SELECT
    options.trace_id,
    role,
    options.name,
    value,
    default_value,
    differs,
    is_declared,
    CASE
        WHEN config_sources <> '' AND (differs OR kind <> 'code') THEN coalesce(kind, 'code')
    END AS source,
    CASE WHEN kind <> 'code' THEN source_name END AS source_name,
    processes,
    workers
FROM (
    SELECT
        trace_id,
        role,
        config_sources,
        name,
        CASE WHEN differing.name IS NULL THEN default_value ELSE differing.value END AS value,
        default_value,
        differing.name IS NOT NULL AS differs,
        declared.name IS NOT NULL AS is_declared,
        processes,
        workers
    FROM declared
    FULL JOIN differing
        USING (trace_id, role, configuration, defaults, config_sources, processes, workers, name)
) AS options
LEFT JOIN sources
    ON sources.trace_id = options.trace_id
    AND sources.sheet = config_sources
    AND sources.name = replace(options.name, '_', '-')
UNION ALL
SELECT
    DISTINCT trace_id, 'scheduler', name, value ->> '$', NULL, NULL, NULL, NULL, NULL, 1, NULL
FROM raw.environment
WHERE section = 'dask configuration';

-- Packages of each group of processes with the same description. Before schema version 2.2
-- only a few versions of the scheduler and the client were recorded, and for workers those that
-- Dask collects.
CREATE OR REPLACE VIEW _versions AS
WITH sheets AS (
    SELECT
        trace_id,
        name AS sheet,
        unnest(
            CASE WHEN json_type(value) = 'ARRAY' THEN json_transform(value, '[["VARCHAR"]]') END
        ) AS entries
    FROM _sheets
    WHERE section = 'packages'
),
groups AS (
    SELECT
        trace_id,
        role,
        process.packages AS sheet,
        process.python AS python,
        count(*) AS processes,
        list(worker ORDER BY seq) AS workers
    FROM _processes
    GROUP BY ALL
),
before AS (
    SELECT
        trace_id,
        versions::VARCHAR AS text,
        count(*) AS processes,
        list(worker ORDER BY rowid) AS workers
    FROM raw.worker_added
    WHERE
        json_type(versions) = 'OBJECT'
        AND (trace_id, server_id) NOT IN (
            SELECT (trace_id, server_id) FROM _processes WHERE server_id IS NOT NULL
        )
    GROUP BY ALL
)
SELECT
    trace_id,
    role,
    sheets.entries[1] AS package,
    sheets.entries[2] AS version,
    processes,
    workers
FROM groups
INNER JOIN sheets USING (trace_id, sheet)
UNION ALL
SELECT trace_id, role, 'python', python, processes, workers
FROM groups
WHERE python IS NOT NULL
UNION ALL
SELECT DISTINCT trace_id, split_part(section, ' ', 1), name, value ->> '$', 1, NULL
FROM raw.environment
WHERE section IN ('scheduler versions', 'client versions')
UNION ALL
-- Dask calls it 3.11.7.final.0.
SELECT
    trace_id,
    'worker',
    entry.key,
    regexp_replace(entry.value, '\.final\.0$', ''),
    processes,
    workers
FROM (
    SELECT
        trace_id,
        processes,
        workers,
        unnest(map_entries(json_transform(text::JSON, '"MAP(VARCHAR, VARCHAR)"'))) AS entry
    FROM before
)
WHERE entry.value IS NOT NULL;

-- Code that submitted graphs, recorded by the client or by Dask's scheduler. The text of each
-- piece is stored in one record only.
CREATE OR REPLACE VIEW _submit_code AS
WITH submitted AS (
    SELECT trace_id, t, entered_t, NULL AS computation, description.code AS code
    FROM _client_graphs
    WHERE description.code.digest IS NOT NULL
    UNION ALL
    SELECT
        trace_id,
        t,
        t AS entered_t,
        name AS computation,
        unnest(json_transform(
            value -> '$.codes',
            '[{
                "digest": "VARCHAR", "filename": "VARCHAR", "line_number": "BIGINT",
                "first_line": "BIGINT", "text": "VARCHAR"
            }]'
        )) AS code
    FROM raw.computation
),
texts AS (
    SELECT
        trace_id,
        code.digest AS digest,
        any_value(code.text) AS text,
        any_value(code.first_line) AS first_line
    FROM submitted
    GROUP BY ALL
)
SELECT
    submitted.trace_id,
    submitted.t,
    submitted.entered_t,
    submitted.computation,
    submitted.code.digest AS digest,
    submitted.code.filename AS filename,
    submitted.code.line_number AS line_number,
    texts.first_line,
    texts.text
FROM submitted
LEFT JOIN texts ON submitted.trace_id = texts.trace_id AND submitted.code.digest = texts.digest;

CREATE OR REPLACE VIEW graph_layers AS
WITH task_sizes AS (
    SELECT
        trace_id,
        stimulus_id,
        'scheduled' AS stage,
        examined."group" AS layer,
        max(examined.nbytes / nullif(examined.examined, 0)) AS task_bytes
    FROM (
        SELECT
            trace_id,
            stimulus_id,
            unnest(
                json_transform(
                    value -> '$.groups',
                    '[{"group": "VARCHAR", "examined": "BIGINT", "nbytes": "BIGINT"}]'
                )
            ) AS examined
        FROM raw.graph_update
    )
    GROUP BY ALL
)
SELECT
    stimulus_id,
    stage,
    layer,
    layer_type,
    tasks,
    fused,
    client,
    t,
    try_cast(task_bytes * tasks::HUGEINT AS BIGINT) AS task_bytes,
    trace_id
FROM (
    SELECT
        trace_id,
        stimulus_id,
        'sent' AS stage,
        layer.name AS layer,
        layer.type AS layer_type,
        layer.tasks AS tasks,
        layer.fused AS fused,
        client,
        t
    FROM (SELECT * EXCLUDE (description), unnest(description.layers) AS layer FROM _client_graphs)
    UNION ALL BY NAME
    SELECT
        trace_id,
        stimulus_id,
        'scheduled' AS stage,
        "group" AS layer,
        any_value(prefix) AS layer_type,
        count(*) AS tasks,
        any_value(client) AS client,
        min(t) AS t
    FROM raw.task
    WHERE stimulus_id IS NOT NULL
    GROUP BY trace_id, stimulus_id, "group"
)
LEFT JOIN task_sizes USING (trace_id, stimulus_id, stage, layer)
ORDER BY trace_id, t, stage, layer;

COMMENT ON VIEW graph_layers IS 'Layers of submitted graphs, before and after optimization. One row per graph, stage and layer.';
COMMENT ON COLUMN graph_layers.stimulus_id IS 'Graph, as in graph_updates. Null if the submitted graph could not be matched on the scheduler.';
COMMENT ON COLUMN graph_layers.stage IS 'sent: as submitted by the recording client, before low-level optimization (for an expression, after its own optimization). scheduled: as its new tasks entered the scheduler.';
COMMENT ON COLUMN graph_layers.layer IS 'Layer name. For scheduled tasks the task group, which often has the same name.';
COMMENT ON COLUMN graph_layers.layer_type IS 'Class of the layer or expression. For scheduled tasks the key prefix.';
COMMENT ON COLUMN graph_layers.tasks IS 'Tasks of the layer. For an expression, its partitions. Null if counting would require materializing the layer.';
COMMENT ON COLUMN graph_layers.fused IS 'Classes of the expressions fused into this one.';
COMMENT ON COLUMN graph_layers.client IS 'Client that submitted the graph.';
COMMENT ON COLUMN graph_layers.t IS 'Submission, in seconds since the epoch.';
COMMENT ON COLUMN graph_layers.task_bytes IS 'Size of the arguments of scheduled tasks and of the data that their functions hold, as measured by Dask''s sizeof for the first ten tasks of the group. Data that several tasks share counts for each. Null for graphs below 1 MiB, for groups of a graph after the first 100, and before trace format 2.4.';
COMMENT ON COLUMN graph_layers.trace_id IS 'ID of the trace.';

-- Dask logs an event per graph under two topics. Before distributed 2024.4 there is none, and
-- the graph is derived from its tasks. Some durations in the event are negative.
CREATE OR REPLACE VIEW graph_updates AS
WITH events AS (
    SELECT
        trace_id,
        payload ->> '$.stimulus_id' AS stimulus_id,
        min(rowid) AS seq,
        min(t) AS t,
        max(topic) FILTER (topic <> 'scheduler') AS client,
        any_value(payload ->> '$.status') AS status,
        any_value(payload -> '$.metrics') AS metrics
    FROM raw.event
    WHERE payload ->> '$.action' = 'update-graph'
    GROUP BY ALL
),
entered AS (
    SELECT
        trace_id,
        stimulus_id,
        min(t) AS t,
        any_value(client) AS client,
        count(*) AS tasks,
        count(DISTINCT "group") AS groups,
        sum(len(dependencies)) AS edges
    FROM raw.task
    WHERE stimulus_id IS NOT NULL
    GROUP BY trace_id, stimulus_id
),
sent AS (
    SELECT
        trace_id,
        stimulus_id,
        min(t) AS t,
        sum(len(description.layers)) + coalesce(sum(description.more_layers), 0) AS layers,
        flatten(list(description.collections)) AS collections
    FROM _client_graphs
    WHERE description.layers IS NOT NULL
    GROUP BY trace_id, stimulus_id
),
received AS (
    SELECT trace_id, stimulus_id, max(nbytes) AS nbytes
    FROM raw.graph_update
    GROUP BY trace_id, stimulus_id
)
SELECT
    stimulus_id,
    coalesce(entered.client, events.client) AS client,
    coalesce(entered.t, events.t) AS t,
    try_cast(events.metrics ->> '$.start_timestamp_seconds' AS DOUBLE) AS start_t,
    events.status,
    try_cast(events.metrics ->> '$.tasks' AS BIGINT) AS tasks,
    coalesce(try_cast(events.metrics ->> '$.new_tasks' AS BIGINT), entered.tasks) AS new_tasks,
    try_cast(events.metrics ->> '$.key_collisions' AS BIGINT) AS key_collisions,
    entered.groups,
    entered.edges::BIGINT AS edges,
    try_cast(events.metrics ->> '$.duration_seconds' AS DOUBLE) AS update_seconds,
    try_cast(events.metrics ->> '$.materialization_duration_seconds' AS DOUBLE)
        AS materialization_seconds,
    abs(try_cast(events.metrics ->> '$.ordering_duration_seconds' AS DOUBLE)) AS ordering_seconds,
    abs(try_cast(events.metrics ->> '$.state_initialization_duration_seconds' AS DOUBLE))
        AS state_seconds,
    sent.layers::BIGINT AS layers_sent,
    sent.t AS sent_t,
    sent.collections,
    received.nbytes AS graph_bytes,
    trace_id
FROM events
FULL JOIN entered USING (trace_id, stimulus_id)
LEFT JOIN sent USING (trace_id, stimulus_id)
LEFT JOIN received USING (trace_id, stimulus_id)
ORDER BY trace_id, t, stimulus_id;

COMMENT ON VIEW graph_updates IS 'Submitted graphs, and the cost of processing them. One row per graph.';
COMMENT ON COLUMN graph_updates.stimulus_id IS 'Dask''s ID of the graph. Its tasks and the transitions that it caused have the same stimulus_id.';
COMMENT ON COLUMN graph_updates.client IS 'Client that submitted the graph.';
COMMENT ON COLUMN graph_updates.t IS 'Arrival of its tasks, in seconds since the epoch.';
COMMENT ON COLUMN graph_updates.start_t IS 'Start of processing, in seconds since the epoch. Null before distributed 2024.4.';
COMMENT ON COLUMN graph_updates.status IS 'OK, cancelled or error, as reported by Dask.';
COMMENT ON COLUMN graph_updates.tasks IS 'Tasks in the graph.';
COMMENT ON COLUMN graph_updates.new_tasks IS 'Tasks that were new to the scheduler.';
COMMENT ON COLUMN graph_updates.key_collisions IS 'Keys whose definition differs from the one on the scheduler.';
COMMENT ON COLUMN graph_updates.groups IS 'Task groups of the new tasks.';
COMMENT ON COLUMN graph_updates.edges IS 'Dependencies of the new tasks.';
COMMENT ON COLUMN graph_updates.update_seconds IS 'Time the scheduler spent on the graph, the sum of the next three columns and other work.';
COMMENT ON COLUMN graph_updates.materialization_seconds IS 'Time to deserialize the graph and materialize its layers.';
COMMENT ON COLUMN graph_updates.ordering_seconds IS 'Time to order the tasks.';
COMMENT ON COLUMN graph_updates.state_seconds IS 'Time to create the scheduler state of the tasks.';
COMMENT ON COLUMN graph_updates.layers_sent IS 'Layers of the submitted graph, before low-level optimization. Null if another client submitted it, or it has no layers, as with client.submit and client.map.';
COMMENT ON COLUMN graph_updates.sent_t IS 'Submission by the client, in seconds since the epoch on the scheduler''s clock.';
COMMENT ON COLUMN graph_updates.collections IS 'Types of the computed collections, if recorded.';
COMMENT ON COLUMN graph_updates.graph_bytes IS 'Serialized size of the graph as the scheduler received it, including the data inside of it. Null before trace format 2.4.';
COMMENT ON COLUMN graph_updates.trace_id IS 'ID of the trace.';

-- Records: chunk
-- Measurement records and the chunk attempt that each belongs to. A dask-awkward task can read
-- several chunks, and one of them several times. A record delivered twice has the same start;
-- the later one counts.
CREATE OR REPLACE TABLE _chunk_reads AS
WITH records AS (
    SELECT
        chunk.rowid AS record,
        trace_id,
        key,
        chunk.run_id,
        chunk.dataset,
        chunk.filename,
        chunk.treename,
        chunk.entry_start,
        chunk.entry_stop,
        chunk.start_t
    FROM raw.chunk AS chunk
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk') AS chunks USING (trace_id, key)
    WHERE chunk.run_id IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, key, chunk.run_id, dataset, filename, treename, entry_start,
            entry_stop, start_t
        ORDER BY record DESC
    ) = 1
)
SELECT
    record,
    min(record) OVER same_chunk AS measured,
    count(*) OVER same_chunk > 1 AS of_several
FROM records
WINDOW
    same_chunk AS (
        PARTITION BY trace_id, key, run_id, dataset, filename, treename, entry_start, entry_stop
    );

-- Summary of each key, so that other views need not compare key texts again. Nearly all keys
-- are simple: one attempt, with its begin, end and submission given by rowid.
CREATE OR REPLACE TABLE _key_summaries AS
WITH steps AS (
    SELECT
        trace_id,
        key,
        rowid AS seq,
        finish = 'processing' AS begins,
        "start" = 'processing' AS ends,
        CASE WHEN finish = 'waiting' THEN t END AS waiting_t,
        false AS submits,
        false AS was_there
    FROM raw.transition
    WHERE finish IN ('waiting', 'queued', 'no-worker', 'processing') OR "start" = 'processing'
    UNION ALL
    SELECT
        trace_id,
        key,
        rowid AS seq,
        false AS begins,
        false AS ends,
        NULL AS waiting_t,
        true AS submits,
        -1 - rowid IN (SELECT seq FROM _earlier_attempts) AS was_there
    FROM raw.task
)
SELECT
    trace_id,
    key,
    count(*) FILTER (submits) AS submissions,
    min(seq) FILTER (submits) AS submission,
    min(seq) FILTER (begins) AS beginning,
    min(seq) FILTER (ends) AS ending,
    arg_max(waiting_t, seq) FILTER (waiting_t IS NOT NULL) AS waiting_t,
    count(*) FILTER (begins) > 0 OR bool_or(was_there) AS has_attempts,
    -- One attempt with at most one end and one submission, after all waiting.
    NOT bool_or(was_there)
        AND count(*) FILTER (begins) = 1
        AND count(*) FILTER (ends) <= 1
        AND count(*) FILTER (submits) <= 1
        AND coalesce(min(seq) FILTER (ends) > min(seq) FILTER (begins), true)
        AND coalesce(max(seq) FILTER (waiting_t IS NOT NULL) < min(seq) FILTER (begins), true)
        AS is_simple
FROM steps
GROUP BY trace_id, key;

CREATE OR REPLACE VIEW cluster_samples AS
SELECT
    t,
    count(*) AS workers,
    try_cast(sum(nthreads) AS BIGINT) AS nthreads,
    sum(cpu_percent) AS cpu_percent,
    try_cast(sum(memory_bytes) AS BIGINT) AS memory_bytes,
    try_cast(sum(memory_limit_bytes) AS BIGINT) AS memory_limit_bytes,
    try_cast(sum(managed_bytes) AS BIGINT) AS managed_bytes,
    try_cast(sum(spilled_bytes) AS BIGINT) AS spilled_bytes,
    try_cast(sum(processing) AS BIGINT) AS processing,
    try_cast(sum(executing) AS BIGINT) AS executing,
    try_cast(sum(ready) AS BIGINT) AS ready,
    sum(occupancy_seconds) AS occupancy_seconds,
    try_cast(sum(stored_bytes) AS BIGINT) AS stored_bytes,
    trace_id
FROM worker_samples
GROUP BY trace_id, t
ORDER BY trace_id, t;

COMMENT ON VIEW cluster_samples IS 'Load and memory of the whole cluster over time. One row per sampling tick, summed over workers.';
COMMENT ON COLUMN cluster_samples.t IS 'Sampling tick, in seconds since the epoch.';
COMMENT ON COLUMN cluster_samples.workers IS 'Number of workers.';
COMMENT ON COLUMN cluster_samples.nthreads IS 'Number of threads.';
COMMENT ON COLUMN cluster_samples.cpu_percent IS 'CPU use. 100 is one core.';
COMMENT ON COLUMN cluster_samples.memory_bytes IS 'Memory of the worker processes.';
COMMENT ON COLUMN cluster_samples.memory_limit_bytes IS 'Memory limit, without workers that have none.';
COMMENT ON COLUMN cluster_samples.managed_bytes IS 'Results held in memory, without spilled ones.';
COMMENT ON COLUMN cluster_samples.spilled_bytes IS 'Results spilled, by size on disk.';
COMMENT ON COLUMN cluster_samples.processing IS 'Tasks assigned to workers.';
COMMENT ON COLUMN cluster_samples.executing IS 'Tasks computing.';
COMMENT ON COLUMN cluster_samples.ready IS 'Tasks waiting for a thread.';
COMMENT ON COLUMN cluster_samples.occupancy_seconds IS 'Dask''s estimate of the remaining work assigned to workers.';
COMMENT ON COLUMN cluster_samples.stored_bytes IS 'Results held by workers, as counted by the scheduler.';
COMMENT ON COLUMN cluster_samples.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW activities AS
WITH metrics AS (
    SELECT * REPLACE (regexp_replace(activity, '^p2p-', '') AS activity)
    FROM _activity_deltas
)
SELECT
    worker,
    server_id,
    context,
    span_id,
    prefix,
    sum(delta) FILTER (unit = 'seconds') AS seconds,
    sum(delta) FILTER (activity = 'thread-cpu' AND unit = 'seconds') AS cpu_seconds,
    sum(delta) FILTER (activity = 'thread-noncpu' AND unit = 'seconds') AS noncpu_seconds,
    sum(delta) FILTER (activity = 'serialize' AND unit = 'seconds') AS serialize_seconds,
    sum(delta) FILTER (activity = 'deserialize' AND unit = 'seconds') AS deserialize_seconds,
    sum(delta) FILTER (activity = 'compress' AND unit = 'seconds') AS compress_seconds,
    sum(delta) FILTER (activity = 'decompress' AND unit = 'seconds') AS decompress_seconds,
    sum(delta) FILTER (activity IN ('disk-read', 'disk-write') AND unit = 'seconds') AS disk_seconds,
    sum(delta) FILTER (activity = 'network' AND unit = 'seconds') AS network_seconds,
    sum(delta) FILTER (activity IN ('failed', 'cancelled') AND unit = 'seconds') AS failed_seconds,
    sum(delta) FILTER (
        unit = 'seconds'
        AND coalesce(activity, '') NOT IN (
            'thread-cpu', 'thread-noncpu', 'serialize', 'deserialize', 'compress',
            'decompress', 'disk-read', 'disk-write', 'network', 'failed', 'cancelled'
        )
    ) AS other_seconds,
    try_cast(sum(delta) FILTER (activity = 'memory-read' AND unit = 'bytes') AS BIGINT) AS memory_read_bytes,
    try_cast(sum(delta) FILTER (activity = 'disk-read' AND unit = 'bytes') AS BIGINT) AS disk_read_bytes,
    try_cast(sum(delta) FILTER (activity = 'disk-write' AND unit = 'bytes') AS BIGINT) AS disk_write_bytes,
    trace_id
FROM metrics
GROUP BY trace_id, worker, server_id, context, span_id, prefix
ORDER BY trace_id, seconds DESC NULLS LAST, worker, prefix;

COMMENT ON VIEW activities IS 'Time of workers by activity, from fine performance metrics. One row per worker, context, span and prefix; rows can be summed over any of them. Idle time is excluded. Time that Dask reports both as p2p and as execute counts as execute. A time or size is null if there was none. Empty if no metrics were recorded.';
COMMENT ON COLUMN activities.worker IS 'Worker address.';
COMMENT ON COLUMN activities.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN activities.context IS 'execute, get-data, gather-dep, p2p (background) or memory-monitor.';
COMMENT ON COLUMN activities.span_id IS 'Span of the work.';
COMMENT ON COLUMN activities.prefix IS 'Key prefix of the tasks. For p2p, the background task.';
COMMENT ON COLUMN activities.seconds IS 'Time of all activities.';
COMMENT ON COLUMN activities.cpu_seconds IS 'CPU time in task threads.';
COMMENT ON COLUMN activities.noncpu_seconds IS 'Other time in task threads: input and output, locks, the GIL.';
COMMENT ON COLUMN activities.serialize_seconds IS 'Serialization time.';
COMMENT ON COLUMN activities.deserialize_seconds IS 'Deserialization time.';
COMMENT ON COLUMN activities.compress_seconds IS 'Compression time.';
COMMENT ON COLUMN activities.decompress_seconds IS 'Decompression time.';
COMMENT ON COLUMN activities.disk_seconds IS 'Time to read and write spilled data and shuffle data on disk.';
COMMENT ON COLUMN activities.network_seconds IS 'Time of transfers between workers.';
COMMENT ON COLUMN activities.failed_seconds IS 'Time of failed or cancelled tasks, whatever the activity.';
COMMENT ON COLUMN activities.other_seconds IS 'Time of all other activities, including user-defined ones.';
COMMENT ON COLUMN activities.memory_read_bytes IS 'Bytes of inputs found in memory.';
COMMENT ON COLUMN activities.disk_read_bytes IS 'Bytes read from disk.';
COMMENT ON COLUMN activities.disk_write_bytes IS 'Bytes written to disk.';
COMMENT ON COLUMN activities.trace_id IS 'ID of the trace.';

-- Spans and their parents as numbers of a forest. Spans that contain each other are one node, so
-- that each has the totals of all of them. Pointers are doubled: after n steps, `above` is the
-- ancestor 2^n levels up, which takes a few steps even for deeply nested spans.
CREATE OR REPLACE VIEW _span_nodes AS
WITH RECURSIVE numbered AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY trace_id, span_id) AS node, trace_id, span_id
    FROM (
        SELECT trace_id, span_id FROM spans WHERE span_id IS NOT NULL
        UNION
        SELECT trace_id, parent_id FROM spans WHERE parent_id IS NOT NULL
    )
),
links AS MATERIALIZED (
    SELECT numbered.node, parent.node AS above, numbered.trace_id, numbered.span_id
    FROM numbered
    LEFT JOIN spans USING (trace_id, span_id)
    LEFT JOIN numbered AS parent
        ON spans.trace_id = parent.trace_id AND spans.parent_id = parent.span_id
),
-- `first` is the smallest node among the span and those that `above` has passed.
climbs AS (
    SELECT 0 AS step, node, above, node AS first FROM links
    UNION ALL
    SELECT climb.step + 1, climb.node, higher.above, least(climb.first, higher.first)
    FROM climbs AS climb
    LEFT JOIN climbs AS higher ON climb.above = higher.node
    WHERE EXISTS (FROM climbs WHERE above IS NOT NULL)
        AND 2 ** climb.step <= (SELECT count(*) FROM links)
),
-- Only from a cycle, and from what it contains, there is always a span further up; all of the cycle
-- is reached.
cycles AS (
    SELECT DISTINCT climbs.above AS node
    FROM climbs
    WHERE climbs.above IS NOT NULL
        AND step = (SELECT max(step) FROM climbs)
),
merged AS (
    SELECT climbs.node, min(climbs.first) AS first
    FROM climbs
    SEMI JOIN cycles USING (node)
    GROUP BY climbs.node
)
SELECT
    links.trace_id,
    links.span_id,
    coalesce(own.first, links.node) AS node,
    CASE WHEN own.first IS NULL THEN coalesce(parent.first, links.above) END AS above
FROM links
LEFT JOIN merged AS own ON links.node = own.node
LEFT JOIN merged AS parent ON links.above = parent.node;

-- Calls between functions: one row per caller and callee. A call is recursive if the callee was
-- already running, which Yappi reports as no actual calls.
CREATE OR REPLACE VIEW _function_calls AS
SELECT
    caller.function AS caller,
    callee.function AS callee,
    try_cast(sum(edge.calls) AS BIGINT) AS calls,
    try_cast(sum(edge.actual_calls) AS BIGINT) AS actual_calls,
    sum(edge.self_seconds) AS self_seconds,
    sum(edge.total_seconds) AS total_seconds,
    caller.function = callee.function OR coalesce(sum(edge.actual_calls) = 0, false)
        AS is_recursive,
    caller.trace_id
FROM (SELECT function, source, trace_id, unnest(callees) AS edge FROM _functions) AS caller
INNER JOIN _functions AS callee
    ON callee.trace_id = caller.trace_id
    AND callee.source = caller.source
    AND callee."index" = caller.edge."index"
GROUP BY caller.function, callee.function, caller.trace_id;

CREATE OR REPLACE VIEW yappi_functions AS
SELECT
    label AS function,
    name,
    filename,
    line_number,
    calls,
    actual_calls,
    self_seconds,
    total_seconds,
    total_seconds / nullif(calls, 0) AS mean_seconds,
    clock,
    thread,
    thread_name,
    tag,
    builtin,
    CASE
        -- CO_COROUTINE, CO_ITERABLE_COROUTINE and CO_ASYNC_GENERATOR of Python's inspect
        WHEN code_flags IS NOT NULL THEN code_flags & (128 | 256 | 512) <> 0
        WHEN builtin THEN false
    END AS is_coroutine,
    worker,
    log,
    source,
    trace_id
FROM _functions
ORDER BY trace_id, source, total_seconds DESC NULLS LAST, label, function;

COMMENT ON VIEW yappi_functions IS 'Functions measured by Yappi. One row per imported file and function. Self times add up to the measured time. Empty unless a file was imported.';
COMMENT ON COLUMN yappi_functions.function IS 'Function as name (file:line), as in profile_stacks.';
COMMENT ON COLUMN yappi_functions.name IS 'Function name.';
COMMENT ON COLUMN yappi_functions.filename IS 'Source file. For a built-in function, its module.';
COMMENT ON COLUMN yappi_functions.line_number IS 'Line at which the function is defined.';
COMMENT ON COLUMN yappi_functions.calls IS 'Number of calls (Yappi''s ncall). Null if the file does not contain it, as with callgrind.';
COMMENT ON COLUMN yappi_functions.actual_calls IS 'Number of nonrecursive calls.';
COMMENT ON COLUMN yappi_functions.self_seconds IS 'Self time (Yappi''s tsub).';
COMMENT ON COLUMN yappi_functions.total_seconds IS 'Total time (Yappi''s ttot). Null if the file does not contain it.';
COMMENT ON COLUMN yappi_functions.mean_seconds IS 'Mean time of a call (Yappi''s tavg).';
COMMENT ON COLUMN yappi_functions.clock IS 'Clock type: cpu or wall. Null if unknown.';
COMMENT ON COLUMN yappi_functions.thread IS 'Yappi''s number of the thread, or context, of the first call.';
COMMENT ON COLUMN yappi_functions.thread_name IS 'Yappi''s name of that context: the class of the thread.';
COMMENT ON COLUMN yappi_functions.tag IS 'User-defined tag of the context, such as the number of a coroutine.';
COMMENT ON COLUMN yappi_functions.builtin IS 'True if the function is built in, without Python code.';
COMMENT ON COLUMN yappi_functions.is_coroutine IS 'Whether the function is a coroutine or an asynchronous generator: async def or types.coroutine. Null unless known: Yappi does not save it, except that a built-in function has no Python code. A script can add it to a ystat file (docs: how-to/yappi).';
COMMENT ON COLUMN yappi_functions.worker IS 'Worker address, if given when the file was imported.';
COMMENT ON COLUMN yappi_functions.log IS 'Name of the imported file.';
COMMENT ON COLUMN yappi_functions.source IS 'ID of the file, as in imports.';
COMMENT ON COLUMN yappi_functions.trace_id IS 'ID of the trace.';

-- Records: profile
CREATE OR REPLACE TABLE _profile_samples AS FROM _counted_stacks;

CREATE OR REPLACE VIEW jobs AS
SELECT
    role AS process,
    worker,
    "system",
    job_id,
    queue,
    account,
    qos,
    node,
    cores,
    memory_bytes AS memory_limit_bytes,
    array_id,
    array_index,
    name,
    cluster,
    namespace,
    slot,
    nodes,
    node_list,
    start_t,
    end_t,
    host,
    trace_id
FROM _jobs
WHERE "system" IS NOT NULL
ORDER BY trace_id, seq, place;

COMMENT ON VIEW jobs IS 'Batch jobs of scheduler, client and workers. One row per process and batch system, from the environment variables of the process.';
COMMENT ON COLUMN jobs.process IS 'Kind of process: scheduler, client (the recording one) or worker.';
COMMENT ON COLUMN jobs.worker IS 'Address of the worker; null for other processes.';
COMMENT ON COLUMN jobs."system" IS 'SLURM, HTCondor, PBS, LSF, SGE, OAR or Kubernetes.';
COMMENT ON COLUMN jobs.job_id IS 'ID of the job; for Kubernetes, the name of the pod.';
COMMENT ON COLUMN jobs.queue IS 'Queue or partition; for HTCondor, the universe.';
COMMENT ON COLUMN jobs.account IS 'Account that is charged: project of LSF and OAR, accounting group of HTCondor.';
COMMENT ON COLUMN jobs.qos IS 'Quality of service. Only SLURM reports it to a job.';
COMMENT ON COLUMN jobs.node IS 'Name of the node in the batch system.';
COMMENT ON COLUMN jobs.cores IS 'Cores of the node allocated to the job, per process of the job.';
COMMENT ON COLUMN jobs.memory_limit_bytes IS 'Memory of the node allocated to the job.';
COMMENT ON COLUMN jobs.array_id IS 'ID of the job array.';
COMMENT ON COLUMN jobs.array_index IS 'Index of the job in its array.';
COMMENT ON COLUMN jobs.name IS 'Name of the job.';
COMMENT ON COLUMN jobs.cluster IS 'Name of the cluster or of the submitting machine.';
COMMENT ON COLUMN jobs.namespace IS 'Namespace of the pod.';
COMMENT ON COLUMN jobs.slot IS 'Slot of the node, or index of the process in the job.';
COMMENT ON COLUMN jobs.nodes IS 'Number of nodes of the job.';
COMMENT ON COLUMN jobs.node_list IS 'Nodes of the job, separated by commas; SLURM shortens them, as in n[01-12]. At most 10,000 characters. Null for HTCondor and Kubernetes.';
COMMENT ON COLUMN jobs.start_t IS 'Start of the job, in seconds since the epoch.';
COMMENT ON COLUMN jobs.end_t IS 'End of the allocated time, in seconds since the epoch.';
COMMENT ON COLUMN jobs.host IS 'Host name of the operating system.';
COMMENT ON COLUMN jobs.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW config AS
SELECT
    name,
    value,
    process,
    default_value,
    differs,
    source,
    source_name,
    varies,
    is_declared,
    _is_run_specific(name, value) AS is_run_specific,
    processes,
    workers,
    trace_id
FROM (
    SELECT
        trace_id,
        name,
        value,
        role AS process,
        default_value,
        differs,
        source,
        source_name,
        is_declared,
        sum(processes)::BIGINT AS processes,
        CASE WHEN role = 'worker' THEN flatten(list(workers)) END AS workers,
        min(coalesce(value, '')) OVER (PARTITION BY trace_id, name)
            <> max(coalesce(value, '')) OVER (PARTITION BY trace_id, name) AS varies
    FROM _options
    GROUP BY
        trace_id, name, value, role, default_value, differs, source, source_name, is_declared
)
ORDER BY trace_id, name, process, value, source, source_name;

COMMENT ON VIEW config IS 'Dask configuration in effect. One row per option, value, source and kind of process. Values that may contain a secret are <withheld> or <redacted>.';
COMMENT ON COLUMN config.name IS 'Full name of the option, as for dask.config.get.';
COMMENT ON COLUMN config.value IS 'Value: strings unchanged, all else as JSON; null is None.';
COMMENT ON COLUMN config.process IS 'Kind of process: scheduler, client (the recording one) or worker.';
COMMENT ON COLUMN config.default_value IS 'Default of the package that declares the option. Null is None, or no package declares it.';
COMMENT ON COLUMN config.differs IS 'Whether the value is not the default; null if the defaults were not recorded.';
COMMENT ON COLUMN config.source IS 'What set the value: file, variable, or code (dask.config.set, or Dask itself). Null for a default, and if not recorded.';
COMMENT ON COLUMN config.source_name IS 'Path of the file or name of the environment variable. DASK_INTERNAL_INHERIT_CONFIG has the configuration of the process that started this one.';
COMMENT ON COLUMN config.varies IS 'Whether processes of this run have different values.';
COMMENT ON COLUMN config.is_declared IS 'Whether a loaded package declares the option. Texts of other options are withheld unless own_configuration is set.';
COMMENT ON COLUMN config.is_run_specific IS 'Whether the value naturally differs in each run. Examples are addresses, ports and folders for temporary files.';
COMMENT ON COLUMN config.processes IS 'Number of processes of that kind with this value and source.';
COMMENT ON COLUMN config.workers IS 'Addresses of workers with this value and source; null for other processes.';
COMMENT ON COLUMN config.trace_id IS 'ID of the trace.';

-- Each segment repeats the facts of the first one, so that it can be read alone. Views such as
-- packages and config have the complete lists; the most common facts appear here under their
-- established names.
CREATE OR REPLACE VIEW environment AS
WITH facts AS (
    SELECT section, name, value ->> '$' AS value, t, trace_id, rowid AS seq
    FROM raw.environment
    WHERE
        rowid IN (
            SELECT min(rowid) FROM raw.environment GROUP BY trace_id, t, section, name, value
        )
        AND coalesce(section, '') NOT IN (
            'process', 'packages', 'configuration', 'config_sources', 'defaults'
        )
),
first_facts AS (
    SELECT trace_id, role, min(t) AS t, min(seq) AS seq
    FROM _processes
    WHERE role IN ('scheduler', 'client')
    GROUP BY trace_id, role
),
best_known AS (
    SELECT
        role || ' versions' AS section,
        package AS name,
        version AS value,
        first_facts.t,
        trace_id,
        seq
    FROM _versions
    INNER JOIN first_facts USING (trace_id, role)
    WHERE package IN (
        'python', 'dask', 'distributed', 'coffea', 'uproot', 'awkward', 'dask-awkward', 'numpy',
        'pandas', 'pyarrow', 'msgpack', 'tornado', 'cloudpickle', 'roast-trace'
    )
    UNION ALL
    SELECT
        role || ' machine',
        unnest(['host', 'platform', 'cores']),
        unnest([
            process.machine.host, process.machine.platform, process.machine.cores::VARCHAR
        ]),
        t,
        trace_id,
        seq
    FROM _processes
    WHERE role IN ('scheduler', 'client')
    UNION ALL
    SELECT 'dask configuration', name, value, first_facts.t, trace_id, seq
    FROM _options
    INNER JOIN first_facts USING (trace_id, role)
    WHERE
        role = 'scheduler'
        AND name IN (
            'distributed.scheduler.allowed-failures',
            'distributed.scheduler.worker-saturation',
            'distributed.scheduler.work-stealing',
            'distributed.scheduler.worker-ttl',
            'distributed.scheduler.unknown-task-duration',
            'distributed.worker.memory.target',
            'distributed.worker.memory.spill',
            'distributed.worker.memory.pause',
            'distributed.worker.memory.terminate',
            'distributed.worker.profile.enabled',
            'distributed.worker.profile.interval',
            'distributed.worker.profile.cycle',
            'distributed.comm.compression',
            'optimization.fuse.active',
            'dataframe.shuffle.method'
        )
)
SELECT section, name, value, t, trace_id
FROM (
    SELECT * FROM facts
    UNION ALL
    SELECT best_known.*
    FROM best_known
    ANTI JOIN facts USING (trace_id, section, name)
)
ORDER BY trace_id, seq, section, name;

COMMENT ON VIEW environment IS 'Recorded facts about software, machines and configuration. One row per fact; facts repeated in several segments appear once. The views packages, machines and config have the complete lists.';
COMMENT ON COLUMN environment.section IS 'Topic of the fact.';
COMMENT ON COLUMN environment.name IS 'Name of the fact.';
COMMENT ON COLUMN environment.value IS 'Text unchanged; any other value as JSON.';
COMMENT ON COLUMN environment.t IS 'Time of recording, in seconds since the epoch.';
COMMENT ON COLUMN environment.trace_id IS 'ID of the trace.';

-- Compares the sets of values of each kind of process that both traces describe. A name that
-- only one trace contains is a difference only if both were recorded by the same rules; before
-- schema version 2.2 only a few names were recorded.
CREATE OR REPLACE VIEW differences AS
WITH opened AS (
    SELECT trace_id, min(rowid) AS seq FROM raw.segments GROUP BY trace_id
),
first_opened AS (
    SELECT min_by(trace_id, seq) AS trace_id FROM opened
),
facts AS (
    SELECT trace_id, 'package' AS category, role, package AS name, version AS value
    FROM _versions
    UNION ALL
    SELECT trace_id, 'configuration', role, name, coalesce(value, 'None')
    FROM _options
    WHERE NOT _is_run_specific(name, value)
    UNION ALL
    SELECT trace_id, 'cluster', 'client', name, value ->> '$'
    FROM raw.environment
    WHERE section = 'cluster'
),
rules AS (
    SELECT
        facts.trace_id,
        category,
        facts.role,
        CASE
            WHEN any_value(process.role) IS NULL THEN 'few'
            WHEN category = 'package' THEN coalesce(any_value(header.settings ->> '$.packages'), 'all')
            ELSE 'all'
        END AS rule
    FROM facts
    LEFT JOIN _processes AS process ON facts.trace_id = process.trace_id AND facts.role = process.role
    LEFT JOIN raw.header AS header ON facts.trace_id = header.trace_id AND header.segment = 1
    GROUP BY facts.trace_id, category, facts.role
),
-- Kinds of process with such facts in both traces.
pairs AS (
    SELECT other.trace_id, other.category, other.role, one.rule = other.rule AND one.rule <> 'few' AS by_same_rule
    FROM rules AS other
    INNER JOIN rules AS one ON one.category = other.category AND one.role = other.role
    WHERE
        one.trace_id = (SELECT trace_id FROM first_opened)
        AND other.trace_id <> one.trace_id
),
held AS (
    SELECT trace_id, category, role, name, list(DISTINCT value ORDER BY value) AS held
    FROM facts
    GROUP BY trace_id, category, role, name
),
there AS (
    SELECT held.trace_id, held.category, held.role, held.name, held.held, by_same_rule
    FROM held
    INNER JOIN pairs USING (trace_id, category, role)
),
here AS (
    SELECT pairs.trace_id, pairs.category, pairs.role, held.name, held.held, by_same_rule
    FROM held
    INNER JOIN pairs ON held.category = pairs.category AND held.role = pairs.role
    WHERE held.trace_id = (SELECT trace_id FROM first_opened)
),
compared AS (
    SELECT trace_id, category, role, name, there.held AS there, here.held AS here
    FROM there
    FULL JOIN here USING (trace_id, category, role, name)
    WHERE
        there.held IS DISTINCT FROM here.held
        AND (
            coalesce(there.by_same_rule, here.by_same_rule)
            OR (there.held IS NOT NULL AND here.held IS NOT NULL)
        )
)
SELECT
    category,
    name,
    array_to_string(nullif(list_sort(list_distinct(flatten(list(here)))), []), '; ') AS first_value,
    array_to_string(nullif(list_sort(list_distinct(flatten(list(there)))), []), '; ') AS value,
    list(role ORDER BY role) AS processes,
    trace_id
FROM compared
GROUP BY trace_id, category, name
ORDER BY trace_id, category, name;

COMMENT ON VIEW differences IS 'Differences in setup between each trace and the first opened one. One row per package, option of Dask''s configuration or argument of the cluster. Values that naturally differ in each run (addresses, ports, folders for temporary files) are left out, and so is what only one of the two traces recorded.';
COMMENT ON COLUMN differences.category IS 'package, configuration or cluster.';
COMMENT ON COLUMN differences.name IS 'Name of the package, the option or the argument.';
COMMENT ON COLUMN differences.first_value IS 'Version or value in the first trace; null if it is absent. Only processes that differ are included.';
COMMENT ON COLUMN differences.value IS 'Version or value in this trace; null if it is absent.';
COMMENT ON COLUMN differences.processes IS 'Kinds of process that differ: client, scheduler, worker.';
COMMENT ON COLUMN differences.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW packages AS
SELECT
    package,
    version,
    role AS process,
    sum(processes)::BIGINT AS processes,
    CASE WHEN role = 'worker' THEN flatten(list(workers)) END AS workers,
    min(version) OVER (PARTITION BY trace_id, package)
        <> max(version) OVER (PARTITION BY trace_id, package) AS differs,
    trace_id
FROM _versions
WHERE package IS NOT NULL
GROUP BY trace_id, role, package, version
ORDER BY trace_id, package, process, version;

COMMENT ON VIEW packages IS 'Package versions of scheduler, client and workers. One row per package, version and kind of process.';
COMMENT ON COLUMN packages.package IS 'Normalized name of the package; python is the interpreter.';
COMMENT ON COLUMN packages.version IS 'Version of the package.';
COMMENT ON COLUMN packages.process IS 'Kind of process: scheduler, client (the recording one) or worker.';
COMMENT ON COLUMN packages.processes IS 'Number of processes of that kind with this version.';
COMMENT ON COLUMN packages.workers IS 'Addresses of workers with this version; null for other processes.';
COMMENT ON COLUMN packages.differs IS 'Whether processes of this run have different versions.';
COMMENT ON COLUMN packages.trace_id IS 'ID of the trace.';

-- Graphs that arrive while the scheduler has work belong to the current computation.
CREATE OR REPLACE VIEW computations AS
WITH begun AS (
    SELECT
        record.trace_id,
        record.name AS computation,
        min(record.rowid) AS seq,
        -- Older traces have a later time than that of the tasks.
        least(min(record.t), min(graph.entered_t)) AS t,
        min_by(record.client, record.rowid) AS client,
        min_by(record.stimulus_id, record.rowid) AS stimulus_id
    FROM raw.computation AS record
    LEFT JOIN (
        SELECT trace_id, stimulus_id, min(t) AS entered_t FROM raw.task GROUP BY ALL
    ) AS graph USING (trace_id, stimulus_id)
    GROUP BY record.trace_id, record.name
),
entered AS (
    SELECT
        begun.trace_id,
        begun.computation,
        count(*) AS tasks,
        count(DISTINCT task.stimulus_id) AS graphs
    FROM raw.task AS task
    ASOF INNER JOIN begun ON task.trace_id = begun.trace_id AND task.t >= begun.t
    WHERE task.stimulus_id IS NOT NULL
    GROUP BY ALL
),
codes AS (
    SELECT
        trace_id,
        computation,
        min_by(filename, t) AS filename,
        min_by(line_number, t) AS line_number,
        min_by(line, t) AS line,
        string_agg(DISTINCT text, chr(10) || chr(10)) AS code
    FROM (
        SELECT
            code.* EXCLUDE (computation),
            coalesce(code.computation, begun.computation) AS computation,
            trim(string_split(code.text, chr(10))[code.line_number - code.first_line + 1]) AS line
        FROM _submit_code AS code
        -- Code recorded by a client belongs to the computation that contains its graph.
        ASOF INNER JOIN begun
            ON code.trace_id = begun.trace_id AND code.entered_t >= begun.t
    )
    GROUP BY trace_id, computation
)
SELECT
    computation,
    t,
    client,
    stimulus_id,
    coalesce(entered.graphs, 0) AS graphs,
    coalesce(entered.tasks, 0) AS tasks,
    codes.filename,
    codes.line_number,
    codes.line,
    codes.code,
    trace_id
FROM begun
LEFT JOIN entered USING (trace_id, computation)
LEFT JOIN codes USING (trace_id, computation)
ORDER BY trace_id, seq;

COMMENT ON VIEW computations IS 'Dask computations, with the code that submitted them. One row per computation, a period in which the scheduler has work. Graphs submitted during the period belong to it.';
COMMENT ON COLUMN computations.computation IS 'ID of the computation.';
COMMENT ON COLUMN computations.t IS 'Submission of the first graph, in seconds since the epoch.';
COMMENT ON COLUMN computations.client IS 'Client that submitted the first graph.';
COMMENT ON COLUMN computations.stimulus_id IS 'First graph, as in graph_updates.';
COMMENT ON COLUMN computations.graphs IS 'Graphs that added new tasks.';
COMMENT ON COLUMN computations.tasks IS 'New tasks.';
COMMENT ON COLUMN computations.filename IS 'Source file of the first submitting code. Null unless code is recorded (opt-in).';
COMMENT ON COLUMN computations.line_number IS 'Line number in filename.';
COMMENT ON COLUMN computations.line IS 'Text of this line.';
COMMENT ON COLUMN computations.code IS 'Submitting code (functions or notebook cells), without repetitions.';
COMMENT ON COLUMN computations.trace_id IS 'ID of the trace.';

-- Records: chunk
-- Measurements of chunk attempts: one row per task attempt and chunk.
CREATE OR REPLACE TABLE _chunk_measurements AS
WITH readings AS (
    SELECT
        reading.measured,
        reading.record,
        reading.of_several,
        chunk.* EXCLUDE (measured),
        unnest(chunk.measured),
        list_filter(
            chunk.measured.branches,
            lambda read: read.compressed_bytes IS NOT NULL AND read.uncompressed_bytes IS NOT NULL
        ) AS sized
    FROM _chunk_reads AS reading
    INNER JOIN raw.chunk AS chunk ON chunk.rowid = reading.record
)
SELECT
    measured,
    max(record) AS last_record,
    any_value(trace_id) AS trace_id,
    any_value(key) AS key,
    any_value(run_id) AS run_id,
    any_value(dataset) AS dataset,
    any_value(filename) AS filename,
    any_value(treename) AS treename,
    any_value(entry_start) AS entry_start,
    any_value(entry_stop) AS entry_stop,
    any_value(file_uuid) AS file_uuid,
    arg_max_null(worker, record) AS worker,
    arg_max_null(thread, record) AS thread,
    min(start_t) AS start_t,
    max(stop_t) AS stop_t,
    sum(_clip_negative(stop_t - start_t)) AS seconds,
    arg_max_null(until, record) AS measured_until,
    arg_max_null(source, record) AS source,
    max(events) AS events,
    sum(open_seconds) AS open_seconds,
    sum(process_seconds) AS process_seconds,
    sum(read_seconds) AS read_seconds,
    sum(decompress_seconds) AS decompress_seconds,
    arg_max_null(compression, record) AS compression,
    sum(cpu_seconds) AS cpu_seconds,
    try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
    try_cast(sum(requests) AS BIGINT) AS requests,
    -- Usually there is one record per attempt, and chunks reads the list from it directly.
    list_sort(list_distinct(flatten(list(columns) FILTER (of_several)))) AS columns,
    coalesce(
        len(list_distinct(flatten(list(columns) FILTER (of_several)))),
        any_value(len(columns))
    ) AS columns_read,
    coalesce(
        len(list_distinct(flatten(list(
            list_transform(branches, lambda read: read.branch)
        ) FILTER (of_several)))),
        any_value(len(branches))
    ) AS branches_read,
    max(file_branches) AS file_branches,
    max(file_bytes) AS file_bytes,
    try_cast(
        sum(_sum_or_zero(list_transform(branches, lambda read: read.compressed_bytes))) AS BIGINT
    ) AS compressed_bytes,
    try_cast(
        sum(_sum_or_zero(list_transform(branches, lambda read: read.uncompressed_bytes))) AS BIGINT
    ) AS uncompressed_bytes,
    -- Branches with both sizes known, for the compression ratio.
    try_cast(
        sum(list_sum(list_transform(sized, lambda read: read.compressed_bytes))) AS BIGINT
    ) AS packed_bytes,
    try_cast(
        sum(list_sum(list_transform(sized, lambda read: read.uncompressed_bytes))) AS BIGINT
    ) AS unpacked_bytes,
    arg_min_null(memory_before, record) AS memory_before_bytes,
    arg_max_null(memory_after, record) AS memory_after_bytes,
    max(memory_peak) AS memory_peak_bytes,
    coalesce(bool_and(from_checkpoint), false) AS from_checkpoint,
    arg_max_null(nbytes, record) AS nbytes,
    arg_max_null(exception, record) AS exception
FROM readings
GROUP BY measured;

-- A worker that still has a key when it computes it again reports the phases of its earlier
-- attempts, too. By the rowid of the transition that ended such an attempt: its own phases.
CREATE OR REPLACE TABLE _repeated_phases AS
WITH ends AS (
    SELECT
        rowid AS end_seq,
        startstops,
        lag(startstops) OVER (PARTITION BY trace_id, key, worker ORDER BY rowid) AS earlier
    FROM raw.transition
    SEMI JOIN (
        SELECT trace_id, key FROM _key_summaries WHERE has_attempts AND NOT is_simple
    ) USING (trace_id, key)
    WHERE "start" = 'processing' AND len(startstops) > 0
)
SELECT
    end_seq,
    list_filter(startstops, lambda part: NOT list_contains(earlier, part)) AS startstops
FROM ends
WHERE list_has_any(startstops, earlier);

-- A key can be submitted again after the scheduler has forgotten it; the first record describes
-- the task.
CREATE OR REPLACE VIEW _tasks AS
SELECT
    task.rowid AS seq,
    task.*,
    task.value -> '$.submitted_span' AS submitted_span,
    keys.submissions
FROM raw.task AS task
INNER JOIN _key_summaries AS keys ON task.rowid = keys.submission;

-- Stacks estimated from caller-callee pairs. The self time of a function is divided among its
-- callers as measured by Yappi, and further up in proportion to total time, as in gprof. Stacks
-- below 1/2000 of the total time and recursive calls are not followed: the rest of a function's
-- self time is shown under "(unknown callers)", so that the sum equals the total self
-- time up to rounding.
CREATE OR REPLACE VIEW _function_stacks AS
WITH RECURSIVE functions AS MATERIALIZED (
    SELECT
        *,
        coalesce(self_seconds, 0) AS own_seconds,
        sum(coalesce(self_seconds, 0)) OVER (PARTITION BY trace_id, source) AS whole_seconds
    FROM _functions
),
known_calls AS (
    -- callgrind files have no self time per caller, and mark only direct recursion.
    SELECT
        caller,
        callee,
        is_recursive,
        greatest(coalesce(total_seconds, 0), 0) AS total_seconds,
        greatest(coalesce(self_seconds, 0), 0) AS own_seconds
    FROM _function_calls
),
called AS MATERIALIZED (
    SELECT
        callee AS function,
        sum(total_seconds) FILTER (NOT is_recursive) AS total_seconds,
        sum(own_seconds) FILTER (NOT is_recursive) AS own_seconds,
        sum(own_seconds) FILTER (is_recursive) AS recursive_seconds
    FROM known_calls
    GROUP BY callee
),
calling AS (
    SELECT caller AS function, sum(total_seconds) FILTER (caller <> callee) AS total_seconds
    FROM known_calls
    GROUP BY caller
),
nodes AS MATERIALIZED (
    SELECT
        functions.function,
        functions.own_seconds,
        functions.whole_seconds,
        greatest(
            coalesce(functions.total_seconds, functions.own_seconds + coalesce(calling.total_seconds, 0)),
            coalesce(called.total_seconds, 0),
            functions.own_seconds
        ) AS total_seconds,
        coalesce(called.total_seconds, 0) AS called_total_seconds,
        -- Self time spent in recursive calls is distributed with the rest.
        coalesce(
            functions.own_seconds
            / nullif(functions.own_seconds - coalesce(called.recursive_seconds, 0), 0),
            1
        ) AS with_recursion,
        coalesce(called.own_seconds, 0) AS called_own_seconds
    FROM functions
    LEFT JOIN called USING (function)
    LEFT JOIN calling USING (function)
),
steps AS MATERIALIZED (
    SELECT
        edge.caller,
        edge.callee,
        coalesce(edge.total_seconds / nullif(node.total_seconds, 0), 0) AS share,
        CASE
            WHEN node.called_own_seconds > 0
                THEN least(edge.own_seconds * node.with_recursion, node.own_seconds)
            ELSE coalesce(edge.total_seconds / nullif(node.total_seconds, 0), 0) * node.own_seconds
        END AS own_seconds,
        node.total_seconds,
        node.whole_seconds
    FROM known_calls AS edge
    INNER JOIN nodes AS node ON node.function = edge.callee
    WHERE NOT edge.is_recursive
),
paths AS (
    SELECT
        function,
        [function] AS path,
        greatest(1 - coalesce(called_total_seconds / nullif(total_seconds, 0), 0), 0) AS share,
        CASE
            WHEN called_total_seconds = 0 THEN own_seconds
            WHEN called_own_seconds > 0
                THEN greatest(own_seconds - called_own_seconds * with_recursion, 0)
            ELSE greatest(1 - called_total_seconds / total_seconds, 0) * own_seconds
        END AS own_seconds
    FROM nodes
    UNION ALL
    SELECT
        steps.callee,
        list_append(paths.path, steps.callee),
        paths.share * steps.share,
        paths.share * steps.own_seconds
    FROM paths
    INNER JOIN steps ON steps.caller = paths.function
    WHERE NOT list_contains(paths.path, steps.callee)
        AND paths.share * steps.share * steps.total_seconds > steps.whole_seconds / 2000
        AND len(paths.path) < 200
),
assigned AS (
    SELECT function, sum(own_seconds) AS own_seconds FROM paths GROUP BY function
),
stacks AS (
    SELECT
        paths.function,
        paths.path,
        -- Inconsistent times are scaled to the self time of the function.
        paths.own_seconds
            * CASE
                WHEN assigned.own_seconds > nodes.own_seconds
                    THEN nodes.own_seconds / assigned.own_seconds
                ELSE 1
            END AS seconds
    FROM paths
    INNER JOIN assigned USING (function)
    INNER JOIN nodes USING (function)
    -- Ignore rounding errors of differences.
    WHERE paths.own_seconds > 1e-15
    UNION ALL
    SELECT nodes.function, [-1, nodes.function], nodes.own_seconds - coalesce(assigned.own_seconds, 0)
    FROM nodes
    LEFT JOIN assigned USING (function)
    -- Ignore rounding errors of sums.
    WHERE nodes.own_seconds - coalesce(assigned.own_seconds, 0) > 1e-12 * nodes.own_seconds
),
named AS (
    SELECT
        place,
        any_value(stacks.function) AS function,
        any_value(stacks.seconds) AS seconds,
        list(coalesce(functions.label, '(unknown callers)') ORDER BY step) AS stack,
        list(
            {
                name: coalesce(functions.name, '(unknown callers)'),
                filename: functions.filename,
                line_number: functions.line_number
            } ORDER BY step
        ) AS frames
    FROM (
        SELECT
            place,
            function,
            seconds,
            unnest(path) AS member,
            unnest(range(len(path))) AS step
        FROM (SELECT row_number() OVER () AS place, * FROM stacks)
    ) AS stacks
    LEFT JOIN functions ON functions.function = stacks.member
    GROUP BY place
)
SELECT
    functions.worker,
    named.stack,
    round(named.seconds * 1e6)::BIGINT AS samples,
    named.seconds,
    named.frames,
    functions.log,
    functions.trace_id
FROM named
INNER JOIN functions USING (function);

CREATE OR REPLACE VIEW yappi_calls AS
SELECT
    caller.label AS caller,
    callee.label AS callee,
    calls.calls,
    calls.actual_calls,
    calls.self_seconds,
    calls.total_seconds,
    caller.log,
    caller.source,
    caller.trace_id
FROM _function_calls AS calls
INNER JOIN _functions AS caller ON calls.caller = caller.function
INNER JOIN _functions AS callee ON calls.callee = callee.function
ORDER BY caller.trace_id, caller.source, calls.total_seconds DESC, caller.label, callee.label, calls.caller, calls.callee;

COMMENT ON VIEW yappi_calls IS 'Calls between functions, measured by Yappi. One row per caller and callee.';
COMMENT ON COLUMN yappi_calls.caller IS 'Calling function, as in yappi_functions.';
COMMENT ON COLUMN yappi_calls.callee IS 'Called function.';
COMMENT ON COLUMN yappi_calls.calls IS 'Number of calls.';
COMMENT ON COLUMN yappi_calls.actual_calls IS 'Number of nonrecursive calls. Null if the file does not contain it.';
COMMENT ON COLUMN yappi_calls.self_seconds IS 'Self time of the callee in these calls. Null if the file does not contain it.';
COMMENT ON COLUMN yappi_calls.total_seconds IS 'Total time of the callee in these calls.';
COMMENT ON COLUMN yappi_calls.log IS 'Name of the imported file.';
COMMENT ON COLUMN yappi_calls.source IS 'ID of the file, as in imports.';
COMMENT ON COLUMN yappi_calls.trace_id IS 'ID of the trace.';

-- Transitions that ended an attempt, with the phases of that attempt only.
CREATE OR REPLACE VIEW _attempt_ends AS
SELECT
    ending.rowid AS seq,
    ending.* REPLACE (
        CASE
            WHEN secession.t IS NULL THEN coalesce(own.startstops, ending.startstops)
            ELSE _secede_phases(coalesce(own.startstops, ending.startstops), secession.t)
        END AS startstops
    )
FROM raw.transition AS ending
LEFT JOIN _repeated_phases AS own ON ending.rowid = own.end_seq
LEFT JOIN _secessions AS secession ON ending.rowid = secession.end_seq
WHERE ending."start" = 'processing';

-- Records: chunk
-- Roles of tasks in a coffea run. Prefixes are ambiguous: chunks have the name of the processor
-- or `automatic_retries`, as file metadata does, and merges of either are `reduce`. Therefore
-- the graph is followed from the keys of chunks and files.
CREATE OR REPLACE TABLE _coffea_roles AS
WITH RECURSIVE edges AS (
    SELECT trace_id, key, unnest(dependencies) AS dependency
    FROM _tasks
    WHERE prefix = 'reduce' AND EXISTS (FROM _coffea_keys)
),
merged AS (
    SELECT trace_id, key, role FROM _coffea_keys
    UNION
    SELECT edges.trace_id, edges.key, merged.role
    FROM merged
    INNER JOIN edges
        ON merged.trace_id = edges.trace_id AND merged.key = edges.dependency
),
merges AS (
    SELECT
        trace_id,
        key,
        CASE WHEN bool_or(role = 'chunk') THEN 'merge' ELSE 'file metadata' END AS role
    FROM merged
    ANTI JOIN _coffea_keys USING (trace_id, key)
    GROUP BY trace_id, key
),
inputs AS (
    SELECT DISTINCT task.trace_id, unnest(task.dependencies) AS key
    FROM _tasks AS task
    -- dask-awkward does not broadcast a processor.
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk' AND NOT goes_on) AS chunks
        USING (trace_id, key)
),
broadcasts AS (
    SELECT trace_id, key, 'processor broadcast' AS role
    FROM _tasks AS task
    SEMI JOIN inputs USING (trace_id, key)
    ANTI JOIN _coffea_keys USING (trace_id, key)
    WHERE coalesce(len(task.dependencies), 0) = 0
)
SELECT trace_id, key, role FROM _coffea_keys
UNION ALL
FROM merges
UNION ALL
FROM broadcasts;

-- Dask derives the restrictions of a task from its annotations.
CREATE OR REPLACE VIEW restrictions AS
SELECT
    key,
    prefix,
    task_group,
    workers,
    resources,
    allow_other_workers,
    retries,
    priority,
    trace_id
FROM (
    SELECT
        seq,
        trace_id,
        key,
        prefix,
        "group" AS task_group,
        coalesce(annotations -> '$.workers', annotations -> '$.restrictions') AS restricted,
        CASE json_type(restricted)
            WHEN 'ARRAY' THEN json_transform(restricted, '["VARCHAR"]')
            WHEN 'VARCHAR' THEN [restricted ->> '$']
        END AS workers,
        annotations -> '$.resources' AS resources,
        try_cast(coalesce(
            annotations ->> '$.allow_other_workers', annotations ->> '$.loose_restrictions'
        ) AS BOOLEAN) AS allow_other_workers,
        try_cast(annotations ->> '$.retries' AS BIGINT) AS retries,
        try_cast(annotations ->> '$.priority' AS DOUBLE) AS priority
    FROM _tasks
    WHERE json_type(annotations) = 'OBJECT'
)
WHERE
    workers IS NOT NULL
    OR resources IS NOT NULL
    OR retries IS NOT NULL
    OR priority IS NOT NULL
ORDER BY trace_id, seq;

COMMENT ON VIEW restrictions IS 'Worker restrictions, resources and priorities of tasks. One row per task that has any of these annotations.';
COMMENT ON COLUMN restrictions.key IS 'Task key.';
COMMENT ON COLUMN restrictions.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN restrictions.task_group IS 'Task group of the task.';
COMMENT ON COLUMN restrictions.workers IS 'Workers or hosts that the task may run on.';
COMMENT ON COLUMN restrictions.resources IS 'Dask resources required, as JSON.';
COMMENT ON COLUMN restrictions.allow_other_workers IS 'True if the task may run elsewhere when none of these workers is available.';
COMMENT ON COLUMN restrictions.retries IS 'Number of retries allowed.';
COMMENT ON COLUMN restrictions.priority IS 'User priority. Higher values run first.';
COMMENT ON COLUMN restrictions.trace_id IS 'ID of the trace.';

-- A task record precedes the transitions of the same instant. A key that is submitted again
-- begins anew.
CREATE OR REPLACE MACRO task_states_at(at_t) AS TABLE
WITH changes AS (
    SELECT trace_id, key, finish AS state, t, (t, 1, rowid) AS place
    FROM raw.transition
    WHERE t <= at_t
    UNION ALL
    SELECT trace_id, key, coalesce(state, 'released'), t, (t, 0, rowid)
    FROM raw.task
    WHERE t <= at_t
)
SELECT
    changes.key,
    any_value(task.prefix) AS prefix,
    arg_max(changes.state, place) AS state,
    arg_max(changes.t, place) AS since_t,
    changes.trace_id
FROM changes
LEFT JOIN _tasks AS task USING (trace_id, key)
GROUP BY changes.trace_id, changes.key
ORDER BY changes.trace_id, since_t, changes.key;

CREATE OR REPLACE VIEW task_states AS FROM task_states_at('infinity'::DOUBLE);

COMMENT ON MACRO TABLE task_states_at IS 'The view task_states at a given time, in seconds since the epoch.';
COMMENT ON VIEW task_states IS 'State of each task at the end of the recording. One row per key. task_states_at(t) returns the states at another time.';
COMMENT ON COLUMN task_states.key IS 'Task key.';
COMMENT ON COLUMN task_states.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN task_states.state IS 'State on the scheduler: released, waiting, no-worker, queued, processing, memory, erred or forgotten.';
COMMENT ON COLUMN task_states.since_t IS 'Time of the last change of state, in seconds since the epoch.';
COMMENT ON COLUMN task_states.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW unattempted AS
WITH never AS (
    SELECT trace_id, key FROM _key_summaries WHERE submissions > 0 AND NOT has_attempts
),
states AS (
    SELECT
        trace_id,
        key,
        bool_or(finish = 'erred') AS has_erred,
        arg_max(finish, rowid) AS last_state
    FROM raw.transition
    SEMI JOIN never USING (trace_id, key)
    GROUP BY trace_id, key
)
SELECT
    task.key,
    task.prefix,
    CASE
        WHEN states.has_erred THEN 'a dependency failed'
        WHEN coalesce(states.last_state, task.state) IN ('waiting', 'queued', 'no-worker')
            THEN 'waiting at the end'
        WHEN states.last_state = 'memory' OR task.state = 'memory' THEN 'result known before'
        WHEN task.state = 'erred' THEN 'failed before the recording'
        WHEN states.last_state IS NOT NULL THEN 'cancelled'
        ELSE 'not needed'
    END AS reason,
    coalesce(states.last_state, task.state, 'released') AS last_state,
    task.trace_id
FROM _tasks AS task
SEMI JOIN never USING (trace_id, key)
-- Without any transition, attempts are unknown.
SEMI JOIN (SELECT DISTINCT trace_id FROM raw.transition) AS recorded USING (trace_id)
LEFT JOIN states USING (trace_id, key)
ORDER BY task.trace_id, task.seq;

COMMENT ON VIEW unattempted IS 'Tasks that were never attempted, and why. One row per key. Empty if no transitions were recorded.';
COMMENT ON COLUMN unattempted.key IS 'Task key.';
COMMENT ON COLUMN unattempted.prefix IS 'Key prefix.';
COMMENT ON COLUMN unattempted.reason IS 'a dependency failed (so that the task erred, too), waiting at the end (of the recording), result known before (computed before the recording, or scattered), failed before the recording, cancelled (released before it was dispatched) or not needed (no transition: no requested result depends on it).';
COMMENT ON COLUMN unattempted.last_state IS 'Last recorded state of the task.';
COMMENT ON COLUMN unattempted.trace_id IS 'ID of the trace.';

-- Only changes are recorded: after a client has requested a key, it releases the key, requests it
-- again because Dask has forgotten it in the meantime, or does neither.
CREATE OR REPLACE VIEW wanted_keys AS
WITH changes AS (
    SELECT DISTINCT trace_id, client, change.t, change.action, unnest(change.keys) AS key
    FROM (SELECT trace_id, client, unnest(changes) AS change FROM raw.wanted_keys)
),
followed AS (
    SELECT
        *,
        lead(t) OVER (PARTITION BY trace_id, client, key ORDER BY t) AS next_t
    FROM changes
),
forgotten AS (
    SELECT trace_id, key, t FROM raw.transition WHERE finish = 'forgotten'
),
ended AS (
    SELECT trace_id, key, t FROM raw.transition WHERE finish IN ('memory', 'erred')
),
wanted AS (
    SELECT
        followed.trace_id,
        followed.key,
        followed.client,
        followed.t AS start_t,
        -- least() ignores null.
        least(
            followed.next_t,
            forgotten.t,
            -- Dask releases these itself.
            CASE WHEN followed.client = 'fire-and-forget' THEN ended.t END
        ) AS stop_t
    FROM followed
    ASOF LEFT JOIN forgotten
        ON followed.trace_id = forgotten.trace_id
        AND followed.key = forgotten.key
        AND followed.t <= forgotten.t
    ASOF LEFT JOIN ended
        ON followed.trace_id = ended.trace_id
        AND followed.key = ended.key
        AND followed.t <= ended.t
    WHERE followed.action = 'desires'
)
SELECT
    wanted.key,
    task.prefix,
    wanted.client,
    wanted.start_t,
    wanted.stop_t,
    wanted.stop_t - wanted.start_t AS seconds,
    wanted.trace_id
FROM wanted
LEFT JOIN _tasks AS task USING (trace_id, key)
ORDER BY wanted.trace_id, wanted.start_t, wanted.client, wanted.key;

COMMENT ON VIEW wanted_keys IS 'Times during which a client wanted a key: Dask keeps the result of a key that any client wants. One row per client, key and time. Futures are wanted until they are released. A client can also be a queue (queue-…), a variable (variable-…) or a published dataset (published-…) of Dask, or fire-and-forget, whose tasks are wanted until they end.';
COMMENT ON COLUMN wanted_keys.key IS 'Task key.';
COMMENT ON COLUMN wanted_keys.prefix IS 'Key prefix. Null if the task was not recorded, as of scattered data.';
COMMENT ON COLUMN wanted_keys.client IS 'Client.';
COMMENT ON COLUMN wanted_keys.start_t IS 'Time from which it wanted the key, in seconds since the epoch. For keys that were wanted before the recording, its start.';
COMMENT ON COLUMN wanted_keys.stop_t IS 'Time at which it released the key, or at which Dask forgot the task, in seconds since the epoch. Null if the trace ends first.';
COMMENT ON COLUMN wanted_keys.seconds IS 'Duration.';
COMMENT ON COLUMN wanted_keys.trace_id IS 'ID of the trace.';

-- Rows of profile_stacks in any order: sorting takes more memory than everything else.
CREATE OR REPLACE VIEW _profile_stacks AS
WITH labelled AS (
    SELECT
        worker,
        prefix,
        tree.slices AS slices,
        tree.line_numbers AS lines,
        list_transform(tree.node_frames, lambda frame: coalesce(frame + 1, 0)) AS places,
        list_select(tree.frames, places) AS frames,
        list_select(
            list_transform(
                tree.frames,
                lambda frame: coalesce(frame.name, '?') || ' (' || coalesce(frame.filename, '?')
                || coalesce(':' || frame.line_number, '') || ')'
            ),
            places
        ) AS labels,
        stacks,
        server_id,
        interval_seconds,
        trace_id,
        record
    FROM raw.profile AS profile
    INNER JOIN _profile_samples ON profile.rowid = record
),
found AS (
    SELECT * EXCLUDE (stacks), unnest(stacks) AS it, unnest(range(len(stacks))) AS place
    FROM labelled
)
SELECT
    worker,
    prefix,
    slices[it.slice].start_t AS start_t,
    slices[it.slice].stop_t AS stop_t,
    list_select(labels, it.path) AS stack,
    it.samples AS samples,
    (it.samples + it.undecided) * interval_seconds AS seconds,
    it.undecided AS ambiguous_samples,
    it.counted AS counted_samples,
    list_select(frames, it.path) AS frames,
    list_select(lines, it.path) AS lines,
    server_id,
    interval_seconds,
    'dask' AS profiler,
    NULL AS log,
    trace_id,
    record,
    place
FROM found
UNION ALL
SELECT
    worker,
    NULL,
    NULL,
    NULL,
    stack,
    samples,
    seconds,
    0,
    0,
    frames,
    NULL,
    NULL,
    1e-6,
    'yappi',
    log,
    trace_id,
    NULL,
    NULL
FROM _function_stacks;

-- Phases that workers reported at the end of an attempt (startstops), by the rowid of the
-- transition that ended it.
CREATE OR REPLACE VIEW _task_phases AS
SELECT end_seq, action, start AS start_t, stop AS stop_t, source
FROM (SELECT seq AS end_seq, unnest(startstops, max_depth := 2) FROM _attempt_ends);

-- A task attempt begins when its key becomes `processing` and ends with the next transition of
-- the key from there. Most keys have one attempt, found in _key_summaries. For the others, one
-- window over their transitions finds begin and end.
CREATE OR REPLACE TABLE _task_runs AS
WITH repeated AS (
    SELECT trace_id, key
    FROM _key_summaries
    WHERE has_attempts AND NOT is_simple
),
steps AS (
    SELECT
        transition.rowid AS seq,
        transition.key,
        transition.t,
        transition.finish = 'processing' AS begins,
        transition.start = 'processing' AS ends,
        CASE WHEN transition.finish = 'waiting' THEN transition.t END AS waiting_t,
        transition.trace_id
    FROM raw.transition AS transition
    SEMI JOIN repeated USING (trace_id, key)
    WHERE transition.finish IN ('processing', 'waiting') OR transition.start = 'processing'
    UNION ALL
    -- Tasks that were processing when recording began, before all transitions.
    SELECT seq, key, t, true AS begins, false AS ends, NULL AS waiting_t, trace_id
    FROM _earlier_attempts
),
windows AS (
    SELECT
        seq,
        key,
        t,
        count(*) FILTER (begins) OVER so_far AS attempt,
        CASE WHEN lead(ends) OVER in_order THEN lead(seq) OVER in_order END AS ending_seq,
        last_value(waiting_t IGNORE NULLS) OVER so_far AS waiting_t,
        trace_id
    FROM steps
    WINDOW
        in_order AS (PARTITION BY trace_id, key ORDER BY seq),
        so_far AS (PARTITION BY trace_id, key ORDER BY seq ROWS UNBOUNDED PRECEDING)
    QUALIFY begins
),
submissions AS (
    -- The first submission also describes attempts that began before it was recorded.
    SELECT
        task.key,
        task.rowid AS seq,
        CASE WHEN task.rowid = keys.submission THEN '-infinity'::DOUBLE ELSE task.t END AS from_t,
        task.trace_id
    FROM raw.task AS task
    INNER JOIN _key_summaries AS keys USING (trace_id, key)
    WHERE keys.has_attempts AND NOT keys.is_simple
),
attempt_rows AS (
    SELECT
        beginning AS seq,
        ending,
        key,
        1 AS attempt,
        waiting_t,
        submission,
        trace_id
    FROM _key_summaries
    WHERE is_simple
    UNION ALL
    SELECT
        windows.seq,
        windows.ending_seq AS ending,
        windows.key,
        windows.attempt,
        windows.waiting_t,
        submissions.seq AS submission,
        windows.trace_id
    FROM windows
    ASOF LEFT JOIN submissions
        ON windows.trace_id = submissions.trace_id
        AND windows.key = submissions.key
        AND windows.t >= submissions.from_t
),
attempts AS (
    SELECT
        attempt_rows.*,
        -- For tasks that were already processing, the dispatch time is unknown.
        beginning.t AS processing_t,
        coalesce(beginning.worker, initial.worker) AS worker,
        coalesce(beginning.run_id, initial.run_id) AS run_id,
        submission.prefix,
        submission.span_id
    FROM attempt_rows
    LEFT JOIN (SELECT rowid AS seq, * FROM raw.transition WHERE finish = 'processing') AS beginning
        ON attempt_rows.seq = beginning.seq
    LEFT JOIN _earlier_attempts AS initial ON attempt_rows.seq = initial.seq
    LEFT JOIN raw.task AS submission ON attempt_rows.submission = submission.rowid
),
departures AS (
    SELECT DISTINCT worker, stimulus_id, trace_id
    FROM raw.worker_removed
    WHERE stimulus_id IS NOT NULL
)
SELECT
    attempts.key,
    attempts.prefix,
    roles.role,
    attempts.attempt,
    -- Work stealing moves a task without a transition: the worker that reported the end ran it.
    coalesce(ending.worker, attempts.worker) AS worker,
    CASE WHEN ending.worker <> attempts.worker THEN attempts.worker END AS stolen_from,
    ending.thread,
    CASE
        WHEN ending.finish IS NULL THEN 'unfinished'
        WHEN ending.finish IN ('memory', 'erred') THEN ending.finish
        -- A failed task reports its worker or exception. Tasks that the client releases because
        -- of another failure end with the same stimulus, but without either.
        WHEN ending.exception IS NOT NULL
            OR (starts_with(ending.stimulus_id, 'task-erred') AND ending.worker IS NOT NULL) THEN 'retried'
        WHEN starts_with(ending.stimulus_id, 'reschedule') THEN 'rescheduled'
        WHEN departure.worker IS NOT NULL
            OR regexp_matches(
                ending.stimulus_id,
                '^(handle-worker-cleanup|retire-workers?|remove-worker|worker-|close-|check-worker-ttl'
                -- A client restarts the workers, after it has released all keys.
                '|client-restart|cancelled-by-worker-close|send-all-comm-fail)'
            ) THEN 'lost'
        ELSE 'cancelled'
    END AS outcome,
    attempts.processing_t,
    list_min(list_transform(
        list_filter(ending.startstops, lambda part: part.action = 'compute'), lambda part: part.start
    )) AS compute_start_t,
    list_max(list_transform(
        list_filter(ending.startstops, lambda part: part.action IN ('compute', 'seceded')),
        lambda part: part.stop
    )) AS compute_stop_t,
    -- Tasks that were processing when recording began can have computed for hours before.
    CASE
        WHEN attempts.processing_t IS NOT NULL THEN _phase_seconds(ending.startstops, 'compute')
        ELSE _phase_seconds(
            _clip_phases(ending.startstops, recording.start_t, recording.stop_t), 'compute'
        )
    END AS compute_seconds,
    -- Equal to compute_seconds, except for attempts that seceded or that the recording or a time range
    -- cuts off.
    _phase_seconds(ending.startstops, 'compute')
        + coalesce(_phase_seconds(ending.startstops, 'seceded'), 0) AS whole_seconds,
    _phase_seconds(ending.startstops, 'transfer') AS transfer_seconds,
    _phase_seconds(ending.startstops, 'deserialize') AS deserialize_seconds,
    _phase_seconds(ending.startstops, 'disk-') AS disk_seconds,
    attempts.processing_t - attempts.waiting_t AS queued_seconds,
    ending.nbytes,
    ending.typename,
    attempts.span_id,
    ending.exception,
    ending.traceback,
    coalesce(ending.run_id, attempts.run_id) AS run_id,
    ending.t AS end_t,
    regexp_replace(ending.stimulus_id, '-[0-9.]+$', '') AS end_reason,
    -- The heartbeat can be older than the attempt, and refer to an earlier one.
    CASE WHEN ending.start_t >= attempts.processing_t THEN ending.start_t END AS execute_start_t,
    attempts.submission,
    attempts.seq,
    ending.seq AS end_seq,
    attempts.trace_id
-- Join order for speed: scan the wide rows, and build hash tables of the narrow ones.
FROM _attempt_ends AS ending
RIGHT JOIN attempts ON ending.seq = attempts.ending
INNER JOIN _trace_range AS recording ON attempts.trace_id = recording.trace_id
LEFT JOIN _coffea_roles AS roles
    ON attempts.trace_id = roles.trace_id AND attempts.key = roles.key
LEFT JOIN departures AS departure
    ON attempts.trace_id = departure.trace_id
    AND ending.stimulus_id = departure.stimulus_id
    AND coalesce(ending.worker, attempts.worker) = departure.worker;

CREATE OR REPLACE VIEW tasks AS
SELECT
    key,
    prefix,
    "group" AS task_group,
    span_id,
    submitted_span IS NOT NULL AS is_other_span,
    json_transform(submitted_span -> '$.name', '["VARCHAR"]') AS submitted_span_path,
    submitted_span ->> '$.ids[#-1]' AS submitted_span_id,
    dependencies,
    len(dependencies) AS n_dependencies,
    priority,
    annotations,
    t AS submitted_t,
    client,
    submissions,
    roles.role,
    trace_id
FROM _tasks
LEFT JOIN _coffea_roles AS roles USING (trace_id, key)
ORDER BY trace_id, seq;

COMMENT ON VIEW tasks IS 'Tasks of all submitted graphs. One row per key, as first submitted.';
COMMENT ON COLUMN tasks.key IS 'Task key.';
COMMENT ON COLUMN tasks.prefix IS 'Key prefix.';
COMMENT ON COLUMN tasks.task_group IS 'Task group: the tasks of one graph layer.';
COMMENT ON COLUMN tasks.span_id IS 'Span of the task: that of its group, which Dask files under the span of its first task.';
COMMENT ON COLUMN tasks.is_other_span IS 'Whether the task was submitted in a span other than span_id, which is that of an earlier task of its group. Known for tasks that were submitted during the recording, from trace format 2.3 on.';
COMMENT ON COLUMN tasks.submitted_span_path IS 'Names of the span in which it was submitted, from the outermost one; default outside of spans. Null unless is_other_span.';
COMMENT ON COLUMN tasks.submitted_span_id IS 'ID of that span. Null outside of spans and unless is_other_span.';
COMMENT ON COLUMN tasks.dependencies IS 'Keys of the tasks whose results it needs.';
COMMENT ON COLUMN tasks.n_dependencies IS 'Number of dependencies.';
COMMENT ON COLUMN tasks.priority IS 'Dask priority. Lower values run first.';
COMMENT ON COLUMN tasks.annotations IS 'Dask annotations, as JSON.';
COMMENT ON COLUMN tasks.submitted_t IS 'First submission, in seconds since the epoch.';
COMMENT ON COLUMN tasks.client IS 'Client that submitted it.';
COMMENT ON COLUMN tasks.submissions IS 'Number of times the key was submitted.';
COMMENT ON COLUMN tasks.role IS 'Role in a coffea run, as in task_roles: chunk, merge, file metadata or processor broadcast. Null for all other tasks.';
COMMENT ON COLUMN tasks.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW profile_stacks AS
SELECT * EXCLUDE (record, place)
FROM _profile_stacks
ORDER BY trace_id, record, place;

COMMENT ON VIEW profile_stacks IS 'Call stacks of statistical profiles, with samples and time. Profiler dask: one row per worker, prefix, profiling cycle and stack; the samples of a stack are those in which its last function was innermost. Dask does not count the innermost function; the recorder adds it, except in the cycle in which the recording began. Samples that cannot be assigned to one function count as ambiguous at the stack of the caller, so that samples and ambiguous samples add up to all samples. Malformed profiles are excluded and listed in loss. Profiler yappi: functions measured by Yappi, with callers as far as they are known (docs: how-to/yappi). The two profilers cover the same time and must not be added.';
COMMENT ON COLUMN profile_stacks.worker IS 'Worker address. Null for the scheduler''s event loop, and for Yappi data imported without a worker.';
COMMENT ON COLUMN profile_stacks.prefix IS 'Key prefix of the tasks. Null for Yappi.';
COMMENT ON COLUMN profile_stacks.start_t IS 'Start of the profiling cycle, in seconds since the epoch. Null for Yappi.';
COMMENT ON COLUMN profile_stacks.stop_t IS 'End of the profiling cycle, in seconds since the epoch.';
COMMENT ON COLUMN profile_stacks.stack IS 'Functions from outermost to innermost, as name (file:line), with the line at which the function is defined. Empty for ambiguous samples between outermost functions.';
COMMENT ON COLUMN profile_stacks.samples IS 'Samples in which the last function of the stack was innermost. For Yappi, its self time in microseconds, rounded.';
COMMENT ON COLUMN profile_stacks.seconds IS 'Time of the samples and ambiguous samples.';
COMMENT ON COLUMN profile_stacks.ambiguous_samples IS 'Samples in which one of several callees of the last function was innermost, but it is unknown which.';
COMMENT ON COLUMN profile_stacks.counted_samples IS 'Dask''s count of the last function minus the counts of its callees: exclusive samples if Dask counted innermost functions.';
COMMENT ON COLUMN profile_stacks.frames IS 'Functions of the stack as name, filename and line number.';
COMMENT ON COLUMN profile_stacks.lines IS 'Line first sampled in each function, in the same record.';
COMMENT ON COLUMN profile_stacks.server_id IS 'ID of the process.';
COMMENT ON COLUMN profile_stacks.interval_seconds IS 'Sampling interval of a thread. For Yappi, one microsecond.';
COMMENT ON COLUMN profile_stacks.profiler IS 'Profiler: dask or yappi.';
COMMENT ON COLUMN profile_stacks.log IS 'File name of the imported Yappi file.';
COMMENT ON COLUMN profile_stacks.trace_id IS 'ID of the trace.';

-- Good attempts whose result was lost before a dependent had used it, and was computed again for
-- the same submission of the key. Whether a client fetched a result is not recorded.
CREATE OR REPLACE TABLE _discarded_results AS
WITH attempts AS (
    SELECT
        *,
        lead(seq) OVER in_order AS next_seq,
        bool_or(outcome = 'memory') OVER (
            in_order ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) AS is_recomputed
    FROM _task_runs
    SEMI JOIN (FROM _key_summaries WHERE has_attempts AND NOT is_simple) USING (trace_id, key)
    WINDOW in_order AS (PARTITION BY trace_id, key, submission ORDER BY seq)
),
repeated AS (
    SELECT seq, end_seq, next_seq, key, trace_id
    FROM attempts
    WHERE outcome = 'memory' AND is_recomputed
),
used AS (
    SELECT repeated.seq
    FROM repeated
    INNER JOIN (
        SELECT trace_id, key AS dependent, unnest(dependencies) AS key FROM raw.task
    ) AS needs USING (trace_id, key)
    INNER JOIN _task_runs AS dependent
        ON needs.trace_id = dependent.trace_id
        AND needs.dependent = dependent.key
        AND dependent.outcome = 'memory'
        AND dependent.seq > repeated.end_seq
        AND dependent.end_seq < repeated.next_seq
)
SELECT seq FROM repeated ANTI JOIN used USING (seq);

-- Median compute time of the attempts of each task group. This is a table for the same reason as
-- _task_group_workers.
CREATE OR REPLACE TABLE _task_group_medians AS
SELECT run.trace_id, task."group" AS task_group, median(run.whole_seconds) AS median_compute_seconds
FROM _task_runs AS run
LEFT JOIN raw.task AS task ON run.submission = task.rowid
GROUP BY run.trace_id, task."group";

-- Number of workers that ran attempts of each task group. This is a table, because in one query with
-- the other aggregates of task_groups it would take many times as long if memory is scarce.
CREATE OR REPLACE TABLE _task_group_workers AS
SELECT trace_id, task_group, count(*) AS workers
FROM (
    SELECT DISTINCT run.trace_id, task."group" AS task_group, run.worker
    FROM _task_runs AS run
    LEFT JOIN raw.task AS task ON run.submission = task.rowid
    WHERE run.worker IS NOT NULL
)
GROUP BY trace_id, task_group;

CREATE OR REPLACE VIEW dependencies AS
WITH edges AS (
    SELECT
        seq AS task,
        trace_id,
        key,
        prefix,
        "group" AS task_group,
        stimulus_id,
        unnest(dependencies) AS dependency
    FROM _tasks
),
-- Attempt that used the result: the last successful one, or else the last one.
last_attempts AS (
    SELECT
        trace_id,
        key,
        max_by(
            {seq: seq, end_seq: end_seq, worker: worker}, (outcome = 'memory', attempt)
        ) AS run
    FROM _task_runs
    GROUP BY trace_id, key
),
needed AS (
    SELECT
        edges.*,
        last_attempts.run.worker AS worker,
        last_attempts.run.end_seq AS end_seq,
        -- A task that was never dispatched would use the final result.
        coalesce(last_attempts.run.seq, 9223372036854775807) AS needed_seq
    FROM edges
    LEFT JOIN last_attempts USING (trace_id, key)
),
results AS (
    SELECT trace_id, key, end_seq, worker, nbytes
    FROM _task_runs
    WHERE outcome = 'memory'
)
SELECT
    needed.key,
    needed.dependency,
    needed.prefix,
    dependency_task.prefix AS dependency_prefix,
    result.nbytes AS bytes,
    needed.worker,
    result.worker AS dependency_worker,
    needed.worker <> result.worker AS is_moved,
    CASE
        WHEN len(ending.startstops) > 0 AND result.worker IS NOT NULL THEN list_contains(
            list_transform(
                list_filter(ending.startstops, lambda part: part.action = 'transfer'),
                lambda part: part.source
            ),
            result.worker
        )
    END AS has_transfer,
    needed.task_group,
    dependency_task."group" AS dependency_group,
    needed.stimulus_id,
    needed.trace_id
FROM needed
LEFT JOIN _tasks AS dependency_task
    ON needed.trace_id = dependency_task.trace_id AND needed.dependency = dependency_task.key
LEFT JOIN _attempt_ends AS ending ON needed.end_seq = ending.seq
ASOF LEFT JOIN results AS result
    ON needed.trace_id = result.trace_id
    AND needed.dependency = result.key
    AND needed.needed_seq > result.end_seq
ORDER BY needed.trace_id, needed.task, needed.dependency;

COMMENT ON VIEW dependencies IS 'Edges of the task graph, with the workers at both ends. One row per task and dependency. For a task with several attempts, the last successful attempt is used, or else the last one. For the dependency, it is the latest result available when that attempt began. Columns of the run are null for tasks that never ran.';
COMMENT ON COLUMN dependencies.key IS 'Key of the task.';
COMMENT ON COLUMN dependencies.dependency IS 'Key of the task whose result it needs.';
COMMENT ON COLUMN dependencies.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN dependencies.dependency_prefix IS 'Key prefix of the dependency. Null if it was not recorded as a task.';
COMMENT ON COLUMN dependencies.bytes IS 'Size of the result. Null if its computation was not recorded, as for scattered data.';
COMMENT ON COLUMN dependencies.worker IS 'Address of the worker that ran the task or was assigned it.';
COMMENT ON COLUMN dependencies.dependency_worker IS 'Address of the worker that computed the result.';
COMMENT ON COLUMN dependencies.is_moved IS 'True if the two workers differ, so that the result was transferred. Several tasks on a worker share one transfer.';
COMMENT ON COLUMN dependencies.has_transfer IS 'True if this task reported a transfer from that worker. Dask reports a transfer with only one of the tasks that need it, and may fetch a copy from a third worker. Null if the task reported no times.';
COMMENT ON COLUMN dependencies.task_group IS 'Task group of the task.';
COMMENT ON COLUMN dependencies.dependency_group IS 'Task group of the dependency. Null if it was not recorded as a task.';
COMMENT ON COLUMN dependencies.stimulus_id IS 'Graph that the task was submitted with, as in graph_updates.';
COMMENT ON COLUMN dependencies.trace_id IS 'ID of the trace.';

-- An arrival belongs to the attempt that ended next on the scheduler's clock, because work
-- stealing can send a task again within an attempt.
CREATE OR REPLACE VIEW dispatch_latency AS
WITH runs AS (
    SELECT *, coalesce(end_t, 'infinity'::DOUBLE) AS until_t
    FROM _task_runs
    SEMI JOIN (SELECT DISTINCT trace_id FROM raw.worker_transition) USING (trace_id)
),
assigned AS (
    SELECT arrival.*, run.seq
    FROM _worker_arrivals AS arrival
    ASOF INNER JOIN runs AS run
        ON arrival.trace_id = run.trace_id
        AND arrival.key = run.key
        AND arrival.sent_t <= run.until_t
),
arrivals AS (
    -- Last arrival at the worker.
    SELECT seq, worker, max_by(assigned, sent_t) AS last_arrival
    FROM assigned
    GROUP BY seq, worker
),
instants AS (
    SELECT
        run.*,
        last_arrival.stimulus_id AS worker_stimulus_id,
        last_arrival.sent_t,
        last_arrival.arrived_t,
        last_arrival.ready_t,
        last_arrival.executing_t,
        coalesce(last_arrival.arrived_t, run.processing_t) AS waiting_from_t,
        coalesce(last_arrival.ready_t, last_arrival.arrived_t, run.processing_t) AS ready_from_t,
        coalesce(
            last_arrival.executing_t,
            last_arrival.ready_t,
            last_arrival.arrived_t,
            run.processing_t
        ) AS executing_from_t
    FROM runs AS run
    LEFT JOIN arrivals AS arrival USING (seq, worker)
),
execution AS (
    SELECT
        instants.*,
        sent.stimulus_id,
        list_transform(
            list_filter(ending.startstops, lambda part: part.action IN ('deserialize', 'disk-read')),
            lambda part: struct_pack(
                action := part.action,
                seconds := greatest(
                    least(part.stop, compute_start_t) - greatest(part.start, executing_from_t), 0
                )
            )
        ) AS phases
    FROM instants
    LEFT JOIN raw.transition AS sent ON instants.seq = sent.rowid
    LEFT JOIN _attempt_ends AS ending ON instants.end_seq = ending.seq
),
split AS (
    SELECT
        *,
        list_sum(list_transform(
            list_filter(phases, lambda part: part.action = 'deserialize'), lambda part: part.seconds
        )) AS deserialize,
        list_sum(list_transform(
            list_filter(phases, lambda part: part.action = 'disk-read'), lambda part: part.seconds
        )) AS disk
    FROM execution
),
seconds AS (
    SELECT
        *,
        arrived_t - processing_t AS dispatch,
        ready_t - waiting_from_t AS transfer_wait,
        executing_t - ready_from_t AS queue,
        compute_start_t - executing_from_t - coalesce(deserialize, 0) - coalesce(disk, 0) AS other
    FROM split
)
SELECT
    key,
    prefix,
    attempt,
    worker,
    outcome,
    processing_t,
    arrived_t,
    ready_t,
    executing_t,
    compute_start_t,
    dispatch AS dispatch_seconds,
    transfer_wait AS transfer_wait_seconds,
    queue AS queue_seconds,
    CASE WHEN other IS NOT NULL THEN coalesce(deserialize, 0) END AS deserialize_seconds,
    CASE WHEN other IS NOT NULL THEN coalesce(disk, 0) END AS disk_seconds,
    other AS other_seconds,
    compute_start_t - processing_t AS dispatch_latency_seconds,
    coalesce(sent_t > processing_t, false) AS is_stolen,
    coalesce(least(dispatch, transfer_wait, queue, other) < 0, false) AS clocks_disagree,
    stimulus_id,
    worker_stimulus_id,
    run_id,
    trace_id
FROM seconds
ORDER BY trace_id, seq;

COMMENT ON VIEW dispatch_latency IS 'Time from task dispatch to the start of its computation. One row per attempt, as in task_runs. dispatch_latency_seconds = dispatch_seconds + transfer_wait_seconds + queue_seconds + deserialize_seconds + disk_seconds + other_seconds (null counts as 0). Empty unless recorded with worker_transitions=True; latencies has the times that are known without it.';
COMMENT ON COLUMN dispatch_latency.key IS 'Task key.';
COMMENT ON COLUMN dispatch_latency.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN dispatch_latency.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN dispatch_latency.worker IS 'Address of the worker that ran the attempt, or was assigned it if it never ended.';
COMMENT ON COLUMN dispatch_latency.outcome IS 'Outcome of the attempt, as in task_runs.';
COMMENT ON COLUMN dispatch_latency.processing_t IS 'Dispatch by the scheduler, in seconds since the epoch. Null if before the recording.';
COMMENT ON COLUMN dispatch_latency.arrived_t IS 'Arrival at the worker (→waiting), in seconds since the epoch. Null if not reported: the worker died, or already had the result.';
COMMENT ON COLUMN dispatch_latency.ready_t IS 'All dependencies available on the worker (→ready or →constrained), in seconds since the epoch.';
COMMENT ON COLUMN dispatch_latency.executing_t IS 'Thread assigned (→executing), in seconds since the epoch.';
COMMENT ON COLUMN dispatch_latency.compute_start_t IS 'Start of the computation, in seconds since the epoch. Null if it never started or was not reported.';
COMMENT ON COLUMN dispatch_latency.dispatch_seconds IS 'Time from the scheduler to the event loop of the worker. Includes the move between workers if the task was stolen.';
COMMENT ON COLUMN dispatch_latency.transfer_wait_seconds IS 'Time on the worker until all dependencies were available, including the wait for transfers to start.';
COMMENT ON COLUMN dispatch_latency.queue_seconds IS 'Time on the worker, ready, until a thread and the task''s resources were available.';
COMMENT ON COLUMN dispatch_latency.deserialize_seconds IS 'Time to deserialize the task before its computation, if reported.';
COMMENT ON COLUMN dispatch_latency.disk_seconds IS 'Time to read dependencies from disk, if reported: from 5 ms on.';
COMMENT ON COLUMN dispatch_latency.other_seconds IS 'Remaining time from →executing to the start of the computation, mainly waking the thread. Without →executing, from the last known instant.';
COMMENT ON COLUMN dispatch_latency.dispatch_latency_seconds IS 'Time from dispatch to the start of the computation: compute_start_t - processing_t.';
COMMENT ON COLUMN dispatch_latency.is_stolen IS 'True if the task was sent to this worker after processing_t: work stealing moved it from another worker.';
COMMENT ON COLUMN dispatch_latency.clocks_disagree IS 'True if a part is negative: dispatch_seconds if the worker''s estimate of the scheduler clock is off, other parts if the estimate was corrected in between, by a heartbeat.';
COMMENT ON COLUMN dispatch_latency.stimulus_id IS 'Stimulus of the transition to processing on the scheduler.';
COMMENT ON COLUMN dispatch_latency.worker_stimulus_id IS 'Stimulus of the transition to waiting on the worker.';
COMMENT ON COLUMN dispatch_latency.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN dispatch_latency.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW latencies AS
WITH slots AS (
    SELECT trace_id, until_seq AS seq, until_t - from_t AS seconds
    FROM _task_states
    WHERE state IN ('queued', 'no-worker')
),
phases AS (
    SELECT
        run.seq,
        list_transform(ending.startstops, lambda part: part.start) AS starts,
        list_transform(ending.startstops, lambda part: part.stop) AS stops,
        list_filter(ending.startstops, lambda part: part.action = 'transfer') AS transfers,
        list_filter(ending.startstops, lambda part: part.action <> 'transfer') AS others
    FROM _task_runs AS run
    INNER JOIN _attempt_ends AS ending ON run.end_seq = ending.seq
    WHERE len(ending.startstops) > 0
),
instants AS (
    SELECT
        seq,
        list_min(starts) AS first_t,
        list_max(stops) AS last_t,
        list_min(list_transform(transfers, lambda part: part.start)) AS fetch_t,
        list_max(list_transform(transfers, lambda part: part.stop)) AS fetched_t,
        list_min(list_transform(others, lambda part: part.start)) AS execute_t
    FROM phases
)
SELECT
    run.key,
    run.prefix,
    run.attempt,
    run.worker,
    run.outcome,
    run.processing_t,
    run.queued_seconds - coalesce(slots.seconds, 0) AS dependency_seconds,
    CASE
        WHEN run.queued_seconds IS NULL THEN slots.seconds
        ELSE coalesce(slots.seconds, 0)
    END AS slot_seconds,
    first_t - run.processing_t AS dispatch_seconds,
    fetched_t - fetch_t AS fetch_seconds,
    execute_t - fetched_t AS thread_wait_seconds,
    last_t - execute_t AS execute_seconds,
    run.end_t - last_t AS report_seconds,
    run.end_t - run.processing_t AS processing_seconds,
    run.run_id,
    run.trace_id
FROM _task_runs AS run
LEFT JOIN slots USING (trace_id, seq)
LEFT JOIN instants USING (seq)
ORDER BY run.trace_id, run.seq;

COMMENT ON VIEW latencies IS 'Waiting and execution time of task attempts, by phase. One row per attempt, as in task_runs. A task first waits on the scheduler (dependency_seconds, slot_seconds). After dispatch, processing_seconds = dispatch_seconds + fetch_seconds + thread_wait_seconds + execute_seconds + report_seconds (null counts as 0). Workers estimate the scheduler''s clock, so times between the two can be slightly off or even negative.';
COMMENT ON COLUMN latencies.key IS 'Task key.';
COMMENT ON COLUMN latencies.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN latencies.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN latencies.worker IS 'Worker address.';
COMMENT ON COLUMN latencies.outcome IS 'Outcome of the attempt, as in task_runs.';
COMMENT ON COLUMN latencies.processing_t IS 'Dispatch by the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN latencies.dependency_seconds IS 'Time on the scheduler in state waiting, until all dependencies were computed. dependency_seconds + slot_seconds = queued_seconds of task_runs. Null if the start of waiting was not recorded.';
COMMENT ON COLUMN latencies.slot_seconds IS 'Time on the scheduler in state queued or no-worker, until a worker had a free thread. For tasks already queued when recording began, since then.';
COMMENT ON COLUMN latencies.dispatch_seconds IS 'Time from dispatch to the first phase reported by the worker. Null if no phases were reported.';
COMMENT ON COLUMN latencies.fetch_seconds IS 'Time from the start of the first transfer of a dependency to the end of the last. Null without transfers.';
COMMENT ON COLUMN latencies.thread_wait_seconds IS 'Time from the last transfer to execution: waiting for a thread. Null without transfers, when it is part of dispatch_seconds.';
COMMENT ON COLUMN latencies.execute_seconds IS 'Execution time: deserializing, reading from disk, computing, and gaps between these.';
COMMENT ON COLUMN latencies.report_seconds IS 'Time from the end on the worker to the end recorded by the scheduler.';
COMMENT ON COLUMN latencies.processing_seconds IS 'Time from dispatch to the end recorded by the scheduler: end_t - processing_t of task_runs.';
COMMENT ON COLUMN latencies.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN latencies.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW prefixes AS
WITH submitted AS (
    SELECT
        trace_id,
        prefix,
        count(*) AS tasks,
        string_agg(DISTINCT roles.role, ', ' ORDER BY roles.role) AS roles
    FROM _tasks
    LEFT JOIN _coffea_roles AS roles USING (trace_id, key)
    GROUP BY trace_id, prefix
),
done AS (
    SELECT
        trace_id,
        prefix,
        count(*) AS task_runs,
        count(*) FILTER (outcome = 'memory') AS memory,
        count(*) FILTER (outcome = 'erred') AS erred,
        count(*) FILTER (outcome = 'retried') AS retried,
        count(*) FILTER (outcome = 'lost') AS lost,
        count(*) FILTER (outcome = 'rescheduled') AS rescheduled,
        count(*) FILTER (outcome = 'cancelled') AS cancelled,
        count(*) FILTER (outcome = 'unfinished') AS unfinished,
        sum(compute_seconds) AS compute_seconds,
        avg(whole_seconds) AS mean_compute_seconds,
        median(whole_seconds) AS median_compute_seconds,
        max(whole_seconds) AS max_compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(deserialize_seconds) AS deserialize_seconds,
        sum(disk_seconds) AS disk_seconds,
        try_cast(sum(nbytes) AS BIGINT) AS output_bytes
    FROM _task_runs
    GROUP BY trace_id, prefix
)
SELECT
    coalesce(submitted.prefix, done.prefix) AS prefix,
    coalesce(tasks, 0) AS tasks,
    coalesce(task_runs, 0) AS task_runs,
    coalesce(memory, 0) AS memory,
    coalesce(erred, 0) AS erred,
    coalesce(retried, 0) AS retried,
    coalesce(lost, 0) AS lost,
    coalesce(rescheduled, 0) AS rescheduled,
    coalesce(cancelled, 0) AS cancelled,
    coalesce(unfinished, 0) AS unfinished,
    compute_seconds,
    mean_compute_seconds,
    median_compute_seconds,
    max_compute_seconds,
    transfer_seconds,
    deserialize_seconds,
    disk_seconds,
    output_bytes,
    roles,
    coalesce(submitted.trace_id, done.trace_id) AS trace_id
FROM submitted
FULL JOIN done
    ON submitted.trace_id = done.trace_id AND submitted.prefix IS NOT DISTINCT FROM done.prefix
ORDER BY trace_id, compute_seconds DESC NULLS LAST, prefix;

COMMENT ON VIEW prefixes IS 'Totals by key prefix. One row per prefix, highest compute time first.';
COMMENT ON COLUMN prefixes.prefix IS 'Key prefix. Null for attempts whose task was not recorded.';
COMMENT ON COLUMN prefixes.tasks IS 'Keys submitted.';
COMMENT ON COLUMN prefixes.task_runs IS 'Task attempts.';
COMMENT ON COLUMN prefixes.memory IS 'Attempts that succeeded.';
COMMENT ON COLUMN prefixes.erred IS 'Attempts that failed for good.';
COMMENT ON COLUMN prefixes.retried IS 'Attempts that failed and were retried.';
COMMENT ON COLUMN prefixes.lost IS 'Attempts lost with their worker.';
COMMENT ON COLUMN prefixes.rescheduled IS 'Attempts that raised Reschedule.';
COMMENT ON COLUMN prefixes.cancelled IS 'Attempts cancelled because the result was no longer needed.';
COMMENT ON COLUMN prefixes.unfinished IS 'Attempts without an end in the trace.';
COMMENT ON COLUMN prefixes.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN prefixes.mean_compute_seconds IS 'Mean compute time of an attempt.';
COMMENT ON COLUMN prefixes.median_compute_seconds IS 'Median compute time of an attempt.';
COMMENT ON COLUMN prefixes.max_compute_seconds IS 'Maximum compute time of an attempt.';
COMMENT ON COLUMN prefixes.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN prefixes.deserialize_seconds IS 'Time to deserialize the tasks.';
COMMENT ON COLUMN prefixes.disk_seconds IS 'Time to spill to disk and read back.';
COMMENT ON COLUMN prefixes.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN prefixes.roles IS 'Roles of these tasks in a coffea run, as in task_roles. Null if there are none.';
COMMENT ON COLUMN prefixes.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW task_phases AS
SELECT
    run.key,
    run.prefix,
    run.attempt,
    run.worker,
    run.thread,
    run.outcome,
    phase.action,
    phase.start_t,
    phase.stop_t,
    _clip_negative(phase.stop_t - phase.start_t) AS seconds,
    phase.source,
    run.trace_id
FROM _task_runs AS run
INNER JOIN _task_phases AS phase USING (end_seq)
ORDER BY run.trace_id, run.seq, phase.start_t;

COMMENT ON VIEW task_phases IS 'Phases of task attempts, such as transfer and compute. One row per attempt and phase, as timed by the worker. Phases of attempts whose worker was lost are not recorded.';
COMMENT ON COLUMN task_phases.key IS 'Task key.';
COMMENT ON COLUMN task_phases.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN task_phases.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN task_phases.worker IS 'Worker address.';
COMMENT ON COLUMN task_phases.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN task_phases.outcome IS 'Outcome of the attempt, as in task_runs.';
COMMENT ON COLUMN task_phases.action IS 'compute, transfer (fetching a dependency from another worker), deserialize, disk-read or disk-write.';
COMMENT ON COLUMN task_phases.start_t IS 'Start, in seconds since the epoch.';
COMMENT ON COLUMN task_phases.stop_t IS 'End, in seconds since the epoch.';
COMMENT ON COLUMN task_phases.seconds IS 'Duration. Transfers can overlap each other.';
COMMENT ON COLUMN task_phases.source IS 'Address of the worker that a transfer fetched from. Null for other phases.';
COMMENT ON COLUMN task_phases.trace_id IS 'ID of the trace.';

-- Worker processes. Addresses can be reused, so each process owns its address in [from_t, next
-- from_t), and runs and samples are matched with ASOF joins. The first process of an address
-- owns it from the beginning. An address that ran tasks or chunks or was sampled, but was never
-- recorded as added, gets a process without further facts.
CREATE OR REPLACE TABLE _workers AS
WITH added AS (
    SELECT rowid AS seq, *
    FROM raw.worker_added
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, worker, coalesce(server_id, rowid::VARCHAR) ORDER BY rowid
    ) = 1
),
removed AS (
    -- The removal of a process is the first one that names it, or else the first one of its
    -- address after it joined.
    SELECT trace_id, seq, t, stimulus_id
    FROM (
        SELECT added.trace_id, added.seq, removal.rowid AS removal, removal.t, removal.stimulus_id
        FROM raw.worker_removed AS removal
        INNER JOIN added USING (trace_id, server_id)
        UNION ALL
        SELECT added.trace_id, added.seq, removal.rowid, removal.t, removal.stimulus_id
        FROM raw.worker_removed AS removal
        -- If one process replaced another at that very time, the first one left.
        ASOF INNER JOIN (SELECT DISTINCT ON (trace_id, worker, t) * FROM added ORDER BY seq) AS added
            ON removal.trace_id = added.trace_id
            AND removal.worker = added.worker
            AND removal.t >= added.t
        WHERE removal.server_id IS NULL OR added.server_id IS NULL
    )
    QUALIFY row_number() OVER (PARTITION BY trace_id, seq ORDER BY removal) = 1
),
unknown AS (
    SELECT trace_id, worker FROM _task_runs WHERE worker IS NOT NULL
    UNION
    SELECT trace_id, worker FROM raw.worker_sample WHERE worker IS NOT NULL
    UNION
    SELECT trace_id, worker FROM raw.chunk WHERE worker IS NOT NULL
    EXCEPT
    SELECT trace_id, worker FROM added
),
-- Without a cluster, the threads of a process are unknown until they process chunks. Threads of
-- one pool can follow those of another, and clocks can make chunks of one thread overlap.
chunk_threads AS (
    SELECT
        trace_id,
        worker,
        least(nullif(count(DISTINCT thread), 0), max(chunks))::BIGINT AS nthreads
    FROM (
        SELECT *, sum(change) OVER (PARTITION BY trace_id, worker ORDER BY t, change) AS chunks
        FROM (
            SELECT
                trace_id, worker, thread,
                unnest([start_t, stop_t]) AS t, unnest([1, -1]) AS change
            FROM raw.chunk
            WHERE worker LIKE 'pid:%'
        )
    )
    GROUP BY trace_id, worker
)
SELECT
    row_number() OVER (ORDER BY trace_id, seq NULLS FIRST, worker) AS process,
    workers.* REPLACE (greatest(workers.nthreads, chunk_threads.nthreads) AS nthreads)
FROM (
    SELECT
        added.seq,
        added.worker,
        added.name,
        added.host,
        added.nthreads,
        nullif(added.memory_limit, 0) AS memory_limit_bytes,
        added.t AS added_t,
        removed.t AS removed_t,
        removed.stimulus_id AS removal_stimulus_id,
        added.server_id,
        CASE
            WHEN row_number() OVER (PARTITION BY added.trace_id, worker ORDER BY added.seq) = 1
                THEN '-infinity'::DOUBLE
            ELSE added.t
        END AS from_t,
        added.trace_id
    FROM added
    LEFT JOIN removed USING (trace_id, seq)
    UNION ALL BY NAME
    SELECT worker, '-infinity'::DOUBLE AS from_t, trace_id FROM unknown
) AS workers
LEFT JOIN chunk_threads USING (trace_id, worker);

-- Records: chunk
-- Files whose number of entries coffea could not read, without a failed task: their events are
-- missing. With skipbadfiles the task succeeds. Without a cluster there is no task, and the file
-- was skipped if chunks of others were processed later.
CREATE OR REPLACE TABLE _unread_files AS
WITH chunks AS (
    SELECT trace_id, max(chunk.rowid) AS last_record
    FROM raw.chunk AS chunk
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk') AS keys USING (trace_id, key)
    GROUP BY trace_id
)
SELECT
    coalesce(run.end_t, chunk.stop_t) AS t,
    chunk.key,
    chunk.dataset,
    chunk.filename,
    chunk.treename,
    chunk.worker,
    chunk.exception,
    run.attempt,
    run.prefix,
    run.seq IS NOT NULL OR coalesce(chunk.rowid < chunks.last_record, false) AS is_skipped,
    chunk.trace_id
FROM raw.chunk AS chunk
LEFT JOIN _task_runs AS run
    ON chunk.trace_id = run.trace_id AND chunk.key = run.key AND chunk.run_id = run.run_id
LEFT JOIN chunks ON chunk.trace_id = chunks.trace_id
WHERE chunk.measured.until = 'metadata'
    AND chunk.exception IS NOT NULL
    AND coalesce(run.outcome = 'memory', true)
-- The last attempt: without a cluster, coffea itself retries.
QUALIFY row_number() OVER (PARTITION BY chunk.trace_id, chunk.key ORDER BY chunk.rowid DESC) = 1;

CREATE OR REPLACE VIEW task_roles AS
WITH submitted AS (
    SELECT
        trace_id,
        roles.role,
        string_agg(DISTINCT task.prefix, ', ' ORDER BY task.prefix)
            FILTER (roles.role IS NOT NULL) AS prefixes,
        count(*) AS tasks
    FROM _tasks AS task
    LEFT JOIN _coffea_roles AS roles USING (trace_id, key)
    GROUP BY trace_id, roles.role
),
done AS (
    SELECT
        trace_id,
        role,
        count(*) AS task_runs,
        count(*) FILTER (_is_failed(outcome)) AS failed_attempts,
        sum(compute_seconds) AS compute_seconds,
        avg(whole_seconds) AS mean_compute_seconds,
        max(whole_seconds) AS max_compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(deserialize_seconds) AS deserialize_seconds,
        sum(disk_seconds) AS disk_seconds,
        try_cast(sum(nbytes) AS BIGINT) AS output_bytes,
        min(processing_t) AS first_t,
        max(end_t) AS last_t
    FROM _task_runs
    GROUP BY trace_id, role
)
SELECT
    coalesce(submitted.role, done.role) AS role,
    submitted.prefixes,
    coalesce(submitted.tasks, 0) AS tasks,
    coalesce(done.task_runs, 0) AS task_runs,
    coalesce(done.failed_attempts, 0) AS failed_attempts,
    done.compute_seconds,
    done.compute_seconds / nullif(
        sum(done.compute_seconds) OVER (PARTITION BY coalesce(submitted.trace_id, done.trace_id)),
        0
    ) AS compute_share,
    done.mean_compute_seconds,
    done.max_compute_seconds,
    done.transfer_seconds,
    done.deserialize_seconds,
    done.disk_seconds,
    done.output_bytes,
    done.first_t,
    done.last_t,
    coalesce(submitted.trace_id, done.trace_id) AS trace_id
FROM submitted
FULL JOIN done
    ON submitted.trace_id = done.trace_id AND submitted.role IS NOT DISTINCT FROM done.role
ORDER BY trace_id, compute_seconds DESC NULLS LAST, role;

COMMENT ON VIEW task_roles IS 'Totals by role in a coffea run, such as chunk or merge. One row per role, highest compute time first.';
COMMENT ON COLUMN task_roles.role IS 'chunk, merge (of chunk results), file metadata (reading the number of entries of files, and merging the answers) or processor broadcast. Null for all other tasks. Derived from the graph: tasks of coffea''s prefix reduce that depend on chunks or files merge them.';
COMMENT ON COLUMN task_roles.prefixes IS 'Key prefixes of these tasks. Null for other tasks.';
COMMENT ON COLUMN task_roles.tasks IS 'Keys submitted.';
COMMENT ON COLUMN task_roles.task_runs IS 'Task attempts.';
COMMENT ON COLUMN task_roles.failed_attempts IS 'Attempts that erred, were retried, or were lost with their worker.';
COMMENT ON COLUMN task_roles.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN task_roles.compute_share IS 'Share of the compute time of all task attempts.';
COMMENT ON COLUMN task_roles.mean_compute_seconds IS 'Mean compute time of an attempt.';
COMMENT ON COLUMN task_roles.max_compute_seconds IS 'Maximum compute time of an attempt.';
COMMENT ON COLUMN task_roles.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN task_roles.deserialize_seconds IS 'Time to deserialize the tasks.';
COMMENT ON COLUMN task_roles.disk_seconds IS 'Time to spill to disk and read back.';
COMMENT ON COLUMN task_roles.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN task_roles.first_t IS 'First dispatch to a worker, in seconds since the epoch.';
COMMENT ON COLUMN task_roles.last_t IS 'Last end of an attempt, in seconds since the epoch.';
COMMENT ON COLUMN task_roles.trace_id IS 'ID of the trace.';

-- Tasks and their metrics belong to one span. Totals of a span add up all spans below it, each
-- once. In each step, a node receives what the nodes at the other end of their doubled pointers
-- have added up so far.
CREATE OR REPLACE VIEW _span_sums AS
WITH RECURSIVE parts AS (
    SELECT
        trace_id,
        span_id,
        count(*) AS tasks,
        count(submitted_span) AS other_span_tasks,
        min(t) AS submitted_t
    FROM _tasks
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT
        trace_id,
        span_id,
        count(*) AS task_runs,
        count(*) FILTER (_is_failed(outcome)) AS failed_attempts,
        sum(compute_seconds) AS compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(nbytes) AS output_bytes,
        min(processing_t) AS first_t,
        max(end_t) AS last_t,
        CASE
            WHEN bool_or(end_t IS NULL) THEN max(recording.stop_t)
            ELSE max(coalesce(compute_stop_t, end_t))
        END AS active_until_t
    FROM _task_runs
    INNER JOIN _trace_range AS recording USING (trace_id)
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT
        trace_id,
        span_id,
        sum(seconds) AS metric_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(noncpu_seconds) AS noncpu_seconds
    FROM activities
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT trace_id, span_id, sum(delta) AS execute_seconds
    FROM raw.fine_metric
    WHERE context = 'execute' AND unit = 'seconds'
    GROUP BY trace_id, span_id
    UNION ALL BY NAME
    SELECT trace_id, span_id FROM spans
    UNION ALL BY NAME
    SELECT trace_id, span_id FROM _span_nodes
),
own AS (
    SELECT
        trace_id,
        span_id,
        sum(COLUMNS(* EXCLUDE (trace_id, span_id, submitted_t, first_t, last_t, active_until_t))),
        min(COLUMNS(['submitted_t', 'first_t'])),
        max(COLUMNS(['last_t', 'active_until_t']))
    FROM parts
    GROUP BY trace_id, span_id
),
-- Work outside of spans is a node of its own.
placed AS MATERIALIZED (
    SELECT own.*, coalesce(node, -row_number() OVER ()) AS node, above
    FROM own
    LEFT JOIN _span_nodes USING (trace_id, span_id)
),
totals AS (
    SELECT
        0 AS step,
        node,
        max(above) AS above,
        count(*)::HUGEINT AS spans,
        sum(COLUMNS(placed.* EXCLUDE (
            trace_id, span_id, node, above, submitted_t, first_t, last_t, active_until_t
        ))),
        min(COLUMNS(['submitted_t', 'first_t'])),
        max(COLUMNS(['last_t', 'active_until_t']))
    FROM placed
    GROUP BY node
    UNION ALL
    SELECT
        step + 1,
        node,
        max(above),
        sum(COLUMNS(* EXCLUDE (
            step, node, above, submitted_t, first_t, last_t, active_until_t
        ))),
        min(COLUMNS(['submitted_t', 'first_t'])),
        max(COLUMNS(['last_t', 'active_until_t']))
    FROM (
        SELECT totals.* REPLACE (higher.above AS above)
        FROM totals
        LEFT JOIN totals AS higher ON totals.above = higher.node
        UNION ALL
        SELECT * REPLACE (above AS node, NULL AS above) FROM totals WHERE above IS NOT NULL
    )
    WHERE EXISTS (FROM totals WHERE above IS NOT NULL)
    GROUP BY step, node
)
SELECT placed.trace_id, placed.span_id, placed AS own, totals
FROM placed
INNER JOIN totals USING (node)
WHERE totals.step = (SELECT max(step) FROM totals);

CREATE OR REPLACE VIEW task_runs AS
SELECT
    key,
    prefix,
    attempt,
    worker,
    thread,
    outcome,
    processing_t,
    compute_start_t,
    compute_stop_t,
    compute_seconds,
    transfer_seconds,
    deserialize_seconds,
    disk_seconds,
    queued_seconds,
    nbytes,
    typename,
    span_id,
    exception,
    traceback,
    run_id,
    end_t,
    role,
    _is_kept(outcome, discarded.seq) AS kept,
    files.filename,
    execute_start_t,
    stolen_from,
    trace_id
FROM _task_runs AS run
LEFT JOIN _discarded_results AS discarded USING (seq)
LEFT JOIN _task_files AS files USING (trace_id, key)
ORDER BY trace_id, seq;

COMMENT ON VIEW task_runs IS 'Task attempts, with outcome and timing. One row per dispatch of a key to a worker, and per key that was processing when recording began. An attempt ends with the next transition of its key from processing; if the key becomes waiting or processing before that, the end was not recorded. A task that was processing when recording began is one attempt with the transition to processing of the same run id, or, since work stealing changes the run id and it can be null, with the last one before the record of the task.';
COMMENT ON COLUMN task_runs.key IS 'Task key.';
COMMENT ON COLUMN task_runs.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN task_runs.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN task_runs.worker IS 'Address of the worker that ran the attempt, or was assigned it if it never ended.';
COMMENT ON COLUMN task_runs.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN task_runs.outcome IS 'memory (success), erred (failed for good), retried (failed, then retried), lost (with its worker), rescheduled (raised Reschedule), cancelled (no longer needed) or unfinished (no end in the trace).';
COMMENT ON COLUMN task_runs.processing_t IS 'Dispatch to the worker, in seconds since the epoch. Null if before the recording.';
COMMENT ON COLUMN task_runs.compute_start_t IS 'Start of the computation, in seconds since the epoch.';
COMMENT ON COLUMN task_runs.compute_stop_t IS 'End of the computation, in seconds since the epoch.';
COMMENT ON COLUMN task_runs.compute_seconds IS 'Compute time within the recording. Null if the worker reported no times.';
COMMENT ON COLUMN task_runs.transfer_seconds IS 'Time to fetch dependencies from other workers. Transfers overlap, so it can exceed the wall time.';
COMMENT ON COLUMN task_runs.deserialize_seconds IS 'Time to deserialize the task.';
COMMENT ON COLUMN task_runs.disk_seconds IS 'Time to spill to disk and to read spilled results back.';
COMMENT ON COLUMN task_runs.queued_seconds IS 'Time on the scheduler before dispatch, from the latest transition to waiting: waiting for dependencies, for a free thread and for a worker.';
COMMENT ON COLUMN task_runs.nbytes IS 'Size of the result, measured by Dask''s sizeof.';
COMMENT ON COLUMN task_runs.typename IS 'Type of the result.';
COMMENT ON COLUMN task_runs.span_id IS 'Span of the task, as of its last submission before processing_t.';
COMMENT ON COLUMN task_runs.exception IS 'Exception text.';
COMMENT ON COLUMN task_runs.traceback IS 'Traceback text.';
COMMENT ON COLUMN task_runs.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN task_runs.end_t IS 'End recorded by the scheduler, in seconds since the epoch. Null if unfinished.';
COMMENT ON COLUMN task_runs.role IS 'Role in a coffea run, as in task_roles: chunk, merge, file metadata or processor broadcast. Null for all other tasks.';
COMMENT ON COLUMN task_runs.kept IS 'True if the attempt computed a result that was kept: the last one of its key, or one that a dependent used before it was lost. False for a result that was lost with its worker and computed again, and for all attempts without a result.';
COMMENT ON COLUMN task_runs.filename IS 'File that a coffea task reads: of a chunk, or for its number of entries. Null for all other tasks, and for those that read several files.';
COMMENT ON COLUMN task_runs.execute_start_t IS 'Time at which the worker began to execute an attempt that was lost with it, cancelled or rescheduled, in seconds since the epoch. Null if the attempt had not begun by the worker''s last heartbeat, for other outcomes, of attempts lost before trace format 2.4, and of others before 2.6.';
COMMENT ON COLUMN task_runs.stolen_from IS 'Address of the worker that the task was sent to at processing_t, if work stealing moved it to another one. Null for all other attempts.';
COMMENT ON COLUMN task_runs.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW task_groups AS
WITH submitted AS (
    SELECT
        trace_id,
        "group" AS task_group,
        any_value(prefix) AS prefix,
        count(*) AS tasks,
        min(t) AS submitted_t
    FROM _tasks
    GROUP BY trace_id, task_group
),
done AS (
    SELECT
        run.trace_id,
        -- Group of the submission that the attempt belongs to.
        task."group" AS task_group,
        any_value(run.prefix) AS prefix,
        count(*) AS task_runs,
        count(*) FILTER (outcome = 'memory') AS memory,
        count(*) FILTER (outcome = 'erred') AS erred,
        count(*) FILTER (outcome = 'retried') AS retried,
        count(*) FILTER (outcome = 'lost') AS lost,
        count(*) FILTER (outcome = 'rescheduled') AS rescheduled,
        count(*) FILTER (outcome = 'cancelled') AS cancelled,
        count(*) FILTER (outcome = 'unfinished') AS unfinished,
        sum(compute_seconds) AS compute_seconds,
        avg(whole_seconds) AS mean_compute_seconds,
        max(whole_seconds) AS max_compute_seconds,
        sum(transfer_seconds) AS transfer_seconds,
        sum(deserialize_seconds) AS deserialize_seconds,
        sum(disk_seconds) AS disk_seconds,
        try_cast(sum(nbytes) AS BIGINT) AS output_bytes,
        min(processing_t) AS first_t,
        max(end_t) AS last_t
    FROM _task_runs AS run
    LEFT JOIN raw.task AS task ON run.submission = task.rowid
    GROUP BY run.trace_id, task."group"
)
SELECT
    coalesce(submitted.task_group, done.task_group) AS task_group,
    coalesce(submitted.prefix, done.prefix) AS prefix,
    coalesce(tasks, 0) AS tasks,
    coalesce(task_runs, 0) AS task_runs,
    coalesce(memory, 0) AS memory,
    coalesce(erred, 0) AS erred,
    coalesce(retried, 0) AS retried,
    coalesce(lost, 0) AS lost,
    coalesce(rescheduled, 0) AS rescheduled,
    coalesce(cancelled, 0) AS cancelled,
    coalesce(unfinished, 0) AS unfinished,
    compute_seconds,
    mean_compute_seconds,
    median_compute_seconds,
    max_compute_seconds,
    transfer_seconds,
    deserialize_seconds,
    disk_seconds,
    output_bytes,
    coalesce(workers, 0) AS workers,
    submitted_t,
    first_t,
    last_t,
    last_t - first_t AS wall_seconds,
    coalesce(submitted.trace_id, done.trace_id) AS trace_id
FROM submitted
FULL JOIN done
    ON submitted.trace_id = done.trace_id
    AND submitted.task_group IS NOT DISTINCT FROM done.task_group
LEFT JOIN _task_group_medians AS middle
    ON done.trace_id = middle.trace_id AND done.task_group IS NOT DISTINCT FROM middle.task_group
LEFT JOIN _task_group_workers AS used
    ON done.trace_id = used.trace_id AND done.task_group IS NOT DISTINCT FROM used.task_group
ORDER BY trace_id, compute_seconds DESC NULLS LAST, task_group;

COMMENT ON VIEW task_groups IS 'Totals by task group (graph layer). One row per group, highest compute time first.';
COMMENT ON COLUMN task_groups.task_group IS 'Task group, as Dask names it. Null for tasks without a group and attempts whose task was not recorded. A key submitted in several groups counts as a task of the first one; its attempts count in the group at that time.';
COMMENT ON COLUMN task_groups.prefix IS 'Key prefix of the tasks.';
COMMENT ON COLUMN task_groups.tasks IS 'Keys submitted.';
COMMENT ON COLUMN task_groups.task_runs IS 'Task attempts.';
COMMENT ON COLUMN task_groups.memory IS 'Attempts that succeeded.';
COMMENT ON COLUMN task_groups.erred IS 'Attempts that failed for good.';
COMMENT ON COLUMN task_groups.retried IS 'Attempts that failed and were retried.';
COMMENT ON COLUMN task_groups.lost IS 'Attempts lost with their worker.';
COMMENT ON COLUMN task_groups.rescheduled IS 'Attempts that raised Reschedule.';
COMMENT ON COLUMN task_groups.cancelled IS 'Attempts cancelled because the result was no longer needed.';
COMMENT ON COLUMN task_groups.unfinished IS 'Attempts without an end in the trace.';
COMMENT ON COLUMN task_groups.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN task_groups.mean_compute_seconds IS 'Mean compute time of an attempt.';
COMMENT ON COLUMN task_groups.median_compute_seconds IS 'Median compute time of an attempt.';
COMMENT ON COLUMN task_groups.max_compute_seconds IS 'Maximum compute time of an attempt.';
COMMENT ON COLUMN task_groups.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN task_groups.deserialize_seconds IS 'Time to deserialize the tasks.';
COMMENT ON COLUMN task_groups.disk_seconds IS 'Time to spill to disk and read back.';
COMMENT ON COLUMN task_groups.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN task_groups.workers IS 'Number of workers that ran attempts or were assigned them.';
COMMENT ON COLUMN task_groups.submitted_t IS 'First submission of a task, in seconds since the epoch.';
COMMENT ON COLUMN task_groups.first_t IS 'First dispatch of an attempt to a worker, in seconds since the epoch.';
COMMENT ON COLUMN task_groups.last_t IS 'Last end of an attempt as recorded by the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN task_groups.wall_seconds IS 'last_t - first_t. Groups run concurrently, so this does not add up.';
COMMENT ON COLUMN task_groups.trace_id IS 'ID of the trace.';

-- Times in which the records of an address belong to a process. A join with them is faster than
-- an ASOF join of many attempts.
CREATE OR REPLACE VIEW _process_addresses AS
SELECT
    trace_id,
    worker,
    process,
    from_t,
    -- coalesce instead of the default of lead(), which is lost in a database written by
    -- DuckDB 1.5.
    coalesce(lead(from_t) OVER (PARTITION BY trace_id, worker ORDER BY from_t), 'infinity') AS until_t
FROM _workers;

-- Lifetime of each process within the recording, and its number of threads.
CREATE OR REPLACE VIEW _worker_presence AS
WITH sampled_threads AS (
    SELECT trace_id, worker, max(nthreads) AS nthreads
    FROM raw.worker_sample
    GROUP BY trace_id, worker
)
SELECT
    workers.process,
    coalesce(workers.nthreads, sampled_threads.nthreads) AS nthreads,
    coalesce(workers.added_t, recording.start_t) AS from_t,
    coalesce(workers.removed_t, recording.stop_t) AS to_t,
    workers.trace_id
FROM _workers AS workers
INNER JOIN _trace_range AS recording USING (trace_id)
LEFT JOIN sampled_threads USING (trace_id, worker);

-- Workers that left, with the reason, and whether Dask expected it. The event `remove-worker`
-- decides; without it, a broken connection counts as unexpected. Since distributed 2024.4.2, a
-- nanny that kills its worker for memory logs an event. A worker that closes logs the reason: its
-- cluster or a user can have asked for it (is_requested), which Dask does not expect if the worker was not
-- retired before. Workers are not lost (is_lost) if nothing was on them and if they were asked to close, or
-- were not needed any more: a batch system also stops those.
CREATE OR REPLACE TABLE _worker_removals AS
WITH removal_events AS (
    SELECT
        trace_id,
        coalesce(worker, payload ->> '$.worker') AS worker,
        payload ->> '$.stimulus_id' AS stimulus_id,
        (payload ->> '$.expected') = 'true' AS expected,
        json_array_length(payload, '$."processing-tasks"') AS processing_tasks,
        json_array_length(payload, '$."lost-computed-tasks"') AS lost_results,
        json_array_length(payload, '$."lost-scattered-tasks"') AS lost_data
    FROM raw.event
    -- Parentheses are needed: in DuckDB 1, = binds more tightly.
    WHERE topic = 'all' AND (payload ->> '$.action') = 'remove-worker'
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, coalesce(worker, payload ->> '$.worker'), payload ->> '$.stimulus_id'
        ORDER BY rowid
    ) = 1
),
worker_events AS (
    SELECT worker.process, worker.memory_limit_bytes, event.topic, event.payload
    FROM raw.event AS event
    ASOF INNER JOIN _workers AS worker
        ON event.trace_id = worker.trace_id
        -- The topic of events that a worker logs about itself is its address.
        AND coalesce(event.worker, event.payload ->> '$.worker', event.topic) = worker.worker
        AND event.t >= worker.from_t
    WHERE event.topic = 'worker-restart-memory'
        OR (event.payload ->> '$.action') = 'closing-worker'
),
kills AS (
    SELECT
        process,
        memory_bytes,
        CASE WHEN coalesce(limit_bytes, memory_bytes) >= 2 ** 30 THEN 'GiB' ELSE 'MiB' END AS unit,
        CASE unit WHEN 'GiB' THEN 2 ** 30 ELSE 2 ** 20 END AS unit_bytes,
        CASE unit WHEN 'GiB' THEN '%.1f' ELSE '%.0f' END AS number,
        concat_ws(
            ' ',
            'killed by its nanny at',
            printf(number, memory_bytes / unit_bytes),
            'of ' || printf(number, limit_bytes / unit_bytes),
            unit
        ) AS kill
    FROM (
        SELECT
            process,
            any_value(memory_limit_bytes) AS limit_bytes,
            max(try_cast(payload ->> '$.rss' AS DOUBLE)) AS memory_bytes
        FROM worker_events
        WHERE topic = 'worker-restart-memory'
        GROUP BY process
    )
),
closings AS (
    SELECT
        process,
        -- Such as client-restart-1700000000.5, signal-15 or nanny-close.
        any_value(regexp_replace(payload ->> '$.reason', '-[0-9]+[.][0-9]+$', '')) AS closing
    FROM worker_events
    WHERE topic <> 'worker-restart-memory'
    GROUP BY process
)
SELECT
    *,
    NOT expected AND NOT coalesce(
        processing_tasks + lost_results + lost_data = 0
        AND kill IS NULL
        AND (is_requested OR removed_t > last_t),
        false
    ) AS is_lost
FROM (
    SELECT
        workers.process,
        workers.worker,
        workers.removed_t,
        workers.removal_stimulus_id AS stimulus_id,
        kills.kill,
        try_cast(kills.memory_bytes AS BIGINT) AS kill_memory_bytes,
        closings.closing,
        coalesce(
            kills.kill,
            closings.closing,
            regexp_replace(workers.removal_stimulus_id, '-[0-9.]+$', '')
        ) AS reason,
        coalesce(
            removal_events.expected,
            NOT starts_with(workers.removal_stimulus_id, 'handle-worker-cleanup'),
            true
        ) AS expected,
        removal_events.processing_tasks,
        removal_events.lost_results,
        removal_events.lost_data,
        coalesce(
            closings.closing IN ('nanny-close', 'worker-close', 'adaptive-deleted', 'worker-lifetime-reached'),
            false
        ) AS is_requested,
        last.last_t,
        workers.trace_id
    FROM _workers AS workers
    LEFT JOIN removal_events
        ON workers.trace_id = removal_events.trace_id
        AND workers.worker = removal_events.worker
        AND workers.removal_stimulus_id = removal_events.stimulus_id
    LEFT JOIN kills USING (process)
    LEFT JOIN closings USING (process)
    LEFT JOIN (
        SELECT trace_id, max(coalesce(end_t, 'infinity')) AS last_t FROM _task_runs GROUP BY trace_id
    ) AS last ON workers.trace_id = last.trace_id
    WHERE workers.removed_t IS NOT NULL
);

-- Statuses that workers reported, each until the next one or the departure of the worker.
CREATE OR REPLACE VIEW _worker_statuses AS
WITH changes AS (
    SELECT
        event.rowid AS seq,
        event.trace_id,
        event.worker,
        event.t,
        event.payload ->> '$.status' AS status
    FROM raw.event AS event
    -- Parentheses are needed: in DuckDB 1, = binds more tightly.
    WHERE event.topic = event.worker AND (event.payload ->> '$.action') = 'worker-status-change'
),
followed AS (
    SELECT
        *,
        lead(t) OVER (PARTITION BY trace_id, worker ORDER BY seq) AS next_t
    FROM changes
),
departures AS (
    SELECT trace_id, worker, removed_t
    FROM _workers
    WHERE removed_t IS NOT NULL
)
SELECT
    followed.seq,
    followed.worker,
    followed.status,
    followed.t AS start_t,
    -- least() ignores null.
    least(followed.next_t, departure.removed_t) AS stop_t,
    followed.trace_id
FROM followed
ASOF LEFT JOIN departures AS departure
    ON followed.trace_id = departure.trace_id
    AND followed.worker = departure.worker
    AND followed.t <= departure.removed_t;

-- Records: chunk
-- Chunk attempts, merged from three sources: task attempts on the scheduler (_task_runs), chunk
-- records without run_id (the identity of a chunk) and chunk records with run_id (the
-- measurement of an attempt, _chunk_measurements). Without a cluster only the last ones exist.
CREATE OR REPLACE TABLE _chunks AS
WITH identity AS (
    SELECT
        chunk.rowid AS record,
        trace_id,
        key,
        chunk.dataset,
        chunk.filename,
        chunk.treename,
        chunk.entry_start,
        chunk.entry_stop
    FROM raw.chunk AS chunk
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk') AS chunks USING (trace_id, key)
    WHERE chunk.entry_start IS NOT NULL
    -- If a chunk has no identity record, any of its measurements identifies it.
    QUALIFY bool_and(chunk.run_id IS NOT NULL) OVER (PARTITION BY trace_id, key)
            IS NOT DISTINCT FROM (chunk.run_id IS NOT NULL)
        AND row_number() OVER (
            PARTITION BY trace_id, key, dataset, filename, treename, entry_start, entry_stop
            ORDER BY chunk.run_id IS NOT NULL, record
        ) = 1
),
-- Missing values match everything.
recognised AS (
    SELECT measured.measured, min(identity.record) AS record
    FROM _chunk_measurements AS measured
    INNER JOIN identity
        ON measured.trace_id = identity.trace_id
        AND measured.key = identity.key
        AND coalesce(measured.dataset = identity.dataset, true)
        AND coalesce(measured.filename = identity.filename, true)
        AND coalesce(measured.treename = identity.treename, true)
        AND coalesce(measured.entry_start = identity.entry_start, true)
        AND coalesce(measured.entry_stop = identity.entry_stop, true)
    GROUP BY measured.measured
),
run AS (
    SELECT run.*
    FROM _task_runs AS run
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk') AS chunks USING (trace_id, key)
),
-- Traces of a Dask whose run ids could not be read (loss says so). A measurement then belongs to
-- the last attempt at its key that began before it ended.
without_run_ids AS (
    SELECT trace_id
    FROM _task_runs
    GROUP BY trace_id
    HAVING count(run_id) = 0
    UNION
    SELECT trace_id FROM _chunk_measurements WHERE run_id < 0
),
with_measurement AS (
    SELECT run.seq, measured.measured, recognised.record
    FROM run
    INNER JOIN _chunk_measurements AS measured USING (trace_id, key, run_id)
    LEFT JOIN recognised USING (measured)
    -- If records are out of order, two attempts can appear to have the same run_id; the
    -- measurement counts once.
    QUALIFY row_number() OVER (PARTITION BY measured.measured ORDER BY run.seq) = 1
    UNION ALL
    SELECT run.seq, measured.measured, recognised.record
    FROM run
    SEMI JOIN without_run_ids USING (trace_id)
    INNER JOIN _chunk_measurements AS measured
        ON run.trace_id = measured.trace_id
        AND run.key = measured.key
        AND run.run_id IS DISTINCT FROM measured.run_id
        AND coalesce(run.processing_t, '-infinity'::DOUBLE) <= measured.stop_t
    LEFT JOIN recognised USING (measured)
    QUALIFY row_number() OVER (PARTITION BY measured.measured ORDER BY run.seq DESC) = 1
),
-- Without a cluster each measurement is an attempt, followed by the next one at its key. If the
-- task was recorded but this attempt is missing, its number is unknown.
without_task AS (
    SELECT
        measured.measured,
        CASE WHEN ran.key IS NULL THEN dense_rank() OVER in_order END AS attempt,
        min(measured.start_t) OVER (PARTITION BY trace_id, key, measured.run_id) < max(
            measured.start_t
        ) OVER (PARTITION BY trace_id, key) AS is_followed
    FROM (
        SELECT *, min(start_t) OVER (PARTITION BY trace_id, key, run_id) AS begin_t
        FROM _chunk_measurements
        ANTI JOIN with_measurement USING (measured)
    ) AS measured
    LEFT JOIN (SELECT DISTINCT trace_id, key FROM run) AS ran USING (trace_id, key)
    WINDOW in_order AS (PARTITION BY trace_id, key ORDER BY begin_t, measured.run_id)
),
unmeasured AS (
    SELECT run.seq, identity.record
    FROM run
    INNER JOIN identity USING (trace_id, key)
    ANTI JOIN with_measurement USING (seq)
    UNION ALL
    -- Chunks that a task of several chunks did not reach.
    SELECT run.seq, identity.record
    FROM run
    SEMI JOIN with_measurement USING (seq)
    INNER JOIN identity USING (trace_id, key)
    INNER JOIN (
        SELECT trace_id, key FROM identity GROUP BY trace_id, key HAVING count(*) > 1
    ) AS several USING (trace_id, key)
    ANTI JOIN with_measurement AS known
        ON run.seq = known.seq AND identity.record = known.record
),
attempt_chunks AS (
    SELECT seq, measured, record FROM with_measurement
    UNION ALL
    SELECT seq, NULL, record FROM unmeasured
    UNION ALL
    SELECT NULL, measured, record FROM without_task LEFT JOIN recognised USING (measured)
),
numbered AS (
    SELECT
        *,
        count(*) OVER (PARTITION BY seq) AS chunks_in_task,
        row_number() OVER (PARTITION BY seq ORDER BY measured NULLS LAST, record) AS part
    FROM attempt_chunks
),
attempts AS (
    SELECT
        coalesce(run.trace_id, measured.trace_id) AS trace_id,
        coalesce(run.key, measured.key) AS key,
        run.seq,
        run.seq IS NOT NULL AS has_task,
        run.submission,
        coalesce(run.run_id, measured.run_id) AS run_id,
        coalesce(run.attempt, without_task.attempt) AS attempt,
        -- A stolen task ran on another worker than the one it was sent to.
        coalesce(measured.worker, run.worker) AS worker,
        coalesce(run.thread, measured.thread) AS thread,
        CASE
            WHEN run.outcome = 'memory' AND measured.exception IS NOT NULL THEN 'skipped'
            WHEN run.seq IS NOT NULL THEN run.outcome
            WHEN measured.exception IS NULL THEN 'memory'
            WHEN without_task.is_followed THEN 'retried'
            ELSE 'erred'
        END AS outcome,
        coalesce(measured.dataset, identity.dataset) AS dataset,
        coalesce(measured.filename, identity.filename) AS filename,
        coalesce(measured.treename, identity.treename) AS treename,
        coalesce(measured.entry_start, identity.entry_start) AS entry_start,
        coalesce(measured.entry_stop, identity.entry_stop) AS entry_stop,
        coalesce(measured.file_uuid, identity_chunk.file_uuid) AS file_uuid,
        numbered.record AS identity_record,
        numbered.measured,
        -- Identifies an attempt without a task, also in a time range.
        CASE WHEN run.seq IS NULL THEN numbered.measured END AS local_id,
        measured.last_record AS measured_record,
        numbered.part,
        CASE WHEN run.seq IS NULL THEN 1 ELSE numbered.chunks_in_task END AS chunks_in_task,
        measured.events AS measured_events,
        measured.from_checkpoint,
        measured.source,
        measured.measured_until,
        measured.seconds AS measured_seconds,
        measured.open_seconds,
        measured.read_seconds,
        measured.decompress_seconds,
        measured.compression,
        measured.process_seconds,
        measured.cpu_seconds,
        measured.bytes_read,
        measured.requests,
        measured.columns,
        measured.columns_read,
        measured.branches_read,
        measured.file_branches,
        measured.file_bytes,
        measured.compressed_bytes,
        measured.uncompressed_bytes,
        measured.packed_bytes,
        measured.unpacked_bytes,
        measured.memory_before_bytes,
        measured.memory_after_bytes,
        measured.memory_peak_bytes,
        CASE
            WHEN run.seq IS NULL THEN measured.nbytes
            -- Integer shares that add up to the total.
            ELSE run.nbytes // numbered.chunks_in_task
                + (numbered.part <= run.nbytes % numbered.chunks_in_task)::BIGINT
        END AS output_bytes,
        coalesce(run.exception, measured.exception) AS exception,
        CASE
            WHEN run.seq IS NOT NULL THEN run.whole_seconds / numbered.chunks_in_task
            WHEN measured.measured_until IS DISTINCT FROM 'read' THEN measured.seconds
        END AS whole_seconds,
        run.queued_seconds,
        run.transfer_seconds / numbered.chunks_in_task AS transfer_seconds,
        CASE WHEN run.seq IS NULL THEN measured.start_t ELSE run.processing_t END AS processing_t,
        CASE WHEN run.seq IS NULL THEN measured.stop_t ELSE run.end_t END AS end_t,
        measured.start_t,
        measured.stop_t
    FROM numbered
    LEFT JOIN run USING (seq)
    LEFT JOIN _chunk_measurements AS measured USING (measured)
    LEFT JOIN without_task USING (measured)
    LEFT JOIN identity USING (record)
    LEFT JOIN raw.chunk AS identity_chunk ON identity_chunk.rowid = numbered.record
),
judged AS (
    SELECT
        * REPLACE (
            -- A dask-awkward task also processes what it has read.
            CASE
                WHEN measured_until = 'read' AND chunks_in_task = 1 AND has_task
                    THEN _clip_negative(whole_seconds - measured_seconds)
                ELSE process_seconds
            END AS process_seconds
        ),
        _clip_negative(measured_seconds - cpu_seconds) AS wait_seconds,
        CASE
            WHEN outcome = 'memory' AND from_checkpoint IS NOT TRUE
                THEN coalesce(measured_events, entry_stop - entry_start)
        END AS events,
        -- A chunk recomputed after its result was lost counts once; a key that was submitted
        -- again is another chunk. Without a cluster results are not lost.
        outcome = 'memory' AND row_number() OVER (
            PARTITION BY trace_id, key, submission, has_task,
                CASE WHEN NOT has_task AND attempt IS NOT NULL THEN measured END,
                outcome, dataset, filename, treename, entry_start, entry_stop
            ORDER BY seq, start_t, part
        ) = 1 AS is_first_result
    FROM attempts
)
SELECT
    judged.*,
    -- A time range can cut it off.
    whole_seconds AS compute_seconds,
    CASE WHEN chunks_in_task = 1 THEN whole_seconds / nullif(events, 0) END AS event_seconds,
    process.process,
    -- The first chunk of a process and those that began beside it also pay for imports and for
    -- the first opening of a file. The next one on the same thread begins within 1 ms.
    coalesce(
        process.process IS NOT NULL
        AND begin_t + 0.001 < first_value(begin_t + whole_seconds) OVER (
            PARTITION BY process.process ORDER BY begin_t, judged.seq, start_t, part
        ),
        false
    ) AS is_warming_up
FROM (
    SELECT *, coalesce(start_t, end_t - whole_seconds) AS begin_t FROM judged
) AS judged
ASOF LEFT JOIN _workers AS process
    ON judged.trace_id = process.trace_id
    AND judged.worker = process.worker
    -- Attempts that began before the recording belong to the first process of the address.
    AND coalesce(judged.processing_t, '-infinity') >= process.from_t;

-- Darshan jobs, matched to worker processes by process id and lifetime. Process ids are unique
-- on a host only. Darshan records the host only in traced segments (DXT), sometimes under
-- another name than Dask's. With several candidates, the one on that host is chosen, if any.
-- The process id comes from the name of the log; without a batch system it is Darshan's job
-- number.
CREATE OR REPLACE VIEW _io_jobs AS
WITH jobs AS (
    SELECT
        * REPLACE (
            coalesce(
                pid,
                CASE
                    WHEN value ->> '$.processes' = '1' THEN try_cast(value ->> '$.job_id' AS BIGINT)
                END
            ) AS pid
        ),
        (
            SELECT any_value(host)
            FROM raw.io_segment AS segment
            WHERE segment.source = job.source AND segment.trace_id = job.trace_id
        ) AS host
    FROM raw.import AS job
    WHERE name = 'darshan'
),
candidates AS (
    SELECT
        jobs.source,
        jobs.trace_id,
        added.worker,
        coalesce(added.host = jobs.host, false) AS same_host
    FROM jobs
    INNER JOIN raw.worker_added AS added USING (trace_id, pid)
    LEFT JOIN _workers AS workers ON workers.trace_id = added.trace_id AND workers.seq = added.rowid
    -- Some versions of Darshan record whole seconds.
    WHERE coalesce(added.t <= jobs.stop_t + 1, true)
        AND coalesce(workers.removed_t >= jobs.start_t - 1, true)
),
matched AS (
    SELECT
        source,
        trace_id,
        count(DISTINCT worker) AS candidate_workers,
        CASE
            WHEN count(DISTINCT worker) = 1 THEN any_value(worker)
            WHEN count(DISTINCT worker) FILTER (same_host) = 1
                THEN any_value(worker) FILTER (same_host)
        END AS worker
    FROM candidates
    GROUP BY source, trace_id
)
SELECT
    jobs.* EXCLUDE (worker),
    matched.worker,
    coalesce(matched.candidate_workers, 0) AS candidate_workers,
    list_filter(
        json_keys(jobs.value -> '$.modules'),
        lambda module: coalesce(
            try_cast(jobs.value -> '$.modules' -> module ->> 'partial' AS BOOLEAN), false
        )
    ) AS partial_modules
FROM jobs
LEFT JOIN matched USING (source, trace_id);

CREATE OR REPLACE VIEW span_totals AS
WITH named AS (
    SELECT *, row_number() OVER (PARTITION BY trace_id ORDER BY t, len(path), span_id) AS place FROM spans
)
SELECT
    sums.span_id,
    named.name,
    named.path,
    named.parent_id,
    coalesce(own.tasks, 0)::BIGINT AS tasks,
    coalesce(own.other_span_tasks, 0)::BIGINT AS other_span_tasks,
    coalesce(own.task_runs, 0)::BIGINT AS task_runs,
    coalesce(own.failed_attempts, 0)::BIGINT AS failed_attempts,
    own.compute_seconds,
    own.transfer_seconds,
    try_cast(own.output_bytes AS BIGINT) AS output_bytes,
    own.metric_seconds,
    own.cpu_seconds,
    own.noncpu_seconds,
    own.first_t,
    own.last_t,
    own.last_t - own.first_t AS wall_seconds,
    (totals.spans - 1)::BIGINT AS descendants,
    coalesce(totals.tasks, 0)::BIGINT AS total_tasks,
    coalesce(totals.other_span_tasks, 0)::BIGINT AS total_other_span_tasks,
    coalesce(totals.task_runs, 0)::BIGINT AS total_task_runs,
    coalesce(totals.failed_attempts, 0)::BIGINT AS total_failed_attempts,
    totals.compute_seconds AS total_compute_seconds,
    totals.transfer_seconds AS total_transfer_seconds,
    try_cast(totals.output_bytes AS BIGINT) AS total_output_bytes,
    totals.metric_seconds AS total_metric_seconds,
    totals.cpu_seconds AS total_cpu_seconds,
    totals.noncpu_seconds AS total_noncpu_seconds,
    totals.first_t AS total_first_t,
    totals.last_t AS total_last_t,
    totals.last_t - totals.first_t AS total_wall_seconds,
    sums.trace_id
FROM _span_sums AS sums
LEFT JOIN named
    ON sums.trace_id = named.trace_id AND sums.span_id = named.span_id
ORDER BY sums.trace_id, named.place NULLS LAST, sums.span_id;

COMMENT ON VIEW span_totals IS 'Totals by Dask span. One row per span, in the order in which they began. Columns without total_ cover the span alone and add up to the whole run; columns with total_ include nested spans. A last row without span_id covers work outside any span, such as transfers in worker metrics.';
COMMENT ON COLUMN span_totals.span_id IS 'ID of the span. Null for work outside any span.';
COMMENT ON COLUMN span_totals.name IS 'Span name. Null if its record is missing.';
COMMENT ON COLUMN span_totals.path IS 'Names from the outermost span to this one.';
COMMENT ON COLUMN span_totals.parent_id IS 'ID of the enclosing span.';
COMMENT ON COLUMN span_totals.tasks IS 'Keys that Dask files under the span.';
COMMENT ON COLUMN span_totals.other_span_tasks IS 'Those of them that were submitted in another span: tasks.is_other_span.';
COMMENT ON COLUMN span_totals.task_runs IS 'Attempts at its tasks.';
COMMENT ON COLUMN span_totals.failed_attempts IS 'Attempts that erred, were retried, or were lost with their worker.';
COMMENT ON COLUMN span_totals.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN span_totals.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN span_totals.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN span_totals.metric_seconds IS 'Time in the span reported by workers through fine performance metrics (see activities).';
COMMENT ON COLUMN span_totals.cpu_seconds IS 'CPU time of threads, as part of metric_seconds.';
COMMENT ON COLUMN span_totals.noncpu_seconds IS 'Time threads spent waiting, as part of metric_seconds.';
COMMENT ON COLUMN span_totals.first_t IS 'First dispatch of an attempt to a worker, in seconds since the epoch.';
COMMENT ON COLUMN span_totals.last_t IS 'Last end of an attempt as recorded by the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN span_totals.wall_seconds IS 'last_t - first_t. Spans run concurrently, so this does not add up.';
COMMENT ON COLUMN span_totals.descendants IS 'Number of nested spans, at any depth.';
COMMENT ON COLUMN span_totals.total_tasks IS 'tasks, with nested spans.';
COMMENT ON COLUMN span_totals.total_other_span_tasks IS 'other_span_tasks, with nested spans.';
COMMENT ON COLUMN span_totals.total_task_runs IS 'task_runs, with nested spans.';
COMMENT ON COLUMN span_totals.total_failed_attempts IS 'failed_attempts, with nested spans.';
COMMENT ON COLUMN span_totals.total_compute_seconds IS 'compute_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_transfer_seconds IS 'transfer_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_output_bytes IS 'output_bytes, with nested spans.';
COMMENT ON COLUMN span_totals.total_metric_seconds IS 'metric_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_cpu_seconds IS 'cpu_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_noncpu_seconds IS 'noncpu_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.total_first_t IS 'first_t, with nested spans.';
COMMENT ON COLUMN span_totals.total_last_t IS 'last_t, with nested spans.';
COMMENT ON COLUMN span_totals.total_wall_seconds IS 'wall_seconds, with nested spans.';
COMMENT ON COLUMN span_totals.trace_id IS 'ID of the trace.';

-- Number of workers and threads, and their peaks: one row per trace.
CREATE OR REPLACE TABLE _cluster_size AS
WITH changes AS (
    SELECT trace_id, from_t AS t, 1 AS workers, nthreads FROM _worker_presence
    UNION ALL
    SELECT trace_id, to_t, -1, -nthreads FROM _worker_presence
),
levels AS (
    -- Changes at the same instant are combined, so that a worker that replaces another one is
    -- not a peak.
    SELECT
        trace_id,
        sum(sum(workers)) OVER (PARTITION BY trace_id ORDER BY t) AS workers,
        sum(sum(nthreads)) OVER (PARTITION BY trace_id ORDER BY t) AS nthreads
    FROM changes
    GROUP BY trace_id, t
),
peaks AS (
    SELECT trace_id, max(workers) AS workers, max(nthreads) AS nthreads
    FROM levels
    GROUP BY trace_id
),
cores AS (
    SELECT
        trace_id,
        count(*) AS workers,
        sum(greatest(to_t - from_t, 0)) AS worker_seconds,
        sum(nthreads * greatest(to_t - from_t, 0)) AS core_seconds
    FROM _worker_presence
    GROUP BY trace_id
)
SELECT
    recording.trace_id,
    recording.start_t,
    recording.stop_t,
    coalesce(cores.workers, 0) AS workers,
    coalesce(peaks.workers, 0)::BIGINT AS peak_workers,
    coalesce(peaks.nthreads, 0)::BIGINT AS peak_nthreads,
    cores.worker_seconds,
    cores.core_seconds
FROM _trace_range AS recording
LEFT JOIN cores USING (trace_id)
LEFT JOIN peaks USING (trace_id);

CREATE OR REPLACE VIEW cluster_sizes AS
WITH sizes AS (
    SELECT
        rowid AS seq,
        t,
        lead(t) OVER (PARTITION BY trace_id, client ORDER BY rowid) AS until_t,
        try_cast(value ->> '$.planned' AS BIGINT) AS planned,
        try_cast(value ->> '$.requested' AS BIGINT) AS requested,
        client,
        trace_id
    FROM raw.cluster_size
),
changes AS (
    SELECT trace_id, from_t AS t, 1 AS change FROM _worker_presence WHERE from_t < to_t
    UNION ALL
    SELECT trace_id, to_t, -1 FROM _worker_presence WHERE from_t < to_t
),
levels AS (
    SELECT trace_id, t, sum(sum(change)) OVER (PARTITION BY trace_id ORDER BY t) AS workers
    FROM changes
    GROUP BY trace_id, t
)
SELECT
    sizes.t,
    until_t,
    planned,
    requested,
    coalesce(levels.workers, 0)::BIGINT AS joined,
    client,
    trace_id
FROM sizes
ASOF LEFT JOIN levels USING (trace_id, t)
ORDER BY trace_id, seq;

COMMENT ON VIEW cluster_sizes IS 'Planned, requested and connected workers of the cluster. One row per change of the plan or of the requests. Empty if the recording client was not created from a cluster object, and before trace format 2.4.';
COMMENT ON COLUMN cluster_sizes.t IS 'Time of the change, in seconds since the epoch; up to 0.5 s late.';
COMMENT ON COLUMN cluster_sizes.until_t IS 'Time of the next change, in seconds since the epoch. Null for the last.';
COMMENT ON COLUMN cluster_sizes.planned IS 'Workers that the cluster should have, by scale() or adapt().';
COMMENT ON COLUMN cluster_sizes.requested IS 'Workers that the cluster object has requested, as by submitting jobs.';
COMMENT ON COLUMN cluster_sizes.joined IS 'Workers connected to the scheduler at that time.';
COMMENT ON COLUMN cluster_sizes.client IS 'Recording client.';
COMMENT ON COLUMN cluster_sizes.trace_id IS 'ID of the trace.';

-- As in Span.cumulative_worker_metrics of distributed: the thread time of the cluster while a span
-- was active, minus the execute metrics of the span and of those below it. Metrics of lost workers
-- are missing, so computations on them would count as idle: the compute time is subtracted if it is
-- longer.
CREATE OR REPLACE VIEW span_idle AS
WITH active AS (
    SELECT
        trace_id,
        span_id,
        totals.submitted_t AS start_t,
        totals.active_until_t AS stop_t,
        totals.compute_seconds,
        totals.execute_seconds AS known_seconds
    FROM _span_sums
),
changes AS (
    SELECT trace_id, from_t AS t, nthreads AS change
    FROM _worker_presence
    WHERE nthreads IS NOT NULL AND from_t < to_t
    UNION ALL
    SELECT trace_id, to_t, -nthreads
    FROM _worker_presence
    WHERE nthreads IS NOT NULL AND from_t < to_t
),
levels AS (
    SELECT
        trace_id,
        t,
        sum(sum(change)) OVER in_order AS nthreads,
        lead(t) OVER in_order AS until_t
    FROM changes
    GROUP BY trace_id, t
    WINDOW in_order AS (PARTITION BY trace_id ORDER BY t)
),
-- Threads of the cluster from t on, and their time before.
offers AS (
    SELECT
        trace_id,
        t,
        nthreads,
        coalesce(sum(nthreads * (until_t - t)) OVER (
            PARTITION BY trace_id ORDER BY t
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS seconds_before
    FROM levels
),
offered AS (
    SELECT
        active.trace_id,
        active.span_id,
        greatest(
            coalesce(until.seconds_before + until.nthreads * (stop_t - until.t), 0)
            - coalesce(since.seconds_before + since.nthreads * (start_t - since.t), 0),
            0
        ) AS thread_seconds
    FROM active
    ASOF LEFT JOIN offers AS since
        ON active.trace_id = since.trace_id AND active.start_t >= since.t
    ASOF LEFT JOIN offers AS until
        ON active.trace_id = until.trace_id AND active.stop_t >= until.t
    -- greatest() ignores nulls.
    WHERE active.start_t IS NOT NULL
        AND active.stop_t IS NOT NULL
        AND active.trace_id IN (
            SELECT trace_id FROM _worker_presence WHERE nthreads IS NOT NULL
        )
)
SELECT
    spans.span_id,
    spans.name,
    spans.path,
    active.start_t,
    active.stop_t,
    offered.thread_seconds,
    active.known_seconds,
    CASE
        WHEN offered.thread_seconds IS NOT NULL AND active.known_seconds IS NOT NULL
            THEN greatest(
                offered.thread_seconds - greatest(active.known_seconds, active.compute_seconds), 0
            )
    END AS idle_seconds,
    idle_seconds / nullif(offered.thread_seconds, 0) AS idle_share,
    spans.trace_id
FROM spans
LEFT JOIN active USING (trace_id, span_id)
LEFT JOIN offered USING (trace_id, span_id)
ORDER BY spans.trace_id, idle_seconds DESC NULLS LAST, spans.span_id;

COMMENT ON VIEW span_idle IS 'Thread time that was idle or spent on other spans while a span was active. One row per span, with the spans below it; most idle time first. As "idle or other spans" of Span.cumulative_worker_metrics in distributed, except that computations whose metrics are missing are not idle.';
COMMENT ON COLUMN span_idle.span_id IS 'ID of the span.';
COMMENT ON COLUMN span_idle.name IS 'Span name, without the enclosing spans.';
COMMENT ON COLUMN span_idle.path IS 'Names from the outermost span to this one.';
COMMENT ON COLUMN span_idle.start_t IS 'First submission of a task of the span, in seconds since the epoch.';
COMMENT ON COLUMN span_idle.stop_t IS 'End of its last computation, in seconds since the epoch; end of the recording if an attempt has no end.';
COMMENT ON COLUMN span_idle.thread_seconds IS 'Thread time of the cluster from start_t to stop_t. Null if the number of threads is unknown.';
COMMENT ON COLUMN span_idle.known_seconds IS 'Seconds of the fine metrics of its tasks (context execute). Null if none were recorded.';
COMMENT ON COLUMN span_idle.idle_seconds IS 'thread_seconds minus known_seconds, or minus the compute time of its tasks if that is longer, at least 0. Null if known_seconds is null.';
COMMENT ON COLUMN span_idle.idle_share IS 'idle_seconds / thread_seconds.';
COMMENT ON COLUMN span_idle.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW pauses AS
SELECT worker, start_t, stop_t, stop_t - start_t AS seconds, trace_id
FROM _worker_statuses
WHERE status = 'paused'
ORDER BY trace_id, seq;

COMMENT ON VIEW pauses IS 'Pauses of workers because of high memory use. One row per pause. A paused worker starts no tasks, but finishes those that it is computing.';
COMMENT ON COLUMN pauses.worker IS 'Worker address.';
COMMENT ON COLUMN pauses.start_t IS 'Start of the pause on the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN pauses.stop_t IS 'End of the pause, or departure of the worker, in seconds since the epoch. Null if the trace ends first.';
COMMENT ON COLUMN pauses.seconds IS 'Duration.';
COMMENT ON COLUMN pauses.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW failures AS
SELECT
    * EXCLUDE (trace_id),
    _error_cause(exception) AS cause,
    _exception_type(_error_cause(exception)) AS exception_type,
    trace_id
FROM (
    SELECT
        run.end_t AS t,
        CASE run.outcome
            WHEN 'erred' THEN 'task erred'
            WHEN 'retried' THEN 'attempt retried'
            ELSE 'attempt lost'
        END AS what,
        run.key,
        run.worker,
        run.exception,
        run.attempt,
        run.prefix,
        run.traceback,
        CASE
            WHEN run.outcome = 'lost' THEN
                coalesce('its worker was ' || removal.kill, 'its worker went away: ' || run.end_reason)
            WHEN run.outcome = 'erred' AND NOT starts_with(run.end_reason, 'task-erred') THEN
                'given up by Dask: ' || coalesce('its worker was ' || removal.kill, run.end_reason)
        END AS detail,
        run.trace_id
    FROM _task_runs AS run
    LEFT JOIN raw.transition AS ending ON run.end_seq = ending.rowid
    LEFT JOIN _worker_removals AS removal
        ON run.trace_id = removal.trace_id
        AND run.worker = removal.worker
        AND ending.stimulus_id = removal.stimulus_id
    WHERE _is_failed(run.outcome)
    UNION ALL
    -- Failures without a failed task: the exception was suppressed, or there was no task.
    SELECT
        chunk.end_t,
        CASE chunk.outcome
            WHEN 'skipped' THEN 'chunk skipped'
            WHEN 'retried' THEN 'attempt retried'
            ELSE 'chunk erred'
        END,
        chunk.key,
        chunk.worker,
        chunk.exception,
        chunk.attempt,
        run.prefix,
        NULL,
        concat_ws(
            ', ',
            chunk.dataset,
            chunk.filename,
            'entries ' || chunk.entry_start || ' to ' || chunk.entry_stop
        ),
        chunk.trace_id
    FROM _chunks AS chunk
    LEFT JOIN _task_runs AS run USING (seq)
    WHERE chunk.outcome = 'skipped'
        OR (NOT chunk.has_task AND _has_raised(chunk.outcome))
    UNION ALL
    SELECT
        t,
        CASE WHEN is_skipped THEN 'file skipped' ELSE 'file unreadable' END,
        key,
        worker,
        exception,
        attempt,
        prefix,
        NULL,
        concat_ws(', ', dataset, filename, 'its events are missing'),
        trace_id
    FROM _unread_files
    UNION ALL
    SELECT
        removed_t,
        'worker lost',
        NULL,
        worker,
        NULL,
        NULL,
        NULL,
        NULL,
        concat_ws(
            ', ',
            reason,
            nullif(processing_tasks, 0) || if(processing_tasks = 1, ' task', ' tasks') || ' assigned',
            nullif(lost_results, 0) || if(lost_results = 1, ' result', ' results') || ' to recompute',
            nullif(lost_data, 0) || if(lost_data = 1, ' piece', ' pieces') || ' of scattered data lost'
        ),
        trace_id
    FROM _worker_removals
    WHERE is_lost
)
ORDER BY trace_id, t, key NULLS LAST, attempt;

COMMENT ON VIEW failures IS 'Failed attempts and lost workers. One row per failed, lost or skipped attempt, per skipped file and per worker lost unexpectedly. A worker that left with nothing on it that was needed, after the last task or because it was asked to, is not lost.';
COMMENT ON COLUMN failures.t IS 'Time on the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN failures.what IS 'task erred (for good), attempt retried, attempt lost (with its worker), chunk skipped (exception suppressed by skipbadfiles), chunk erred (without a cluster), file skipped (its number of entries could not be read; skipbadfiles), file unreadable (the same without a cluster and skipbadfiles) or worker lost.';
COMMENT ON COLUMN failures.key IS 'Task key. Null for a worker.';
COMMENT ON COLUMN failures.worker IS 'Worker address.';
COMMENT ON COLUMN failures.exception IS 'Exception text.';
COMMENT ON COLUMN failures.attempt IS 'Attempt number within the key.';
COMMENT ON COLUMN failures.prefix IS 'Key prefix of the task.';
COMMENT ON COLUMN failures.traceback IS 'Traceback text.';
COMMENT ON COLUMN failures.detail IS 'Further information: why a worker left and what was lost with it, why Dask gave up on a task, which entries were skipped. A nanny that kills its worker for memory is recorded with distributed 2024.4.2 and later.';
COMMENT ON COLUMN failures.cause IS 'Text of the error that caused the exception, if coffea quotes it (Failed processing file: …); otherwise the exception.';
COMMENT ON COLUMN failures.exception_type IS 'Type of the cause, with its module if that is known: KeyError, zlib.error.';
COMMENT ON COLUMN failures.trace_id IS 'ID of the trace.';

CREATE OR REPLACE MACRO stragglers_by(min_relative_duration) AS TABLE
WITH usual AS (
    SELECT
        trace_id,
        prefix,
        count(whole_seconds) AS prefix_runs,
        median(whole_seconds) AS median_seconds
    FROM _task_runs
    WHERE outcome = 'memory' AND prefix IS NOT NULL
    GROUP BY trace_id, prefix
    -- With fewer attempts the median is not meaningful.
    HAVING count(whole_seconds) >= 10
),
slow AS (
    SELECT run.*, usual.median_seconds, usual.prefix_runs
    FROM _task_runs AS run
    INNER JOIN usual USING (trace_id, prefix)
    WHERE run.whole_seconds >= min_relative_duration * usual.median_seconds
        AND run.whole_seconds > usual.median_seconds
),
read AS (
    SELECT
        seq,
        CASE WHEN count(DISTINCT dataset) = 1 THEN any_value(dataset) END AS dataset,
        CASE WHEN count(DISTINCT filename) = 1 THEN any_value(filename) END AS filename,
        min(entry_start) AS entry_start,
        max(entry_stop) AS entry_stop
    FROM _chunks
    WHERE seq IN (SELECT seq FROM slow)
    GROUP BY seq
)
SELECT
    slow.key,
    slow.prefix,
    slow.attempt,
    slow.worker,
    slow.thread,
    slow.outcome,
    slow.whole_seconds AS compute_seconds,
    slow.median_seconds,
    slow.whole_seconds / nullif(slow.median_seconds, 0) AS relative_duration,
    slow.whole_seconds - slow.median_seconds AS excess_seconds,
    slow.prefix_runs,
    slow.compute_start_t,
    slow.compute_stop_t,
    read.dataset,
    read.filename,
    CASE WHEN read.filename IS NOT NULL THEN read.entry_start END AS entry_start,
    CASE WHEN read.filename IS NOT NULL THEN read.entry_stop END AS entry_stop,
    slow.run_id,
    slow.trace_id
FROM slow
LEFT JOIN read USING (seq)
ORDER BY slow.trace_id, excess_seconds DESC, slow.seq;

CREATE OR REPLACE VIEW stragglers AS FROM stragglers_by(2);

COMMENT ON MACRO TABLE stragglers_by IS 'The view stragglers with another minimum of relative_duration.';
COMMENT ON VIEW stragglers IS 'Attempts that took at least twice the median of their prefix. One row per attempt, largest excess first. The median is that of the successful attempts of the prefix, of which there must be at least 10. stragglers_by(1.5) uses another minimum of relative_duration.';
COMMENT ON COLUMN stragglers.key IS 'Task key.';
COMMENT ON COLUMN stragglers.prefix IS 'Key prefix.';
COMMENT ON COLUMN stragglers.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN stragglers.worker IS 'Address of the worker that ran the attempt.';
COMMENT ON COLUMN stragglers.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN stragglers.outcome IS 'Outcome of the attempt, as in task_runs.';
COMMENT ON COLUMN stragglers.compute_seconds IS 'Compute time.';
COMMENT ON COLUMN stragglers.median_seconds IS 'Median compute time of the successful attempts of the prefix.';
COMMENT ON COLUMN stragglers.relative_duration IS 'compute_seconds / median_seconds.';
COMMENT ON COLUMN stragglers.excess_seconds IS 'compute_seconds - median_seconds.';
COMMENT ON COLUMN stragglers.prefix_runs IS 'Number of attempts that the median is computed from.';
COMMENT ON COLUMN stragglers.compute_start_t IS 'Start of the computation, in seconds since the epoch.';
COMMENT ON COLUMN stragglers.compute_stop_t IS 'End of the computation, in seconds since the epoch.';
COMMENT ON COLUMN stragglers.dataset IS 'Dataset of the chunk. Null without a chunk, or with chunks of several datasets.';
COMMENT ON COLUMN stragglers.filename IS 'File of the chunk. Null without a chunk, or with chunks of several files.';
COMMENT ON COLUMN stragglers.entry_start IS 'First entry read.';
COMMENT ON COLUMN stragglers.entry_stop IS 'Entry after the last one read.';
COMMENT ON COLUMN stragglers.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN stragglers.trace_id IS 'ID of the trace.';

-- Intervals with an amount: phases of attempts, states of tasks, lifetimes of processes and their
-- numbers of threads. Process 0 is the scheduler.
CREATE OR REPLACE VIEW _intervals AS
WITH runs AS (
    SELECT run.end_seq, run.outcome, coalesce(process.process, 0) AS process, run.trace_id
    FROM _task_runs AS run
    LEFT JOIN _process_addresses AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= process.from_t
        AND coalesce(run.processing_t, '-infinity'::DOUBLE) < process.until_t
    WHERE run.end_seq IS NOT NULL
),
timed AS (
    SELECT
        process,
        action AS what,
        outcome <> 'memory' AS failed,
        start_t,
        stop_t,
        1.0::DOUBLE AS amount,
        trace_id
    FROM runs
    INNER JOIN _task_phases USING (end_seq)
    WHERE action IN ('compute', 'transfer')
    UNION ALL
    -- Without a cluster there are no tasks.
    SELECT
        coalesce(process, 0),
        'compute',
        outcome <> 'memory',
        start_t,
        stop_t,
        compute_seconds / nullif(stop_t - start_t, 0),
        trace_id
    FROM _chunks
    WHERE NOT has_task
)
SELECT process, what, start_t, stop_t, amount, trace_id FROM timed
UNION ALL
SELECT process, 'failed', start_t, stop_t, amount, trace_id
FROM timed
WHERE what = 'compute' AND failed
UNION ALL
SELECT 0, state, from_t, until_t, 1, trace_id FROM _task_states
UNION ALL
SELECT process, 'presence', from_t, to_t, 1, trace_id FROM _worker_presence
UNION ALL
SELECT process, 'threads', from_t, to_t, nthreads, trace_id FROM _worker_presence;

-- Rows of chunk_branches in any order: sorting takes longer than summing.
CREATE OR REPLACE VIEW _chunk_branches AS
SELECT * EXCLUDE (read), unnest(read)
FROM (
    SELECT
        chunk.key,
        chunk.attempt,
        chunk.dataset,
        chunk.filename,
        chunk.treename,
        chunk.entry_start,
        chunk.entry_stop,
        chunk.worker,
        chunk.outcome,
        chunk.run_id,
        chunk.trace_id,
        chunk.seq,
        chunk.start_t,
        chunk.part,
        unnest(record.measured.branches) AS read
    FROM _chunks AS chunk
    INNER JOIN _chunk_reads AS reading USING (measured)
    INNER JOIN raw.chunk AS record ON record.rowid = reading.record
);

-- Records: chunk
-- Cost model of chunks by dataset: fixed time plus time per event, a least-squares line. Chunks
-- that ran while their process warmed up are left out, and so are outliers of a first fit. The line
-- is fitted only to sizes that differ by a factor of 2 or more: if a line through similar sizes
-- were extrapolated to size 0, any trend of the run would become a fixed time.
CREATE OR REPLACE TABLE _chunk_cost_models AS
WITH results AS (
    SELECT trace_id, dataset, process, events, compute_seconds AS seconds, is_warming_up
    FROM _chunks
    WHERE is_first_result AND chunks_in_task = 1 AND events > 0 AND compute_seconds > 0
        -- Chunks cut off by a time range are excluded.
        AND compute_seconds = whole_seconds
),
-- At least three chunks are on either side of the middle (of logarithms): one odd chunk, such as
-- the rest of a file, does not determine the line.
sizes AS (
    SELECT *, sqrt(min(events) OVER same * max(events) OVER same) AS middle
    FROM results
    WHERE NOT is_warming_up
    WINDOW same AS (PARTITION BY trace_id, dataset)
),
spread AS (
    SELECT trace_id, dataset
    FROM sizes
    GROUP BY trace_id, dataset
    HAVING max(events) >= 2 * min(events)
        AND least(count(*) FILTER (events < middle), count(*) FILTER (events > middle)) > 2
),
warm AS (
    SELECT results.*
    FROM results
    INNER JOIN spread
        ON results.trace_id = spread.trace_id
        AND results.dataset IS NOT DISTINCT FROM spread.dataset
    WHERE NOT results.is_warming_up
),
rough AS (
    SELECT
        trace_id,
        dataset,
        regr_intercept(seconds, events) AS fixed_seconds,
        regr_slope(seconds, events) AS event_seconds,
        -- Smaller residuals are not outliers.
        0.01 * median(seconds) AS tolerance
    FROM warm
    GROUP BY trace_id, dataset
),
residuals AS (
    SELECT
        warm.*,
        rough.tolerance,
        warm.seconds - rough.fixed_seconds - rough.event_seconds * warm.events AS residual
    FROM warm
    INNER JOIN rough
        ON warm.trace_id = rough.trace_id AND warm.dataset IS NOT DISTINCT FROM rough.dataset
),
near AS (
    SELECT
        *,
        -- 4 standard deviations of a normal distribution, estimated by the median absolute
        -- deviation.
        abs(residual - median(residual) OVER same)
            <= greatest(4 * 1.4826 * mad(residual) OVER same, tolerance) AS is_near
    FROM residuals
    WINDOW same AS (PARTITION BY trace_id, dataset)
),
fitted AS (
    SELECT *
    FROM near
    WINDOW same AS (PARTITION BY trace_id, dataset)
    -- If there are many outliers, the line is wrong, not the chunks.
    QUALIFY is_near OR count(*) FILTER (NOT is_near) OVER same > 0.25 * count(*) OVER same
),
line AS (
    SELECT
        trace_id,
        dataset,
        count(*) AS fitted_chunks,
        regr_intercept(seconds, events) AS line_fixed_seconds,
        regr_slope(seconds, events) AS line_event_seconds,
        regr_r2(seconds, events) AS r2,
        -- Standard error of the intercept.
        sqrt(
            greatest(
                regr_syy(seconds, events)
                - regr_slope(seconds, events) * regr_sxy(seconds, events),
                0
            )
            / (count(*) - 2)
            * (1 / count(*) + regr_avgx(seconds, events) ** 2 / regr_sxx(seconds, events))
        ) AS fixed_error
    FROM fitted
    GROUP BY trace_id, dataset
    HAVING count(*) > 4 AND max(events) > min(events)
),
totals AS (
    SELECT
        trace_id,
        dataset,
        count(*) AS all_chunks,
        count(*) FILTER (NOT is_warming_up) AS chunks,
        count(DISTINCT events) AS sizes,
        max(events) FILTER (NOT is_warming_up) >= 2 * min(events) FILTER (NOT is_warming_up)
            AS is_wide,
        count(DISTINCT process) AS processes,
        min(events) AS smallest_chunk_events,
        median(events) AS median_events,
        max(events) AS largest_chunk_events,
        sum(events) AS events,
        sum(seconds) AS seconds
    FROM results
    GROUP BY trace_id, dataset
),
judged AS (
    SELECT
        totals.*,
        totals.chunks - line.fitted_chunks AS outliers,
        line.line_fixed_seconds,
        line.fixed_error,
        line.line_event_seconds,
        line.r2,
        -- Upper bound of the fixed time.
        greatest(line_fixed_seconds, 0) + 2 * line.fixed_error AS fixed_bound,
        -- Below 1 % of the mean, the time of a chunk does not depend on its number of events.
        line_event_seconds > 0.01 * totals.seconds / totals.all_chunks / totals.median_events
            AS grows,
        -- The fixed time is determined to within half of its value, or compatible with 0 and
        -- below 5 % of a chunk.
        coalesce(
            grows AND (
                line_fixed_seconds > 2 * line.fixed_error
                OR greatest(fixed_bound, -line_fixed_seconds)
                    < 0.05 * line_event_seconds * totals.median_events
            ),
            false
        ) AS is_known
    FROM totals
    LEFT JOIN line
        ON totals.trace_id = line.trace_id AND totals.dataset IS NOT DISTINCT FROM line.dataset
),
models AS (
    SELECT
        *,
        CASE WHEN is_known THEN greatest(line_fixed_seconds, 0) END AS fixed_seconds,
        CASE WHEN is_known THEN line_event_seconds END AS event_seconds,
        -- Fixed time used for the recommendation: its upper bound if it is compatible with 0.
        CASE
            WHEN line_fixed_seconds <= 2 * fixed_error THEN fixed_bound
            ELSE line_fixed_seconds
        END AS burden_seconds
    FROM judged
),
errors AS (
    SELECT
        results.trace_id,
        results.dataset,
        median(
            abs(results.seconds - models.fixed_seconds - models.event_seconds * results.events)
            / results.seconds
        ) AS relative_error
    FROM results
    INNER JOIN models
        ON results.trace_id = models.trace_id
        AND results.dataset IS NOT DISTINCT FROM models.dataset
    WHERE models.is_known AND NOT results.is_warming_up
    GROUP BY results.trace_id, results.dataset
)
SELECT models.*, errors.relative_error
FROM models
LEFT JOIN errors
    ON models.trace_id = errors.trace_id
    AND models.dataset IS NOT DISTINCT FROM errors.dataset;

-- Chunk attempts, and files whose number of entries could not be read: these have no chunks.
CREATE OR REPLACE VIEW _file_attempts AS
SELECT *, true AS is_chunk FROM _chunks
UNION ALL BY NAME
SELECT
    trace_id,
    dataset,
    filename,
    treename,
    worker,
    CASE WHEN is_skipped THEN 'skipped' ELSE 'erred' END AS outcome,
    false AS is_first_result,
    false AS is_chunk
FROM _unread_files;

CREATE OR REPLACE VIEW chunks AS
SELECT
    chunk.key,
    chunk.attempt,
    chunk.dataset,
    chunk.filename,
    chunk.treename,
    chunk.entry_start,
    chunk.entry_stop,
    chunk.events,
    chunk.bytes_read,
    chunk.columns_read,
    chunk.branches_read,
    chunk.process_seconds,
    chunk.open_seconds,
    chunk.cpu_seconds,
    chunk.worker,
    chunk.outcome,
    chunk.output_bytes,
    chunk.events / nullif(chunk.whole_seconds, 0) AS events_per_second,
    chunk.exception,
    chunk.compute_seconds,
    chunk.processing_t,
    chunk.end_t,
    chunk.file_uuid,
    coalesce(identity.usermeta, measured.usermeta) AS usermeta,
    chunk.run_id,
    chunk.read_seconds,
    chunk.wait_seconds,
    chunk.queued_seconds,
    chunk.transfer_seconds,
    chunk.start_t,
    chunk.stop_t,
    chunk.thread,
    chunk.bytes_read / nullif(chunk.whole_seconds, 0) AS bytes_per_second,
    chunk.requests,
    chunk.source,
    coalesce(chunk.columns, measured.measured.columns) AS columns,
    chunk.file_branches,
    chunk.branches_read / nullif(chunk.file_branches, 0) AS branch_share,
    chunk.file_bytes,
    chunk.compressed_bytes,
    chunk.uncompressed_bytes,
    chunk.unpacked_bytes / nullif(chunk.packed_bytes, 0) AS compression_ratio,
    chunk.memory_before_bytes,
    chunk.memory_after_bytes,
    chunk.memory_peak_bytes,
    chunk.from_checkpoint,
    chunk.measured_until,
    chunk.chunks_in_task,
    _is_kept(chunk.outcome, discarded.seq) AS kept,
    chunk.bytes_read / nullif(chunk.events, 0) AS bytes_per_event,
    chunk.decompress_seconds,
    chunk.compression,
    chunk.trace_id
FROM _chunks AS chunk
LEFT JOIN _discarded_results AS discarded USING (seq)
LEFT JOIN raw.chunk AS identity ON identity.rowid = chunk.identity_record
LEFT JOIN raw.chunk AS measured ON measured.rowid = chunk.measured_record
ORDER BY chunk.trace_id, chunk.seq NULLS LAST, chunk.start_t, chunk.part;

COMMENT ON VIEW chunks IS 'Attempts at coffea chunks. One row per chunk and attempt, with the same attempt number as in task_runs. Without a cluster there are no tasks, and the attempts are those that were measured. A dask-awkward task that reads several chunks has one row per chunk. Values that were not measured are null.';
COMMENT ON COLUMN chunks.key IS 'Key of the task that processes the chunk. Without a cluster, a key assigned by the recorder.';
COMMENT ON COLUMN chunks.attempt IS 'Attempt number within the key, from 1. Null if the attempt itself is missing from the trace.';
COMMENT ON COLUMN chunks.dataset IS 'Dataset of the file.';
COMMENT ON COLUMN chunks.filename IS 'File name, as coffea gives it.';
COMMENT ON COLUMN chunks.treename IS 'Tree or table in the file.';
COMMENT ON COLUMN chunks.entry_start IS 'First entry of the chunk.';
COMMENT ON COLUMN chunks.entry_stop IS 'End of the chunk: the entry after its last.';
COMMENT ON COLUMN chunks.events IS 'Events processed: measured, otherwise the number of entries of the chunk. Null if the attempt failed or its result came from a checkpoint.';
COMMENT ON COLUMN chunks.bytes_read IS 'Bytes requested from the source, including those needed to open the file.';
COMMENT ON COLUMN chunks.columns_read IS 'Number of columns read.';
COMMENT ON COLUMN chunks.branches_read IS 'Number of branches read.';
COMMENT ON COLUMN chunks.process_seconds IS 'Time in the processor, reading included. For dask-awkward: compute time of the task minus measured read time; null if the task reads several chunks.';
COMMENT ON COLUMN chunks.open_seconds IS 'Time until events were available: opening the file, its metadata, preloading.';
COMMENT ON COLUMN chunks.cpu_seconds IS 'CPU time of the thread from start_t to stop_t. Null if the task went on with the chunk after stop_t (dask-awkward).';
COMMENT ON COLUMN chunks.worker IS 'Address of the worker that ran the attempt or was assigned it. Without a cluster, the process.';
COMMENT ON COLUMN chunks.outcome IS 'Outcome of the attempt, as in task_runs; skipped if the exception was suppressed (skipbadfiles), so that the task succeeded without a result.';
COMMENT ON COLUMN chunks.output_bytes IS 'Size of the result. For a task that reads several chunks, an equal share.';
COMMENT ON COLUMN chunks.events_per_second IS 'events / compute_seconds.';
COMMENT ON COLUMN chunks.exception IS 'Exception text.';
COMMENT ON COLUMN chunks.compute_seconds IS 'Compute time of the attempt, as in task_runs. For a task that reads several chunks, an equal share. Without a cluster, stop_t - start_t.';
COMMENT ON COLUMN chunks.processing_t IS 'Dispatch to the worker, in seconds since the epoch. Without a cluster, the start.';
COMMENT ON COLUMN chunks.end_t IS 'End as recorded by the scheduler, in seconds since the epoch. Without a cluster, the measured end.';
COMMENT ON COLUMN chunks.file_uuid IS 'UUID stored in the file.';
COMMENT ON COLUMN chunks.usermeta IS 'User metadata of the dataset, as JSON.';
COMMENT ON COLUMN chunks.run_id IS 'Dask''s run id of the attempt. Without a cluster, assigned by the recorder.';
COMMENT ON COLUMN chunks.read_seconds IS 'Time to read, decompress and interpret columns.';
COMMENT ON COLUMN chunks.wait_seconds IS 'Time from start_t to stop_t in which the thread used no CPU: input, locks, other threads.';
COMMENT ON COLUMN chunks.queued_seconds IS 'Time on the scheduler before dispatch, as in task_runs.';
COMMENT ON COLUMN chunks.transfer_seconds IS 'Time to fetch dependencies, such as the processor, from other workers. For a task that reads several chunks, an equal share.';
COMMENT ON COLUMN chunks.start_t IS 'Start of the measurement, in seconds since the epoch.';
COMMENT ON COLUMN chunks.stop_t IS 'End of the measurement (see measured_until), in seconds since the epoch.';
COMMENT ON COLUMN chunks.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN chunks.bytes_per_second IS 'bytes_read / compute_seconds.';
COMMENT ON COLUMN chunks.requests IS 'Requests to the source.';
COMMENT ON COLUMN chunks.source IS 'File format: TTree, RNTuple or Parquet.';
COMMENT ON COLUMN chunks.columns IS 'Names of the columns read, as coffea gives them.';
COMMENT ON COLUMN chunks.file_branches IS 'Branches in the file.';
COMMENT ON COLUMN chunks.branch_share IS 'branches_read / file_branches.';
COMMENT ON COLUMN chunks.file_bytes IS 'File size.';
COMMENT ON COLUMN chunks.compressed_bytes IS 'Size in the file of the branch data read.';
COMMENT ON COLUMN chunks.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN chunks.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, of branches for which both are known.';
COMMENT ON COLUMN chunks.memory_before_bytes IS 'Process memory before the chunk.';
COMMENT ON COLUMN chunks.memory_after_bytes IS 'Process memory after the chunk.';
COMMENT ON COLUMN chunks.memory_peak_bytes IS 'Peak process memory during the chunk, other threads included.';
COMMENT ON COLUMN chunks.from_checkpoint IS 'True if the result was loaded from a checkpoint, without reading or processing.';
COMMENT ON COLUMN chunks.measured_until IS 'What ended at stop_t: processed, or read if the task went on with the data (dask-awkward).';
COMMENT ON COLUMN chunks.chunks_in_task IS 'Number of chunks that the task reads. More than 1 only with dask-awkward.';
COMMENT ON COLUMN chunks.kept IS 'True if the attempt computed a result that was kept, as in task_runs. False for a skipped chunk.';
COMMENT ON COLUMN chunks.bytes_per_event IS 'bytes_read / events.';
COMMENT ON COLUMN chunks.decompress_seconds IS 'The part of read_seconds that decompressed ROOT data. Null if nothing was compressed, for Parquet, and before trace format 2.4.';
COMMENT ON COLUMN chunks.compression IS 'Algorithms of the ROOT data that was decompressed: ZSTD, LZMA, LZ4, ZLIB.';
COMMENT ON COLUMN chunks.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW sections AS
WITH attempts AS (
    SELECT
        trace_id,
        key,
        run_id,
        first(attempt ORDER BY seq NULLS LAST) AS attempt,
        -- For a task that reads several chunks, the chunk of a section is unknown.
        CASE WHEN count(DISTINCT dataset) = 1 THEN any_value(dataset) END AS dataset,
        CASE WHEN count(DISTINCT filename) = 1 THEN any_value(filename) END AS filename,
        first(outcome ORDER BY seq NULLS LAST) AS outcome
    FROM _chunks
    WHERE run_id IS NOT NULL
    GROUP BY trace_id, key, run_id
),
runs AS (
    SELECT trace_id, key, run_id, attempt, outcome
    FROM _task_runs
    SEMI JOIN raw.section USING (trace_id, key)
    WHERE run_id IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY trace_id, key, run_id ORDER BY seq) = 1
)
SELECT
    section.key,
    section.name,
    _clip_negative(section.stop_t - section.start_t) AS seconds,
    section.measured.cpu_seconds,
    section.measured.memory_delta AS memory_delta_bytes,
    section.measured.bytes_read,
    section.start_t,
    section.stop_t,
    section.worker,
    section.thread,
    section.run_id,
    coalesce(attempts.attempt, runs.attempt) AS attempt,
    coalesce(attempts.outcome, runs.outcome) AS outcome,
    attempts.dataset,
    attempts.filename,
    section.exception,
    section.trace_id
FROM raw.section AS section
LEFT JOIN attempts USING (trace_id, key, run_id)
LEFT JOIN runs USING (trace_id, key, run_id)
ORDER BY section.trace_id, section.rowid;

COMMENT ON VIEW sections IS 'User-named sections of chunks and other tasks. One row per execution of a section. Empty if no sections were used.';
COMMENT ON COLUMN sections.key IS 'Task key.';
COMMENT ON COLUMN sections.name IS 'Section name.';
COMMENT ON COLUMN sections.seconds IS 'Wall time.';
COMMENT ON COLUMN sections.cpu_seconds IS 'CPU time of the thread.';
COMMENT ON COLUMN sections.memory_delta_bytes IS 'Change of process memory during the section, other threads included.';
COMMENT ON COLUMN sections.bytes_read IS 'Bytes requested from the source.';
COMMENT ON COLUMN sections.start_t IS 'Start, in seconds since the epoch.';
COMMENT ON COLUMN sections.stop_t IS 'End, in seconds since the epoch.';
COMMENT ON COLUMN sections.worker IS 'Worker address.';
COMMENT ON COLUMN sections.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN sections.run_id IS 'Dask''s run id of the attempt. Without a cluster, assigned by the recorder.';
COMMENT ON COLUMN sections.attempt IS 'Attempt number within the key, as in task_runs and chunks.';
COMMENT ON COLUMN sections.outcome IS 'Outcome of the attempt, as in chunks, or task_runs for other tasks.';
COMMENT ON COLUMN sections.dataset IS 'Dataset of the chunk. Null for other tasks and tasks that read several datasets.';
COMMENT ON COLUMN sections.filename IS 'File of the chunk. Null for other tasks and tasks that read several files.';
COMMENT ON COLUMN sections.exception IS 'Text of the exception that ended the section.';
COMMENT ON COLUMN sections.trace_id IS 'ID of the trace.';

-- Losses come from four sources: the reader (raw.damage), the recorder (records of kind loss,
-- repeated as sums in the trailer), the trailer's record counts and imported logs. A line that cannot be read
-- is also missing from the trailer's count, so it is subtracted there.
CREATE OR REPLACE VIEW loss AS
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

-- Computing attempts of workers with a Darshan log. Dask converts times to the scheduler's clock
-- with a delay that it measures at each heartbeat; the first one can be 0.1 s wrong. An attempt
-- can neither end after the scheduler received its result nor start before its dispatch. Where
-- consecutive attempts violate this, they are moved by the excess.
CREATE OR REPLACE VIEW _io_runs AS
WITH bounds AS (
    SELECT
        key,
        attempt,
        seq,
        worker,
        trace_id,
        compute_start_t,
        compute_stop_t,
        coalesce(compute_stop_t - end_t, 0) AS least_delay,
        coalesce(compute_start_t - processing_t, 0) AS most_delay,
        max(compute_stop_t - end_t) OVER near AS near_least_delay,
        min(compute_start_t - processing_t) OVER near AS near_most_delay
    FROM _task_runs
    WHERE compute_start_t IS NOT NULL
        AND (trace_id, worker) IN (SELECT (trace_id, worker) FROM _io_jobs)
    WINDOW near AS (
        PARTITION BY trace_id, worker ORDER BY end_t, seq ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING
    )
),
delays AS (
    SELECT
        *,
        CASE
            -- The delay changed between these attempts.
            WHEN near_least_delay > least(most_delay, least_delay + 0.02) OR near_most_delay < least_delay
                THEN greatest(least_delay, least(most_delay, 0))
            ELSE greatest(near_least_delay, least(near_most_delay, 0))
        END AS delay
    FROM bounds
)
SELECT
    key,
    attempt,
    seq,
    worker,
    compute_start_t - delay AS start_t,
    compute_stop_t - delay AS stop_t,
    trace_id
FROM delays;

CREATE OR REPLACE VIEW io_files AS
SELECT
    io.filename,
    io.measured.module AS module,
    io.measured.rank AS rank,
    io.measured.opens AS opens,
    io.measured.reads AS reads,
    io.measured.writes AS writes,
    io.measured.bytes_read AS bytes_read,
    io.measured.bytes_written AS bytes_written,
    io.measured.read_seconds AS read_seconds,
    io.measured.write_seconds AS write_seconds,
    io.measured.metadata_seconds AS metadata_seconds,
    io.start_t,
    io.stop_t,
    jobs.host,
    jobs.pid,
    jobs.worker,
    io.value AS counters,
    jobs.filename AS log,
    io.source,
    io.trace_id
FROM raw.io_file AS io
LEFT JOIN _io_jobs AS jobs USING (trace_id, source)
ORDER BY io.trace_id, io.rowid;

COMMENT ON VIEW io_files IS 'File access counters from Darshan. One row per log, I/O layer, file and rank. Access through MPI-IO or HDF5 also counts in the layers below, so sum one module at a time. Empty unless a log was imported.';
COMMENT ON COLUMN io_files.filename IS 'File path. The file''s number in the log if Darshan did not record a path.';
COMMENT ON COLUMN io_files.module IS 'I/O layer, as Darshan names it: POSIX, MPI-IO, STDIO, H5F, H5D and others.';
COMMENT ON COLUMN io_files.rank IS 'Rank of the process; -1 if Darshan combined all processes of the job.';
COMMENT ON COLUMN io_files.opens IS 'Open calls, independent and collective.';
COMMENT ON COLUMN io_files.reads IS 'Read calls of all kinds.';
COMMENT ON COLUMN io_files.writes IS 'Write calls of all kinds.';
COMMENT ON COLUMN io_files.bytes_read IS 'Bytes read.';
COMMENT ON COLUMN io_files.bytes_written IS 'Bytes written.';
COMMENT ON COLUMN io_files.read_seconds IS 'Time in read calls, summed over processes.';
COMMENT ON COLUMN io_files.write_seconds IS 'Time in write calls, summed over processes.';
COMMENT ON COLUMN io_files.metadata_seconds IS 'Time in metadata calls such as open, stat and seek, summed over processes.';
COMMENT ON COLUMN io_files.start_t IS 'First access, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_files.stop_t IS 'Last access, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_files.host IS 'Host name from Darshan. Recorded only with extended tracing (DXT).';
COMMENT ON COLUMN io_files.pid IS 'Process id, if the job was a single process: from the name of the log, otherwise the job number, which is the process id without a batch system.';
COMMENT ON COLUMN io_files.worker IS 'Address of the worker process. See io_jobs for how it is determined.';
COMMENT ON COLUMN io_files.counters IS 'All nonzero counters of the layer, by Darshan''s names, as JSON.';
COMMENT ON COLUMN io_files.log IS 'Log file name.';
COMMENT ON COLUMN io_files.source IS 'ID of the log, as in io_jobs.';
COMMENT ON COLUMN io_files.trace_id IS 'ID of the trace.';

-- Changes of amounts in each bucket by process, for buckets of a given length; null is the default
-- length. An interval raises the level at its start and lowers it at its end; `within` is the change
-- times the rest of the bucket. Intervals are clipped to the recording; one without an end extends
-- to its end. There are at most two rows per interval, however many buckets it crosses.
CREATE OR REPLACE MACRO _changes_by(bucket_seconds) AS TABLE
WITH clipped AS (
    SELECT
        interval.trace_id,
        process,
        what,
        amount,
        greatest(least(interval.start_t - timeline.start_t, extent), 0) AS begin_at,
        greatest(least(coalesce(stop_t - timeline.start_t, extent), extent), begin_at) AS end_at,
        width,
        extent,
        buckets
    FROM _intervals AS interval
    INNER JOIN _buckets(bucket_seconds) AS timeline USING (trace_id)
    WHERE amount IS NOT NULL AND begin_at < end_at
)
SELECT
    trace_id,
    process,
    what,
    bucket,
    sum(change) AS change,
    sum(change * (least((bucket + 1) * width, extent) - change_at)) AS within
FROM (
    SELECT
        trace_id,
        process,
        what,
        width,
        extent,
        unnest([amount, -amount]) AS change,
        unnest([begin_at, end_at]) AS change_at,
        -- An end at the boundary of two buckets belongs to the first.
        unnest([
            least(floor(begin_at / width), buckets - 1),
            greatest(ceil(end_at / width) - 1, 0)
        ])::BIGINT AS bucket
    FROM clipped
)
GROUP BY trace_id, process, what, bucket;

CREATE OR REPLACE VIEW branches AS
SELECT
    dataset,
    branch,
    count(*) AS chunk_attempts,
    count(DISTINCT filename) AS files,
    try_cast(sum(compressed_bytes) AS BIGINT) AS compressed_bytes,
    try_cast(sum(uncompressed_bytes) AS BIGINT) AS uncompressed_bytes,
    sum(uncompressed_bytes) FILTER (compressed_bytes IS NOT NULL)
        / nullif(sum(compressed_bytes) FILTER (uncompressed_bytes IS NOT NULL), 0)
        AS compression_ratio,
    sum(read_seconds) AS read_seconds,
    sum(compressed_bytes) / sum(sum(compressed_bytes)) OVER whole AS byte_share,
    sum(read_seconds) / nullif(sum(sum(read_seconds)) OVER whole, 0) AS read_share,
    sum(decompress_seconds) AS decompress_seconds,
    trace_id
FROM _chunk_branches
GROUP BY trace_id, dataset, branch
WINDOW whole AS (PARTITION BY trace_id)
ORDER BY
    trace_id,
    read_seconds DESC NULLS LAST,
    compressed_bytes DESC NULLS LAST,
    dataset,
    branch;

COMMENT ON VIEW branches IS 'Read cost of each branch. One row per dataset and branch, highest read time first. All chunk attempts count. Empty if chunks were not measured.';
COMMENT ON COLUMN branches.dataset IS 'Dataset of the files.';
COMMENT ON COLUMN branches.branch IS 'Branch name.';
COMMENT ON COLUMN branches.chunk_attempts IS 'Chunk attempts that read the branch.';
COMMENT ON COLUMN branches.files IS 'Files that the branch was read from.';
COMMENT ON COLUMN branches.compressed_bytes IS 'Bytes read from the files. Data needed by several chunks counts once per chunk.';
COMMENT ON COLUMN branches.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN branches.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, where both are known.';
COMMENT ON COLUMN branches.read_seconds IS 'Time to read, decompress and interpret the branch.';
COMMENT ON COLUMN branches.byte_share IS 'Share of the compressed bytes of all branches of all datasets.';
COMMENT ON COLUMN branches.read_share IS 'Share of the read time of all branches of all datasets.';
COMMENT ON COLUMN branches.decompress_seconds IS 'The part of read_seconds that decompressed. Null if nothing was compressed, for Parquet, and before trace format 2.4.';
COMMENT ON COLUMN branches.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW chunk_branches AS
SELECT
    key,
    attempt,
    branch,
    compressed_bytes,
    uncompressed_bytes,
    read_seconds,
    dataset,
    filename,
    treename,
    entry_start,
    entry_stop,
    worker,
    outcome,
    run_id,
    decompress_seconds,
    trace_id
FROM _chunk_branches
ORDER BY trace_id, seq NULLS LAST, start_t, part, branch;

COMMENT ON VIEW chunk_branches IS 'Branches read by chunk attempts. One row per attempt and branch. A basket or cluster that spans several chunks is read once per chunk and counts in each, as do all row groups of a Parquet file. Empty if chunks were not measured.';
COMMENT ON COLUMN chunk_branches.key IS 'Key of the task that processes the chunk.';
COMMENT ON COLUMN chunk_branches.attempt IS 'Attempt number within the key.';
COMMENT ON COLUMN chunk_branches.branch IS 'Branch name.';
COMMENT ON COLUMN chunk_branches.compressed_bytes IS 'Size in the file of the baskets or clusters that overlap the chunk, or of all row groups.';
COMMENT ON COLUMN chunk_branches.uncompressed_bytes IS 'Size of these after decompression.';
COMMENT ON COLUMN chunk_branches.read_seconds IS 'Time to read, decompress and interpret them.';
COMMENT ON COLUMN chunk_branches.dataset IS 'Dataset of the file.';
COMMENT ON COLUMN chunk_branches.filename IS 'File name.';
COMMENT ON COLUMN chunk_branches.treename IS 'Tree or table in the file.';
COMMENT ON COLUMN chunk_branches.entry_start IS 'First entry of the chunk.';
COMMENT ON COLUMN chunk_branches.entry_stop IS 'End of the chunk: the entry after its last.';
COMMENT ON COLUMN chunk_branches.worker IS 'Worker address.';
COMMENT ON COLUMN chunk_branches.outcome IS 'Outcome of the attempt, as in chunks.';
COMMENT ON COLUMN chunk_branches.run_id IS 'Dask''s run id of the attempt, as in chunks.';
COMMENT ON COLUMN chunk_branches.decompress_seconds IS 'The part of read_seconds that decompressed. Null if nothing was compressed, for Parquet, and before trace format 2.4.';
COMMENT ON COLUMN chunk_branches.trace_id IS 'ID of the trace.';

-- Records: chunk
-- Durations of chunks relative to those expected from their datasets and numbers of events.
CREATE OR REPLACE TABLE _chunk_ratios AS
SELECT
    chunk.trace_id,
    chunk.dataset,
    chunk.filename,
    chunk.treename,
    chunk.process,
    chunk.begin_t,
    chunk.whole_seconds,
    chunk.whole_seconds / CASE
        WHEN cost.is_known THEN cost.fixed_seconds + cost.event_seconds * chunk.events
        ELSE chunk.events * median(chunk.event_seconds) OVER same_dataset
    END AS ratio
FROM _chunks AS chunk
LEFT JOIN _chunk_cost_models AS cost
    ON chunk.trace_id = cost.trace_id
    AND chunk.dataset IS NOT DISTINCT FROM cost.dataset
WHERE chunk.event_seconds > 0 AND chunk.process IS NOT NULL
WINDOW same_dataset AS (PARTITION BY chunk.trace_id, chunk.dataset);

-- Expected time of a run with n events per chunk, of which a dataset has E events in all:
--     work of all datasets per thread + E / n * fixed / threads + (fixed + event * n) / 2
-- The first summand does not depend on n, the second is the fixed time of all chunks, and the
-- third is the tail, in which threads wait for half a chunk on average. The sum is smallest at
-- n = sqrt(2 * fixed * E / threads / event).
CREATE OR REPLACE VIEW chunk_costs AS
WITH files AS (
    SELECT trace_id, dataset, max(entry_stop) AS largest_file_events
    FROM _chunks
    GROUP BY trace_id, dataset
),
inputs AS (
    SELECT
        cost.*,
        files.largest_file_events,
        -- Without a cluster, each process has one thread.
        coalesce(nullif(cluster.peak_nthreads, 0), max(cost.processes) OVER same_trace) AS threads,
        -- All datasets share the threads.
        sum(cost.seconds) OVER same_trace / threads AS thread_seconds
    FROM _chunk_cost_models AS cost
    LEFT JOIN files
        ON cost.trace_id = files.trace_id AND cost.dataset IS NOT DISTINCT FROM files.dataset
    LEFT JOIN _cluster_size AS cluster ON cost.trace_id = cluster.trace_id
    WINDOW same_trace AS (PARTITION BY cost.trace_id)
),
terms AS (
    SELECT
        *,
        burden_seconds * events / threads AS overhead_factor,
        event_seconds / 2 AS tail_factor,
        -- Overhead and tail may together take this long: their minimum, and 2 % of the time.
        2 * sqrt(overhead_factor * tail_factor)
            + 0.02 * (2 * sqrt(overhead_factor * tail_factor) + thread_seconds) AS allowed_seconds
    FROM inputs
),
bounds AS (
    SELECT
        *,
        -- Solutions of overhead_factor / n + tail_factor * n = allowed_seconds.
        sqrt(greatest(allowed_seconds ** 2 - 4 * overhead_factor * tail_factor, 0)) AS root,
        CASE WHEN is_known THEN (allowed_seconds - root) / (2 * tail_factor) END AS least_events,
        CASE WHEN is_known THEN (allowed_seconds + root) / (2 * tail_factor) END AS most_events
    FROM terms
),
optimal AS (
    SELECT
        *,
        CASE
            WHEN median_events < least_events THEN _round_two_digits(least_events, 1)
            WHEN median_events > most_events THEN _round_two_digits(most_events, -1)
            WHEN is_known THEN median_events
        END AS wanted_events,
        -- least() ignores null.
        CASE
            WHEN wanted_events IS NOT NULL THEN least(wanted_events, largest_file_events)
        END AS recommended_events
    FROM bounds
),
with_text AS (
    SELECT
        *,
        printf(
            '%.2g %%',
            100 * fixed_seconds / (fixed_seconds + recommended_events * event_seconds)
        ) AS fixed_then
    FROM optimal
)
SELECT
    dataset,
    chunks,
    all_chunks - chunks AS first_chunks,
    outliers,
    sizes,
    smallest_chunk_events,
    round(median_events)::BIGINT AS median_events,
    largest_chunk_events,
    largest_file_events,
    is_known,
    coalesce(fixed_seconds, line_fixed_seconds) AS fixed_seconds,
    fixed_error AS fixed_error_seconds,
    coalesce(event_seconds, line_event_seconds) AS seconds_per_event,
    r2,
    relative_error,
    fixed_seconds * all_chunks / seconds AS fixed_share,
    round(least_events)::BIGINT AS min_events,
    round(most_events)::BIGINT AS max_events,
    round(recommended_events)::BIGINT AS recommended_events,
    CASE
        WHEN NOT is_known THEN 'not known from this run: ' || CASE
            WHEN all_chunks = 1 THEN 'the dataset has a single chunk; record a run with smaller chunks'
            WHEN sizes = 1
                THEN 'all chunks of a dataset have the same size; record a run with two chunk sizes'
            WHEN chunks < 5 THEN 'fewer than 5 chunks besides the first ones of each process'
            WHEN line_event_seconds IS NULL AND is_wide THEN
                'fewer than 3 chunks are much smaller or larger than the others; '
                || 'record a run with more chunks of a second size'
            WHEN line_event_seconds IS NULL THEN
                'chunk sizes are too similar; record a run with two sizes that differ by 2 × or more'
            WHEN NOT grows THEN 'time does not increase with the number of events'
            WHEN line_fixed_seconds < -2 * fixed_error
                THEN 'time increases faster than the number of events'
            ELSE printf('the fixed time is only known to be below %.2g s', fixed_bound)
        END
        ELSE concat_ws(
            '; ',
            CASE
                WHEN recommended_events IS NULL THEN 'too little work for a recommendation'
                WHEN recommended_events < wanted_events
                    THEN 'whole files, smaller than the optimum: fixed time ' || fixed_then
                WHEN recommended_events > median_events
                    THEN 'larger chunks: fixed time ' || fixed_then
                WHEN recommended_events < median_events
                    THEN 'smaller chunks: less waiting for the last ones'
                ELSE 'keep the size: fixed time ' || fixed_then
            END,
            CASE
                WHEN recommended_events > 2 * largest_chunk_events THEN 'no chunk was this large'
            END
        )
    END AS note,
    trace_id
FROM with_text
ORDER BY trace_id, seconds DESC, dataset;

COMMENT ON VIEW chunk_costs IS 'Cost model of chunks, and recommended chunk size. One row per dataset, highest compute time first. The model is seconds = fixed_seconds + seconds_per_event * events, fitted to the compute times of first results. Left out are failed attempts, results from a checkpoint, and the first chunks of each process, which also import modules. The model ignores memory, which grows with the chunk size, and work of the worker other than computing.';
COMMENT ON COLUMN chunk_costs.dataset IS 'Dataset name.';
COMMENT ON COLUMN chunk_costs.chunks IS 'Chunks available for the model.';
COMMENT ON COLUMN chunk_costs.first_chunks IS 'Chunks left out because their process was warming up: its first chunk, and those that ran at the same time.';
COMMENT ON COLUMN chunk_costs.outliers IS 'Chunks left out of the fit: residual above 4 standard deviations (estimated from the median) and above 1 % of the median time. If more than a quarter are this far off, all are kept. Null if no line was fitted.';
COMMENT ON COLUMN chunk_costs.sizes IS 'Number of distinct chunk sizes.';
COMMENT ON COLUMN chunk_costs.smallest_chunk_events IS 'Events of the smallest chunk. A fit requires sizes that span a factor of 2, with three chunks on either side of the middle.';
COMMENT ON COLUMN chunk_costs.median_events IS 'Median number of events per chunk.';
COMMENT ON COLUMN chunk_costs.largest_chunk_events IS 'Events of the largest chunk.';
COMMENT ON COLUMN chunk_costs.largest_file_events IS 'Events in the largest file, as far as its chunks were recorded. A chunk cannot be larger than its file.';
COMMENT ON COLUMN chunk_costs.is_known IS 'True if the fixed time is determined to within half of its value (2 standard errors), or is below 5 % of a chunk within errors. If false, note gives the reason.';
COMMENT ON COLUMN chunk_costs.fixed_seconds IS 'Time per chunk that does not depend on its size. If it is not known, the fitted value, if any.';
COMMENT ON COLUMN chunk_costs.fixed_error_seconds IS 'Standard error of the fitted fixed time.';
COMMENT ON COLUMN chunk_costs.seconds_per_event IS 'Additional time per event.';
COMMENT ON COLUMN chunk_costs.r2 IS 'Share of the variance explained by the line.';
COMMENT ON COLUMN chunk_costs.relative_error IS 'Median relative model error over the chunks available for the model, outliers included.';
COMMENT ON COLUMN chunk_costs.fixed_share IS 'Share of the compute time that was fixed cost.';
COMMENT ON COLUMN chunk_costs.min_events IS 'Smallest size at which the expected time of the run is within 2 % of the shortest. The expected time is the work per thread, plus the fixed time of all chunks per thread, plus half a chunk in which threads wait for the last ones. For a fixed time compatible with 0, its upper bound (2 standard errors) is used.';
COMMENT ON COLUMN chunk_costs.max_events IS 'Largest size at which the expected time of the run is within 2 % of the shortest.';
COMMENT ON COLUMN chunk_costs.recommended_events IS 'Recommended chunksize of a coffea Runner: median_events if between min_events and max_events, otherwise the nearer bound, rounded to two digits within the bounds. Never more than largest_file_events.';
COMMENT ON COLUMN chunk_costs.note IS 'Effect and uncertainty of the recommendation, or the reason why there is none and how to obtain one.';
COMMENT ON COLUMN chunk_costs.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW datasets AS
WITH files AS (
    SELECT
        trace_id,
        dataset,
        filename,
        max(file_bytes) AS file_bytes,
        sum(bytes_read) FILTER (is_first_result) AS bytes_read
    FROM _chunks
    GROUP BY trace_id, dataset, filename, treename
),
shares AS (
    SELECT
        trace_id,
        dataset,
        sum(bytes_read) FILTER (file_bytes IS NOT NULL)
            / nullif(sum(file_bytes) FILTER (bytes_read IS NOT NULL), 0) AS file_read_ratio
    FROM files
    GROUP BY trace_id, dataset
),
totals AS (
    SELECT
        dataset,
        count(DISTINCT filename) AS files,
        count(*) FILTER (is_first_result) AS chunks,
        count(*) FILTER (is_chunk) AS chunk_attempts,
        try_cast(CASE
            WHEN count(*) FILTER (is_first_result) = 0 THEN 0
            ELSE sum(events) FILTER (is_first_result)
        END AS BIGINT) AS events,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
        sum(compute_seconds) AS compute_seconds,
        sum(compute_seconds) FILTER (_is_kept(outcome, discarded.seq)) AS kept_seconds,
        sum(events) FILTER (is_first_result)
            / nullif(sum(compute_seconds) FILTER (from_checkpoint IS NOT TRUE), 0)
            AS events_per_second,
        try_cast(sum(output_bytes) AS BIGINT) AS output_bytes,
        count(*) FILTER (_is_failed(outcome)) AS failed_attempts,
        sum(bytes_read) / nullif(sum(compute_seconds) FILTER (bytes_read IS NOT NULL), 0)
            AS bytes_per_second,
        sum(compute_seconds) / nullif(sum(sum(compute_seconds)) OVER (PARTITION BY trace_id), 0)
            AS compute_share,
        median(whole_seconds) FILTER (outcome = 'memory') AS median_compute_seconds,
        max(whole_seconds) FILTER (outcome = 'memory') AS max_compute_seconds,
        _relative_iqr(event_seconds) AS relative_iqr,
        arg_min(filename, (-event_seconds, filename)) FILTER (event_seconds IS NOT NULL)
            AS slowest_file,
        sum(process_seconds) AS process_seconds,
        sum(open_seconds) AS open_seconds,
        sum(read_seconds) AS read_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(wait_seconds) AS wait_seconds,
        try_cast(sum(requests) AS BIGINT) AS requests,
        try_cast(sum(compressed_bytes) AS BIGINT) AS compressed_bytes,
        try_cast(sum(uncompressed_bytes) AS BIGINT) AS uncompressed_bytes,
        sum(unpacked_bytes) / nullif(sum(packed_bytes), 0) AS compression_ratio,
        avg(branches_read / nullif(file_branches, 0)) FILTER (is_first_result) AS branch_share,
        count(*) FILTER (is_first_result AND from_checkpoint) AS checkpointed_chunks,
        sum(bytes_read) FILTER (is_first_result)
            / nullif(sum(events) FILTER (is_first_result AND bytes_read IS NOT NULL), 0)
            AS bytes_per_event,
        trace_id
    FROM _file_attempts
    LEFT JOIN _discarded_results AS discarded USING (seq)
    GROUP BY trace_id, dataset
)
SELECT
    totals.* EXCLUDE (branch_share, checkpointed_chunks, kept_seconds, bytes_per_event, trace_id),
    branch_share,
    shares.file_read_ratio,
    checkpointed_chunks,
    kept_seconds,
    bytes_per_event,
    totals.trace_id
FROM totals
LEFT JOIN shares
    ON totals.trace_id = shares.trace_id AND totals.dataset IS NOT DISTINCT FROM shares.dataset
ORDER BY totals.trace_id, compute_seconds DESC NULLS LAST, totals.dataset;

COMMENT ON VIEW datasets IS 'Totals by dataset. One row per dataset, highest compute time first. A dataset whose files could not be read has no chunks and no events. Sums cover measured values only, and are null if nothing was measured.';
COMMENT ON COLUMN datasets.dataset IS 'Dataset name.';
COMMENT ON COLUMN datasets.files IS 'Files of which a chunk was attempted, or whose number of entries could not be read: those in view files.';
COMMENT ON COLUMN datasets.chunks IS 'Chunks processed. A chunk that was recomputed after its result was lost counts once; a chunk whose key was submitted again counts again.';
COMMENT ON COLUMN datasets.chunk_attempts IS 'Chunk attempts.';
COMMENT ON COLUMN datasets.events IS 'Events in these chunks. Events of results from a checkpoint are unknown.';
COMMENT ON COLUMN datasets.bytes_read IS 'Bytes read by all attempts. Null if not measured.';
COMMENT ON COLUMN datasets.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN datasets.events_per_second IS 'events / compute_seconds: rate of one thread, failed and repeated attempts included, results from a checkpoint excluded.';
COMMENT ON COLUMN datasets.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN datasets.failed_attempts IS 'Attempts that erred, were retried, were lost with their worker, or were skipped, failed reads of the number of entries included.';
COMMENT ON COLUMN datasets.bytes_per_second IS 'bytes_read divided by the compute time of the attempts that measured it: rate of one thread.';
COMMENT ON COLUMN datasets.compute_share IS 'Share of the compute time of all chunk attempts.';
COMMENT ON COLUMN datasets.median_compute_seconds IS 'Median compute time of successful attempts.';
COMMENT ON COLUMN datasets.max_compute_seconds IS 'Maximum compute time of successful attempts.';
COMMENT ON COLUMN datasets.relative_iqr IS 'Interquartile range of the seconds per event of the chunks, divided by their median.';
COMMENT ON COLUMN datasets.slowest_file IS 'File of the chunk with the most seconds per event; the first by name in case of a tie.';
COMMENT ON COLUMN datasets.process_seconds IS 'Processor time of all attempts.';
COMMENT ON COLUMN datasets.open_seconds IS 'File opening time of all attempts.';
COMMENT ON COLUMN datasets.read_seconds IS 'Column read time of all attempts.';
COMMENT ON COLUMN datasets.cpu_seconds IS 'CPU time of all attempts.';
COMMENT ON COLUMN datasets.wait_seconds IS 'Time without CPU of all attempts.';
COMMENT ON COLUMN datasets.requests IS 'Requests of all attempts.';
COMMENT ON COLUMN datasets.compressed_bytes IS 'Size in the files of the branch data read by all attempts.';
COMMENT ON COLUMN datasets.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN datasets.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, where both are known.';
COMMENT ON COLUMN datasets.branch_share IS 'Share of the branches of a file that was read, averaged over the chunks.';
COMMENT ON COLUMN datasets.file_read_ratio IS 'Bytes read by processed chunks divided by the size of their files. Can exceed 1, since each chunk opens the file again.';
COMMENT ON COLUMN datasets.checkpointed_chunks IS 'Chunks whose result came from a checkpoint.';
COMMENT ON COLUMN datasets.kept_seconds IS 'Compute time of attempts whose result was kept, as in chunks.kept.';
COMMENT ON COLUMN datasets.bytes_per_event IS 'Bytes read per event, over processed chunks that measured it.';
COMMENT ON COLUMN datasets.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW section_totals AS
WITH computing AS (
    SELECT trace_id, dataset, sum(compute_seconds) AS compute_seconds
    FROM _chunks
    GROUP BY trace_id, dataset
),
totals AS (
    SELECT
        dataset,
        name,
        count(*) AS executions,
        count(DISTINCT (key, run_id)) AS attempts,
        count(exception) AS failures,
        sum(seconds) AS seconds,
        avg(seconds) AS mean_seconds,
        median(seconds) AS median_seconds,
        max(seconds) AS max_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
        round(avg(memory_delta_bytes))::BIGINT AS mean_memory_delta_bytes,
        min(memory_delta_bytes) AS min_memory_delta_bytes,
        max(memory_delta_bytes) AS max_memory_delta_bytes,
        trace_id
    FROM sections
    GROUP BY trace_id, dataset, name
)
SELECT
    totals.* EXCLUDE (trace_id),
    totals.seconds / nullif(computing.compute_seconds, 0) AS compute_share,
    totals.trace_id
FROM totals
LEFT JOIN computing
    ON totals.trace_id = computing.trace_id
    AND totals.dataset IS NOT DISTINCT FROM computing.dataset
ORDER BY totals.trace_id, totals.seconds DESC NULLS LAST, totals.dataset, totals.name;

COMMENT ON VIEW section_totals IS 'Totals by user-named section. One row per dataset and section, longest first. Sections can be nested, so totals need not add up. Empty if no sections were used.';
COMMENT ON COLUMN section_totals.dataset IS 'Dataset of the chunks. Null for other tasks.';
COMMENT ON COLUMN section_totals.name IS 'Section name.';
COMMENT ON COLUMN section_totals.executions IS 'Number of times the section ran.';
COMMENT ON COLUMN section_totals.attempts IS 'Task attempts that ran the section.';
COMMENT ON COLUMN section_totals.failures IS 'Number of times the section ended with an exception.';
COMMENT ON COLUMN section_totals.seconds IS 'Total wall time.';
COMMENT ON COLUMN section_totals.mean_seconds IS 'Mean wall time of an execution.';
COMMENT ON COLUMN section_totals.median_seconds IS 'Median wall time of an execution.';
COMMENT ON COLUMN section_totals.max_seconds IS 'Maximum wall time of an execution.';
COMMENT ON COLUMN section_totals.cpu_seconds IS 'Total CPU time.';
COMMENT ON COLUMN section_totals.bytes_read IS 'Total bytes requested from the source.';
COMMENT ON COLUMN section_totals.mean_memory_delta_bytes IS 'Mean change of process memory during an execution.';
COMMENT ON COLUMN section_totals.min_memory_delta_bytes IS 'Minimum change of process memory.';
COMMENT ON COLUMN section_totals.max_memory_delta_bytes IS 'Maximum change of process memory.';
COMMENT ON COLUMN section_totals.compute_share IS 'seconds as a share of the compute time of all chunk attempts of the dataset.';
COMMENT ON COLUMN section_totals.trace_id IS 'ID of the trace.';

-- Totals of each run: one row per trace.
CREATE OR REPLACE TABLE _run AS
WITH runs AS (
    SELECT
        trace_id,
        _clip_negative(max(end_t) - min(processing_t)) AS busy_seconds,
        sum(compute_seconds) AS compute_seconds,
        sum(compute_seconds) FILTER (kept) AS kept_seconds,
        count(outcome) AS task_runs,
        count(*) FILTER (outcome = 'memory') AS memory,
        count(*) FILTER (outcome = 'erred') AS erred,
        count(*) FILTER (outcome = 'retried') AS retried,
        count(*) FILTER (outcome = 'lost') AS lost,
        count(*) FILTER (outcome = 'rescheduled') AS rescheduled,
        count(*) FILTER (outcome = 'cancelled') AS cancelled,
        count(*) FILTER (outcome = 'unfinished') AS unfinished,
        sum(nbytes) AS output_bytes,
        sum(transfer_seconds) AS transfer_seconds,
        sum(compute_seconds) FILTER (role = 'merge') AS merge_seconds
    FROM (
        SELECT
            trace_id, outcome, end_t, compute_seconds, nbytes, transfer_seconds, role,
            -- Tasks that were processing when recording began were dispatched before.
            coalesce(processing_t, start_t) AS processing_t,
            _is_kept(outcome, discarded.seq) AS kept
        FROM _task_runs
        INNER JOIN _cluster_size USING (trace_id)
        LEFT JOIN _discarded_results AS discarded USING (seq)
        UNION ALL BY NAME
        SELECT
            trace_id, processing_t, end_t, compute_seconds, output_bytes AS nbytes,
            outcome = 'memory' AS kept
        FROM _chunks
        WHERE NOT has_task
    )
    GROUP BY trace_id
),
submitted AS (
    SELECT trace_id, count(*) AS tasks FROM _tasks GROUP BY trace_id
),
chunk_runs AS (
    SELECT
        trace_id,
        count(*) FILTER (is_first_result) AS chunks,
        count(*) AS chunk_attempts,
        count(*) FILTER (_is_failed(outcome)) AS failed_chunks,
        count(*) FILTER (outcome = 'skipped') AS skipped,
        count(*) FILTER (is_first_result AND from_checkpoint) AS checkpointed_chunks,
        sum(events) FILTER (is_first_result) AS events,
        _clip_negative(
            max(end_t) - min(coalesce(processing_t, if(has_task, cluster.start_t, NULL)))
        ) AS chunk_wall_seconds,
        sum(compute_seconds) AS chunk_seconds,
        sum(process_seconds) AS process_seconds,
        -- Chunks cut off by a time range are excluded.
        avg(process_seconds) FILTER (
            is_first_result AND compute_seconds IS NOT DISTINCT FROM whole_seconds
        ) AS mean_process_seconds,
        sum(events) FILTER (is_first_result AND process_seconds IS NOT NULL)
            / nullif(sum(process_seconds), 0) AS events_per_process_second,
        sum(open_seconds) AS open_seconds,
        sum(read_seconds) AS read_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(wait_seconds) AS wait_seconds,
        sum(bytes_read) AS bytes_read,
        max(memory_peak_bytes) AS peak_memory_bytes,
        sum(compressed_bytes) AS compressed_bytes,
        sum(uncompressed_bytes) AS uncompressed_bytes,
        sum(unpacked_bytes) / nullif(sum(packed_bytes), 0) AS compression_ratio
    FROM _chunks
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    GROUP BY trace_id
),
memory AS (
    SELECT trace_id, max(memory_bytes) AS peak_memory_bytes
    FROM cluster_samples
    GROUP BY trace_id
),
worker_memory AS (
    SELECT
        trace_id,
        max(metrics.memory) AS peak_worker_memory_bytes,
        round(avg(metrics.memory))::BIGINT AS mean_worker_memory_bytes
    FROM raw.worker_sample
    GROUP BY trace_id
),
killed_memory AS (
    SELECT trace_id, max(kill_memory_bytes) AS peak_memory_bytes
    FROM _worker_removals
    GROUP BY trace_id
),
failed AS (
    SELECT trace_id, count(*) AS failures FROM failures GROUP BY trace_id
),
skipped_files AS (
    SELECT trace_id, count(*) FILTER (is_skipped) AS skipped_files
    FROM _unread_files
    GROUP BY trace_id
),
lost_records AS (
    SELECT trace_id, sum(records) AS lost_records
    FROM loss
    WHERE reason <> 'more records than were written'
    GROUP BY trace_id
)
SELECT
    cluster.start_t,
    cluster.stop_t,
    cluster.stop_t - cluster.start_t AS wall_seconds,
    runs.busy_seconds,
    cluster.workers,
    cluster.peak_workers,
    cluster.peak_nthreads,
    cluster.core_seconds,
    runs.compute_seconds,
    runs.compute_seconds / nullif(cluster.core_seconds, 0) AS core_efficiency,
    -- Attempts without any task record: those were lost.
    if(runs.task_runs > 0, submitted.tasks, coalesce(submitted.tasks, 0)) AS tasks,
    coalesce(runs.task_runs, 0) AS task_runs,
    coalesce(runs.memory, 0) AS memory,
    coalesce(runs.erred, 0) AS erred,
    coalesce(runs.retried, 0) AS retried,
    coalesce(runs.lost, 0) AS lost,
    coalesce(runs.rescheduled, 0) AS rescheduled,
    coalesce(runs.cancelled, 0) AS cancelled,
    coalesce(runs.unfinished, 0) AS unfinished,
    coalesce(failed.failures, 0) AS failures,
    coalesce(chunk_runs.chunks, 0) AS chunks,
    coalesce(chunk_runs.chunk_attempts, 0) AS chunk_attempts,
    try_cast(
        CASE WHEN coalesce(chunk_runs.chunks, 0) = 0 THEN 0 ELSE chunk_runs.events END AS BIGINT
    ) AS events,
    chunk_runs.events / nullif(chunk_runs.chunk_wall_seconds, 0) AS events_per_second,
    chunk_runs.chunk_wall_seconds,
    try_cast(chunk_runs.bytes_read AS BIGINT) AS bytes_read,
    try_cast(runs.output_bytes AS BIGINT) AS output_bytes,
    runs.transfer_seconds,
    -- Between ticks, at least as much as the worker that was killed.
    greatest(memory.peak_memory_bytes, killed_memory.peak_memory_bytes) AS peak_memory_bytes,
    try_cast(coalesce(lost_records.lost_records, 0) AS BIGINT) AS lost_records,
    coalesce(chunk_runs.failed_chunks, 0) AS failed_chunks,
    coalesce(chunk_runs.skipped, 0) AS skipped,
    coalesce(chunk_runs.checkpointed_chunks, 0) AS checkpointed_chunks,
    chunk_runs.chunk_seconds,
    runs.merge_seconds,
    chunk_runs.process_seconds,
    chunk_runs.mean_process_seconds,
    chunk_runs.open_seconds,
    chunk_runs.read_seconds,
    chunk_runs.cpu_seconds,
    chunk_runs.wait_seconds,
    chunk_runs.events_per_process_second,
    chunk_runs.events / nullif(cluster.core_seconds, 0) AS events_per_core_second,
    chunk_runs.bytes_read / nullif(chunk_runs.chunk_wall_seconds, 0) AS bytes_per_second,
    try_cast(chunk_runs.compressed_bytes AS BIGINT) AS compressed_bytes,
    try_cast(chunk_runs.uncompressed_bytes AS BIGINT) AS uncompressed_bytes,
    chunk_runs.compression_ratio,
    runs.compute_seconds / nullif(runs.busy_seconds, 0) AS speedup,
    cluster.worker_seconds / nullif(cluster.stop_t - cluster.start_t, 0) AS mean_workers,
    cluster.core_seconds / nullif(cluster.stop_t - cluster.start_t, 0) AS mean_nthreads,
    greatest(
        worker_memory.peak_worker_memory_bytes,
        chunk_runs.peak_memory_bytes,
        killed_memory.peak_memory_bytes
    ) AS peak_worker_memory_bytes,
    worker_memory.mean_worker_memory_bytes,
    runs.kept_seconds,
    coalesce(skipped_files.skipped_files, 0) AS skipped_files,
    cluster.trace_id
FROM _cluster_size AS cluster
LEFT JOIN runs USING (trace_id)
LEFT JOIN submitted USING (trace_id)
LEFT JOIN chunk_runs USING (trace_id)
LEFT JOIN memory USING (trace_id)
LEFT JOIN worker_memory USING (trace_id)
LEFT JOIN killed_memory USING (trace_id)
LEFT JOIN failed USING (trace_id)
LEFT JOIN lost_records USING (trace_id)
LEFT JOIN skipped_files USING (trace_id);

-- Offset of the clock of each log, from -1 s to 1 s (old versions of Darshan record whole
-- seconds). Score of an offset: how many of at most 300 calls lie within an attempt, plus how many
-- attempts contain a call. Offsets that score at least 95 % of the best are plausible; of several
-- ranges, all from the one nearest to zero to the one with the best score.
CREATE OR REPLACE VIEW _io_clocks AS
WITH extents AS (
    SELECT trace_id, worker, min(start_t) AS start_t, max(stop_t) AS stop_t
    FROM _io_runs
    GROUP BY trace_id, worker
),
calls AS (
    SELECT
        io.rowid AS call,
        io.source,
        io.trace_id,
        jobs.worker,
        io.start_t,
        io.stop_t,
        row_number() OVER (PARTITION BY io.trace_id, io.source ORDER BY io.rowid) - 1 AS n,
        count(*) OVER (PARTITION BY io.trace_id, io.source) AS calls
    FROM raw.io_segment AS io
    INNER JOIN _io_jobs AS jobs USING (trace_id, source)
    INNER JOIN extents ON extents.trace_id = io.trace_id AND extents.worker = jobs.worker
    WHERE io.start_t <= extents.stop_t + 1 AND io.stop_t >= extents.start_t - 1
),
fits AS (
    SELECT
        calls.trace_id,
        calls.source,
        call,
        run.seq AS run,
        greatest(run.start_t - calls.start_t, -1) AS least_offset,
        least(run.stop_t - calls.stop_t, 1) AS most_offset
    FROM calls
    INNER JOIN _io_runs AS run
        ON run.trace_id = calls.trace_id
        AND run.worker = calls.worker
        AND run.start_t - calls.start_t <= 1
        AND run.stop_t - calls.stop_t >= -1
        AND run.start_t - calls.start_t <= run.stop_t - calls.stop_t
    WHERE n % ceil(calls / 300)::BIGINT = 0
),
items AS (
    SELECT trace_id, source, 'call' AS item, call AS number, least_offset, most_offset FROM fits
    UNION ALL
    SELECT trace_id, source, 'run', run, least_offset, most_offset FROM fits
),
-- An item counts once, even if several of its ranges overlap.
begun AS (
    SELECT
        *,
        least_offset > coalesce(
            max(most_offset) OVER (
                PARTITION BY trace_id, source, item, number
                ORDER BY least_offset, most_offset
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            -2
        ) AS begins
    FROM items
),
numbered AS (
    SELECT
        *,
        count_if(begins) OVER (
            PARTITION BY trace_id, source, item, number
            ORDER BY least_offset, most_offset
            ROWS UNBOUNDED PRECEDING
        ) AS part
    FROM begun
),
ranges AS (
    SELECT trace_id, source, min(least_offset) AS least_offset, max(most_offset) AS most_offset
    FROM numbered
    GROUP BY trace_id, source, item, number, part
),
steps AS (
    SELECT trace_id, source, least_offset AS from_offset, 1 AS change FROM ranges
    UNION ALL
    SELECT trace_id, source, most_offset, -1 FROM ranges
),
scores AS (
    SELECT
        trace_id,
        source,
        from_offset,
        lead(from_offset) OVER position AS until_offset,
        sum(change) OVER (position ROWS UNBOUNDED PRECEDING) AS score,
        row_number() OVER position AS n
    FROM steps
    WINDOW position AS (PARTITION BY trace_id, source ORDER BY from_offset, change DESC)
),
plausible AS (
    SELECT
        *,
        n - row_number() OVER (PARTITION BY trace_id, source ORDER BY n) AS island
    FROM (
        FROM scores
        QUALIFY score >= 0.95 * max(score) OVER (PARTITION BY trace_id, source)
    )
),
islands AS (
    SELECT
        trace_id,
        source,
        min(from_offset) AS least_offset,
        max(until_offset) AS most_offset,
        max(score) AS score
    FROM plausible
    GROUP BY trace_id, source, island
)
-- Dask's delay varies by some milliseconds between heartbeats, whatever the score.
SELECT
    trace_id,
    source,
    least(best.least_offset, near.least_offset) - 0.002 AS least_offset,
    greatest(best.most_offset, near.most_offset) + 0.002 AS most_offset
FROM (
    SELECT
        trace_id,
        source,
        first(range ORDER BY score DESC, distance, range.least_offset) AS best,
        first(range ORDER BY distance, range.least_offset) AS near
    FROM (
        SELECT
            trace_id,
            source,
            score,
            greatest(least_offset, -most_offset, 0) AS distance,
            {least_offset: least_offset, most_offset: most_offset} AS range
        FROM islands
    )
    GROUP BY trace_id, source
);

-- Changes for buckets of the default length, from which two views and several figures are computed.
CREATE OR REPLACE TABLE _bucket_changes AS FROM _changes_by(NULL);

-- Records: chunk
-- Separate the effects of files and workers on chunk durations. The time of a chunk divided by
-- the time expected from its dataset and size is modeled as a file factor times a worker
-- factor. The factors are found by alternately dividing by medians (Tukey's median polish) in a
-- table of files and workers, whose cells are the medians of the ratios. With cells instead of
-- chunks, a worker that read most of its chunks from a slow file is not slow itself. Factors that
-- cannot be separated are 1: a file read by one of several workers, or a worker that read one
-- file. A busy machine makes all chunks of a period slow, so each chunk is first compared with
-- those of other files that ran at the same time.
CREATE OR REPLACE TABLE _relative_duration AS
WITH expected AS (
    SELECT
        *,
        -- Number of a time slot in which a thread processes about two chunks.
        floor(begin_t / nullif(2 * median(whole_seconds) OVER (PARTITION BY trace_id), 0)) AS slot
    FROM _chunk_ratios
),
numbered AS (
    SELECT
        trace_id,
        process,
        begin_t,
        slot,
        dense_rank() OVER (ORDER BY trace_id, dataset, filename, treename) AS file,
        dense_rank() OVER (ORDER BY trace_id, dataset) AS of_dataset,
        ratio / median(ratio) OVER (PARTITION BY trace_id, dataset) AS ratio,
        dataset,
        filename,
        treename
    FROM expected
),
-- The usual ratio in a slot is the median over its files, or the lower of the two middle values, so
-- that the faster one of two files is the reference. A single file or a few chunks are no reference.
slots AS (
    SELECT
        trace_id,
        slot,
        count(*) > 1 AND sum(chunks) > 5 AS is_comparable,
        quantile_disc(ratio, 0.5) AS ratio
    FROM (
        SELECT trace_id, slot, file, median(ratio) AS ratio, count(*) AS chunks
        FROM numbered
        GROUP BY trace_id, slot, file
    )
    GROUP BY trace_id, slot
),
ratios AS (
    SELECT
        numbered.* REPLACE (
            numbered.ratio / CASE WHEN slots.is_comparable THEN slots.ratio ELSE 1 END AS ratio
        ),
        NOT slots.is_comparable AS is_alone,
        min(process) OVER (PARTITION BY numbered.trace_id)
            < max(process) OVER (PARTITION BY numbered.trace_id) AS is_of_several,
        -- No other file had been opened.
        min(file) OVER until_then = max(file) OVER until_then AS is_first
    FROM numbered
    INNER JOIN slots
        ON numbered.trace_id = slots.trace_id AND numbered.slot IS NOT DISTINCT FROM slots.slot
    WINDOW until_then AS (PARTITION BY numbered.trace_id ORDER BY begin_t)
),
files AS (
    SELECT
        file,
        count(*) AS chunks,
        avg(is_alone::INTEGER) > 0.5 AS is_alone,
        avg(is_first::INTEGER) > 0.5 AS is_first,
        any_value(trace_id) AS trace_id,
        any_value(of_dataset) AS of_dataset,
        any_value(dataset) AS dataset,
        any_value(filename) AS filename,
        any_value(treename) AS treename
    FROM ratios
    GROUP BY file
    -- A single file of a dataset has factor 1.
    QUALIFY (count(DISTINCT process) > 1 OR NOT any_value(is_of_several))
        AND count(*) OVER (PARTITION BY any_value(of_dataset)) > 1
),
workers AS (
    SELECT process, count(*) AS chunks, any_value(trace_id) AS trace_id
    FROM ratios
    GROUP BY process
    HAVING count(DISTINCT file) > 1
),
cells AS (
    SELECT file, process, median(ratio) AS ratio
    FROM ratios
    GROUP BY file, process
),
-- The median, or the lower of the two middle values: the other one can be that of a slow worker.
files_1 AS (
    SELECT file, quantile_disc(ratio, 0.5) AS relative_duration
    FROM cells
    SEMI JOIN files USING (file)
    GROUP BY file
),
workers_1 AS (
    SELECT process, quantile_disc(ratio / coalesce(files_1.relative_duration, 1), 0.5) AS relative_duration
    FROM cells
    SEMI JOIN workers USING (process)
    LEFT JOIN files_1 USING (file)
    GROUP BY process
),
files_2 AS (
    SELECT file, median(ratio / coalesce(workers_1.relative_duration, 1)) AS relative_duration
    FROM ratios
    SEMI JOIN files USING (file)
    LEFT JOIN workers_1 USING (process)
    GROUP BY file
),
workers_2 AS (
    SELECT process, median(ratio / coalesce(files_2.relative_duration, 1)) AS relative_duration
    FROM ratios
    SEMI JOIN workers USING (process)
    LEFT JOIN files_2 USING (file)
    GROUP BY process
),
-- Residual after both factors are removed, as the standard deviation of logarithms.
noise AS (
    SELECT
        ratios.trace_id,
        1.4826 * mad(
            ln(
                ratio
                / coalesce(files_2.relative_duration, 1)
                / coalesce(workers_2.relative_duration, 1)
            )
        ) AS sigma
    FROM ratios
    LEFT JOIN files_2 USING (file)
    LEFT JOIN workers_2 USING (process)
    GROUP BY ratios.trace_id
),
separable AS (
    SELECT
        trace_id,
        of_dataset,
        dataset,
        filename,
        treename,
        NULL::BIGINT AS process,
        chunks,
        is_alone,
        is_first,
        relative_duration
    FROM files
    INNER JOIN files_2 USING (file)
    UNION ALL BY NAME
    SELECT trace_id, process, chunks, relative_duration
    FROM workers
    INNER JOIN workers_2 USING (process)
    QUALIFY count(*) OVER (PARTITION BY trace_id) > 1
),
-- The reference is the median, or the lower of the two middle values, so that the faster one of
-- two is the reference.
relative AS (
    SELECT * EXCLUDE (of_dataset) REPLACE (
        relative_duration / quantile_disc(relative_duration, 0.5)
            OVER (PARTITION BY trace_id, of_dataset, process IS NULL) AS relative_duration
    )
    FROM separable
),
compared AS (
    SELECT
        relative.*,
        -- The standard error of the median of normal values is 1.2533 times that of their mean.
        1.2533 * noise.sigma / sqrt(chunks) AS log_error,
        count(*) OVER peers AS peers,
        -- Half of them can be slow, such as the workers of a host: the faster half has the spread.
        1.4826 * median(-ln(relative_duration)) FILTER (relative_duration <= 1) OVER peers AS log_spread
    FROM relative
    INNER JOIN noise USING (trace_id)
    WINDOW peers AS (PARTITION BY trace_id, process IS NULL)
)
SELECT
    * EXCLUDE (is_alone, is_first, log_error, peers, log_spread),
    relative_duration * log_error AS relative_duration_error,
    -- Slow is a factor of 1.5 from at least 5 chunks that is 4 standard errors above 1 and, where
    -- 3 or more are compared, 4 times their spread. A factor of 2.5 is required where the
    -- comparison is weak: of two, or of a file that was read alone. A factor of 5 is required of a
    -- file that was read alone at the start of the run, which can be slow itself.
    chunks >= 5
        AND relative_duration >= CASE
            WHEN is_first THEN 5
            WHEN is_alone OR peers < 3 THEN 2.5
            ELSE 1.5
        END
        AND ln(relative_duration) > 4 * log_error
        AND (peers < 3 OR ln(relative_duration) > 4 * log_spread) AS is_slow
FROM compared;

CREATE OR REPLACE VIEW run AS SELECT * FROM _run ORDER BY trace_id;

COMMENT ON VIEW run IS 'Summary of the run. One row per trace.';
COMMENT ON COLUMN run.start_t IS 'First record, in seconds since the epoch.';
COMMENT ON COLUMN run.stop_t IS 'Last record, in seconds since the epoch.';
COMMENT ON COLUMN run.wall_seconds IS 'Duration of the recording.';
COMMENT ON COLUMN run.busy_seconds IS 'Time within the recording from the first dispatch of a task to the last end. Without a cluster, the same for chunks.';
COMMENT ON COLUMN run.workers IS 'Number of worker processes.';
COMMENT ON COLUMN run.peak_workers IS 'Maximum number of workers at a time.';
COMMENT ON COLUMN run.peak_nthreads IS 'Maximum number of threads at a time.';
COMMENT ON COLUMN run.core_seconds IS 'Available thread time: threads of each worker times its lifetime within the recording.';
COMMENT ON COLUMN run.compute_seconds IS 'Compute time that workers reported, of all attempts within the recording, failed ones included. Without a cluster, of chunk attempts. An attempt that is lost with its worker reports none; core_time has what is known of it.';
COMMENT ON COLUMN run.core_efficiency IS 'compute_seconds / core_seconds. Attempts lost with their worker are not included, as in compute_seconds.';
COMMENT ON COLUMN run.tasks IS 'Keys submitted. Null if there are attempts, but no record of a task.';
COMMENT ON COLUMN run.task_runs IS 'Task attempts.';
COMMENT ON COLUMN run.memory IS 'Attempts that succeeded.';
COMMENT ON COLUMN run.erred IS 'Attempts that failed for good.';
COMMENT ON COLUMN run.retried IS 'Attempts that failed and were retried.';
COMMENT ON COLUMN run.lost IS 'Attempts lost with their worker.';
COMMENT ON COLUMN run.rescheduled IS 'Attempts that raised Reschedule.';
COMMENT ON COLUMN run.cancelled IS 'Attempts cancelled because the result was no longer needed.';
COMMENT ON COLUMN run.unfinished IS 'Attempts without an end in the trace.';
COMMENT ON COLUMN run.failures IS 'Number of rows in failures.';
COMMENT ON COLUMN run.chunks IS 'Chunks processed. A chunk that was recomputed after its result was lost counts once.';
COMMENT ON COLUMN run.chunk_attempts IS 'Chunk attempts.';
COMMENT ON COLUMN run.events IS 'Events in these chunks. Events of results from a checkpoint are unknown.';
COMMENT ON COLUMN run.events_per_second IS 'events / chunk_wall_seconds: rate of the whole cluster.';
COMMENT ON COLUMN run.chunk_wall_seconds IS 'Time within the recording from the first dispatch of a chunk to the last end.';
COMMENT ON COLUMN run.bytes_read IS 'Bytes read by all chunk attempts. Null if not measured.';
COMMENT ON COLUMN run.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN run.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN run.peak_memory_bytes IS 'Peak memory of all worker processes together, over sampling ticks; at least the memory at which a nanny killed a worker.';
COMMENT ON COLUMN run.lost_records IS 'Number of records known to be missing; see loss.';
COMMENT ON COLUMN run.failed_chunks IS 'Chunk attempts that erred, were retried, were lost with their worker, or were skipped.';
COMMENT ON COLUMN run.skipped IS 'Chunk attempts whose exception was suppressed (skipbadfiles), so that the task succeeded without a result.';
COMMENT ON COLUMN run.checkpointed_chunks IS 'Processed chunks whose result came from a checkpoint.';
COMMENT ON COLUMN run.chunk_seconds IS 'Compute time of all chunk attempts.';
COMMENT ON COLUMN run.merge_seconds IS 'Compute time of merging chunk results.';
COMMENT ON COLUMN run.process_seconds IS 'Processor time of all chunk attempts, reading included. Null if not measured.';
COMMENT ON COLUMN run.mean_process_seconds IS 'Mean processor time of a processed chunk.';
COMMENT ON COLUMN run.open_seconds IS 'File opening time of all chunk attempts.';
COMMENT ON COLUMN run.read_seconds IS 'Column read time of all chunk attempts.';
COMMENT ON COLUMN run.cpu_seconds IS 'CPU time of all chunk attempts.';
COMMENT ON COLUMN run.wait_seconds IS 'Time without CPU of all chunk attempts.';
COMMENT ON COLUMN run.events_per_process_second IS 'events / process_seconds: rate of one thread that only processes.';
COMMENT ON COLUMN run.events_per_core_second IS 'events / core_seconds: rate per available thread, idle time included.';
COMMENT ON COLUMN run.bytes_per_second IS 'bytes_read / chunk_wall_seconds: rate of the whole cluster.';
COMMENT ON COLUMN run.compressed_bytes IS 'Size in the files of the branch data read by all chunk attempts.';
COMMENT ON COLUMN run.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN run.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, where both are known.';
COMMENT ON COLUMN run.speedup IS 'compute_seconds / busy_seconds: mean number of computing threads.';
COMMENT ON COLUMN run.mean_workers IS 'Mean number of workers over the recording.';
COMMENT ON COLUMN run.mean_nthreads IS 'Mean number of threads over the recording.';
COMMENT ON COLUMN run.peak_worker_memory_bytes IS 'Peak memory of a single worker process, at a sampling tick, during a measured chunk, or when its nanny killed it.';
COMMENT ON COLUMN run.mean_worker_memory_bytes IS 'Mean memory of a worker process, over workers and sampling ticks.';
COMMENT ON COLUMN run.kept_seconds IS 'Compute time of attempts whose result was kept, as in task_runs.kept. It can exceed the use ''kept result'' of core_time, which counts each second of a thread once, if a worker reports attempts that overlap.';
COMMENT ON COLUMN run.skipped_files IS 'Files that coffea skipped because their number of entries could not be read (skipbadfiles). Their events are missing.';
COMMENT ON COLUMN run.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW io_jobs AS
SELECT
    try_cast(jobs.value ->> '$.job_id' AS BIGINT) AS job_id,
    jobs.value ->> '$.executable' AS executable,
    try_cast(jobs.value ->> '$.processes' AS BIGINT) AS processes,
    jobs.start_t,
    jobs.stop_t,
    try_cast(jobs.value ->> '$.run_seconds' AS DOUBLE) AS run_seconds,
    jobs.start_t <= recording.stop_t AND jobs.stop_t >= recording.start_t AS within_run,
    json_keys(jobs.value -> '$.modules') AS modules,
    jobs.partial_modules,
    (jobs.value ->> '$.left_out[*]') AS skipped_modules,
    jobs.host,
    jobs.pid,
    jobs.worker,
    jobs.candidate_workers,
    (clock.least_offset + clock.most_offset) / 2 AS clock_offset_seconds,
    (clock.most_offset - clock.least_offset) / 2 AS clock_offset_error_seconds,
    jobs.versions ->> 'darshan' AS darshan_version,
    jobs.filename AS log,
    jobs.source,
    jobs.trace_id
FROM _io_jobs AS jobs
INNER JOIN _trace_range AS recording USING (trace_id)
LEFT JOIN _io_clocks AS clock USING (trace_id, source)
ORDER BY jobs.trace_id, jobs.start_t, jobs.source;

COMMENT ON VIEW io_jobs IS 'Jobs whose I/O was measured by Darshan. One row per imported log. Without MPI, each process is a job.';
COMMENT ON COLUMN io_jobs.job_id IS 'Job number of the batch system. Without one, the process id.';
COMMENT ON COLUMN io_jobs.executable IS 'Executable. Its arguments are not imported, since they can contain secrets.';
COMMENT ON COLUMN io_jobs.processes IS 'Processes of the job.';
COMMENT ON COLUMN io_jobs.start_t IS 'Start, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_jobs.stop_t IS 'End, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_jobs.run_seconds IS 'Duration reported by Darshan: at least 1 s in older versions.';
COMMENT ON COLUMN io_jobs.within_run IS 'True if the job overlaps the recording. If not, the log may belong to another run.';
COMMENT ON COLUMN io_jobs.modules IS 'I/O layers measured.';
COMMENT ON COLUMN io_jobs.partial_modules IS 'Layers for which Darshan reached its limit of records or memory, so that files opened later are missing. Also in loss.';
COMMENT ON COLUMN io_jobs.skipped_modules IS 'Layers that were not imported, since they do not describe file access.';
COMMENT ON COLUMN io_jobs.host IS 'Host name from Darshan. Recorded only with extended tracing (DXT).';
COMMENT ON COLUMN io_jobs.pid IS 'Process id, if the job was a single process: from the name of the log, otherwise the job number, which is the process id without a batch system.';
COMMENT ON COLUMN io_jobs.worker IS 'Address of the worker process: the only one with this process id during the job, or the only one of these on the same host.';
COMMENT ON COLUMN io_jobs.candidate_workers IS 'Number of worker processes with this process id during the job.';
COMMENT ON COLUMN io_jobs.clock_offset_seconds IS 'Estimated offset to add to the times of traced calls (DXT) so that they lie within the worker''s tasks. Null without such calls.';
COMMENT ON COLUMN io_jobs.clock_offset_error_seconds IS 'Half the width of the range of plausible offsets.';
COMMENT ON COLUMN io_jobs.darshan_version IS 'Darshan version.';
COMMENT ON COLUMN io_jobs.log IS 'Log file name.';
COMMENT ON COLUMN io_jobs.source IS 'ID of the log: the first 16 hexadecimal digits of its SHA-256.';
COMMENT ON COLUMN io_jobs.trace_id IS 'ID of the trace.';

-- Darshan does not record threads, and its clock is not that of Dask's times. A call belongs to an
-- attempt that computes during it at the plausible offsets between the clocks.
CREATE OR REPLACE VIEW io_segments AS
WITH calls AS (
    SELECT
        io.rowid AS seq,
        io.*,
        jobs.pid,
        jobs.worker AS of_worker,
        jobs.filename AS log
    FROM raw.io_segment AS io
    LEFT JOIN _io_jobs AS jobs USING (trace_id, source)
),
-- The share of the plausible offsets of the clock at which the call lies within the attempt.
fits AS (
    SELECT
        calls.seq,
        run.key,
        run.attempt,
        run.seq AS run,
        CASE
            WHEN clock.most_offset > clock.least_offset
                THEN (
                    least(run.stop_t - calls.stop_t, clock.most_offset)
                    - greatest(run.start_t - calls.start_t, clock.least_offset)
                ) / (clock.most_offset - clock.least_offset)
            ELSE 1
        END AS share
    FROM calls
    INNER JOIN _io_clocks AS clock USING (trace_id, source)
    INNER JOIN _io_runs AS run
        ON run.trace_id = calls.trace_id
        AND run.worker = calls.of_worker
        AND run.start_t - calls.start_t <= clock.most_offset
        AND run.stop_t - calls.stop_t >= clock.least_offset
        AND run.start_t - calls.start_t <= run.stop_t - calls.stop_t
),
runs AS (
    SELECT
        seq,
        list({key: key, attempt: attempt} ORDER BY share DESC, run) AS runs,
        max(share) / greatest(sum(share), 1) AS confidence
    FROM fits
    WHERE share > 0
    GROUP BY seq
)
SELECT
    calls.filename,
    calls.measured.module AS module,
    calls.activity AS operation,
    calls.measured.offset_bytes AS offset_bytes,
    calls.nbytes AS bytes,
    calls.start_t,
    calls.stop_t,
    calls.host,
    calls.measured.rank AS rank,
    calls.pid,
    calls.of_worker AS worker,
    CASE WHEN runs.confidence >= 0.95 THEN runs.runs[1].key END AS key,
    CASE WHEN runs.confidence >= 0.95 THEN runs.runs[1].attempt END AS attempt,
    CASE
        WHEN calls.of_worker IS NOT NULL
            THEN coalesce(list_transform(runs.runs, lambda run: run.key), [])
    END AS candidate_keys,
    runs.confidence,
    calls.log,
    calls.source,
    calls.trace_id
FROM calls
LEFT JOIN runs USING (seq)
ORDER BY calls.trace_id, calls.seq;

COMMENT ON VIEW io_segments IS 'Read and write calls traced by Darshan DXT. One row per call and I/O layer. Empty unless a log with extended tracing (DXT) was imported.';
COMMENT ON COLUMN io_segments.filename IS 'File path. The file''s number in the log if Darshan did not record a path.';
COMMENT ON COLUMN io_segments.module IS 'I/O layer: POSIX or MPI-IO. POSIX calls made by MPI-IO have rows of their own.';
COMMENT ON COLUMN io_segments.operation IS 'read or write.';
COMMENT ON COLUMN io_segments.offset_bytes IS 'Start offset in the file.';
COMMENT ON COLUMN io_segments.bytes IS 'Bytes read or written.';
COMMENT ON COLUMN io_segments.start_t IS 'Start of the call, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_segments.stop_t IS 'End, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN io_segments.host IS 'Host name from Darshan.';
COMMENT ON COLUMN io_segments.rank IS 'Rank of the process in its job.';
COMMENT ON COLUMN io_segments.pid IS 'Process id, if the job was a single process: from the name of the log, otherwise the job number, which is the process id without a batch system.';
COMMENT ON COLUMN io_segments.worker IS 'Address of the worker process. See io_jobs for how it is determined.';
COMMENT ON COLUMN io_segments.key IS 'Task that probably made the call: the first of candidate_keys if confidence is at least 0.95, else null. Darshan records neither tasks nor threads.';
COMMENT ON COLUMN io_segments.attempt IS 'Attempt number of this task.';
COMMENT ON COLUMN io_segments.candidate_keys IS 'Keys of the tasks that the worker may have been computing during the call, the most probable first. Null if the worker is unknown.';
COMMENT ON COLUMN io_segments.confidence IS 'Confidence in the first of candidate_keys, from 0 to 1: share of the plausible offsets between Darshan''s clock and Dask''s times (io_jobs.clock_offset_seconds) at which the worker computed this task during the call, divided among tasks computed at the same time.';
COMMENT ON COLUMN io_segments.log IS 'Log file name.';
COMMENT ON COLUMN io_segments.source IS 'ID of the log, as in io_jobs.';
COMMENT ON COLUMN io_segments.trace_id IS 'ID of the trace.';

-- Sum of amount times seconds in each bucket, by process or of all processes together, exactly.
-- Within a bucket the level before it is extended, and each change adds its amount times the rest
-- of the bucket. Buckets of processes that have the default length are wider if there are more than
-- a million of them.
CREATE OR REPLACE MACRO _bucket_sums(bucket_seconds, by_process) AS TABLE
WITH timeline AS (
    SELECT *, width * factor AS wide
    FROM (
        SELECT
            trace_id,
            start_t,
            extent,
            width,
            buckets,
            CASE
                WHEN by_process AND bucket_seconds IS NULL
                    THEN _widening(buckets, processes, 1000000, 8)
                ELSE 1
            END::BIGINT AS factor
        FROM _buckets(bucket_seconds)
        LEFT JOIN (
            SELECT trace_id, count(*) AS processes
            FROM _workers
            GROUP BY trace_id
        ) USING (trace_id)
    )
),
all_changes AS (
    FROM _bucket_changes
    WHERE bucket_seconds IS NULL
    UNION ALL
    FROM _changes_by(bucket_seconds)
    WHERE bucket_seconds IS NOT NULL
),
changes AS (
    SELECT
        trace_id,
        CASE WHEN by_process THEN process END AS process,
        what,
        all_changes.bucket // factor AS bucket,
        sum(change) AS change,
        sum(
            within + change * (
                least((all_changes.bucket // factor + 1) * wide, extent)
                - least((all_changes.bucket + 1) * width, extent)
            )
        ) AS within
    FROM all_changes
    INNER JOIN timeline USING (trace_id)
    GROUP BY ALL
),
-- A level holds from the bucket in which it changed to the next change.
levels AS (
    SELECT
        trace_id,
        process,
        what,
        bucket,
        within,
        coalesce(sum(change) OVER before, 0) AS level_before,
        coalesce(sum(change) OVER before, 0) + change AS level,
        -- coalesce instead of the default of lead(), which is lost in a database written by
        -- DuckDB 1.5.
        coalesce(lead(bucket) OVER in_order, bucket + 1) AS until_bucket
    FROM changes
    WINDOW
        in_order AS (PARTITION BY trace_id, process, what ORDER BY bucket),
        before AS (
            PARTITION BY trace_id, process, what
            ORDER BY bucket
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
filled AS (
    SELECT *, unnest(range(bucket, until_bucket)) AS held_bucket
    FROM levels
)
SELECT
    process,
    what,
    held_bucket AS bucket,
    timeline.start_t + held_bucket * wide AS t,
    least(wide, extent - held_bucket * wide) AS seconds,
    greatest(
        CASE
            WHEN held_bucket = filled.bucket THEN level_before * seconds + within
            ELSE level * seconds
        END,
        0
    ) AS amount,
    trace_id
FROM filled
INNER JOIN timeline USING (trace_id);

CREATE OR REPLACE VIEW workers AS
WITH runs AS (
    SELECT
        process.process,
        count(*) AS task_runs,
        sum(run.compute_seconds) AS compute_seconds,
        sum(run.nbytes) AS output_bytes
    FROM _task_runs AS run
    ASOF INNER JOIN _workers AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        -- Attempts that began before the recording belong to the first process of the address.
        AND coalesce(run.processing_t, '-infinity') >= process.from_t
    GROUP BY process.process
),
chunk_runs AS (
    SELECT
        process,
        count(*) FILTER (outcome = 'memory') AS chunks,
        sum(compute_seconds) FILTER (NOT has_task) AS alone_seconds,
        sum(output_bytes) FILTER (NOT has_task) AS alone_output_bytes,
        count(*) FILTER (_is_failed(outcome)) AS failed_chunks,
        try_cast(CASE
            WHEN count(*) FILTER (outcome = 'memory') = 0 THEN 0
            ELSE sum(events)
        END AS BIGINT) AS events,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
        sum(compute_seconds) AS chunk_seconds,
        sum(events) / nullif(sum(compute_seconds) FILTER (from_checkpoint IS NOT TRUE), 0)
            AS events_per_second,
        sum(bytes_read) / nullif(sum(compute_seconds) FILTER (bytes_read IS NOT NULL), 0)
            AS bytes_per_second,
        median(whole_seconds) FILTER (outcome = 'memory') AS median_chunk_seconds,
        max(whole_seconds) FILTER (outcome = 'memory') AS max_chunk_seconds,
        _relative_iqr(event_seconds) AS relative_iqr,
        arg_min(filename, (-event_seconds, filename)) FILTER (event_seconds IS NOT NULL)
            AS slowest_file,
        max(memory_peak_bytes) AS peak_memory_bytes
    FROM _chunks
    WHERE process IS NOT NULL
    GROUP BY process
),
samples AS (
    SELECT process.process, max(sample.metrics.memory) AS peak_memory_bytes
    FROM raw.worker_sample AS sample
    ASOF INNER JOIN _workers AS process
        ON sample.trace_id = process.trace_id
        AND sample.worker = process.worker
        AND sample.t >= process.from_t
    GROUP BY process.process
)
SELECT
    workers.worker,
    workers.name,
    workers.host,
    workers.nthreads,
    workers.memory_limit_bytes,
    workers.added_t,
    workers.removed_t,
    departures.reason AS removal_reason,
    coalesce(runs.task_runs, 0) AS task_runs,
    coalesce(runs.compute_seconds, 0) + coalesce(chunk_runs.alone_seconds, 0) AS compute_seconds,
    try_cast(
        coalesce(runs.output_bytes, 0) + coalesce(chunk_runs.alone_output_bytes, 0) AS BIGINT
    ) AS output_bytes,
    greatest(
        samples.peak_memory_bytes, chunk_runs.peak_memory_bytes, departures.kill_memory_bytes
    ) AS peak_memory_bytes,
    coalesce(chunk_runs.chunks, 0) AS chunks,
    CASE WHEN chunk_runs.process IS NULL THEN 0 ELSE chunk_runs.events END AS events,
    chunk_runs.bytes_read,
    workers.server_id,
    coalesce(chunk_runs.failed_chunks, 0) AS failed_chunks,
    chunk_runs.chunk_seconds,
    chunk_runs.chunk_seconds
        / nullif(sum(chunk_runs.chunk_seconds) OVER (PARTITION BY workers.trace_id), 0)
        AS chunk_share,
    chunk_runs.events_per_second,
    chunk_runs.bytes_per_second,
    chunk_runs.median_chunk_seconds,
    chunk_runs.max_chunk_seconds,
    chunk_runs.relative_iqr,
    chunk_runs.slowest_file,
    relative_duration.relative_duration,
    relative_duration.relative_duration_error,
    relative_duration.is_slow,
    added.pid,
    added.nanny,
    added.resources,
    added.local_directory,
    workers.trace_id
FROM _workers AS workers
LEFT JOIN _worker_removals AS departures USING (process)
LEFT JOIN raw.worker_added AS added ON workers.seq = added.rowid
LEFT JOIN runs USING (process)
LEFT JOIN chunk_runs USING (process)
LEFT JOIN samples USING (process)
LEFT JOIN _relative_duration AS relative_duration USING (process)
ORDER BY workers.process;

COMMENT ON VIEW workers IS 'Worker processes, with totals and memory. One row per process, in the order in which they joined; addresses without a recorded start come first. Records of a reused address belong to the process that joined last, or the first one if earlier.';
COMMENT ON COLUMN workers.worker IS 'Address. A later process can reuse it.';
COMMENT ON COLUMN workers.name IS 'Worker name, which a restarted worker keeps.';
COMMENT ON COLUMN workers.host IS 'Host name or address.';
COMMENT ON COLUMN workers.nthreads IS 'Number of threads that compute.';
COMMENT ON COLUMN workers.memory_limit_bytes IS 'Memory limit. Null if there is none.';
COMMENT ON COLUMN workers.added_t IS 'Time of joining or start of the recording, in seconds since the epoch. Null if not recorded.';
COMMENT ON COLUMN workers.removed_t IS 'Time of leaving, in seconds since the epoch. Null if the worker did not leave.';
COMMENT ON COLUMN workers.removal_reason IS 'Reason for leaving: killed by its nanny at a given memory, or else Dask''s stimulus_id without the time.';
COMMENT ON COLUMN workers.task_runs IS 'Task attempts that ran on the worker or were assigned to it.';
COMMENT ON COLUMN workers.compute_seconds IS 'Compute time of its attempts. Without a cluster, of its chunks.';
COMMENT ON COLUMN workers.output_bytes IS 'Size of its results.';
COMMENT ON COLUMN workers.peak_memory_bytes IS 'Peak process memory, at a sampling tick, during a measured chunk, or when its nanny killed it.';
COMMENT ON COLUMN workers.chunks IS 'Chunks processed successfully.';
COMMENT ON COLUMN workers.events IS 'Events in these chunks. Events of results from a checkpoint are unknown.';
COMMENT ON COLUMN workers.bytes_read IS 'Bytes read by chunks. Null if not measured.';
COMMENT ON COLUMN workers.server_id IS 'ID of the process.';
COMMENT ON COLUMN workers.failed_chunks IS 'Chunk attempts that erred, were retried, were lost, or were skipped.';
COMMENT ON COLUMN workers.chunk_seconds IS 'Compute time of all its chunk attempts.';
COMMENT ON COLUMN workers.chunk_share IS 'Share of the compute time of all chunk attempts.';
COMMENT ON COLUMN workers.events_per_second IS 'events / chunk_seconds: rate of one thread, failed attempts included, results from a checkpoint excluded.';
COMMENT ON COLUMN workers.bytes_per_second IS 'bytes_read divided by the compute time of the attempts that measured it: rate of one thread.';
COMMENT ON COLUMN workers.median_chunk_seconds IS 'Median compute time of successful chunks.';
COMMENT ON COLUMN workers.max_chunk_seconds IS 'Maximum compute time of successful chunks.';
COMMENT ON COLUMN workers.relative_iqr IS 'Interquartile range of the seconds per event of its chunks, divided by their median.';
COMMENT ON COLUMN workers.slowest_file IS 'File of the chunk with the most seconds per event; the first by name in case of a tie.';
COMMENT ON COLUMN workers.relative_duration IS 'Duration of its chunks relative to the median worker: the median over its chunks of measured time divided by the time expected from dataset, size and file. Null if workers and files cannot be separated: one file, or one worker.';
COMMENT ON COLUMN workers.relative_duration_error IS 'Standard error of relative_duration, from the scatter of chunks.';
COMMENT ON COLUMN workers.is_slow IS 'True if relative_duration, from at least 5 chunks, is at least 1.5, 4 standard errors above 1, and above 1 by 4 times the spread of the faster half of all workers. Of two workers, at least 2.5 is required.';
COMMENT ON COLUMN workers.pid IS 'Process id on its host.';
COMMENT ON COLUMN workers.nanny IS 'Address of its nanny. Null if it has none.';
COMMENT ON COLUMN workers.resources IS 'Dask resources that it offers, as JSON.';
COMMENT ON COLUMN workers.local_directory IS 'Folder for spilled results.';
COMMENT ON COLUMN workers.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW files AS
WITH totals AS (
    SELECT
        dataset,
        filename,
        treename,
        count(*) FILTER (is_first_result) AS chunks,
        count(*) FILTER (is_chunk) AS chunk_attempts,
        try_cast(CASE
            WHEN count(*) FILTER (is_first_result) = 0 THEN 0
            ELSE sum(events) FILTER (is_first_result)
        END AS BIGINT) AS events,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
        sum(compute_seconds) AS compute_seconds,
        sum(events) FILTER (is_first_result)
            / nullif(
                sum(compute_seconds) FILTER (is_first_result AND from_checkpoint IS NOT TRUE), 0
            )
            AS events_per_second,
        count(DISTINCT worker) AS workers,
        count(*) FILTER (_is_failed(outcome)) AS failed_attempts,
        sum(bytes_read) / nullif(sum(compute_seconds) FILTER (bytes_read IS NOT NULL), 0)
            AS bytes_per_second,
        sum(compute_seconds) / nullif(sum(sum(compute_seconds)) OVER (PARTITION BY trace_id), 0)
            AS compute_share,
        median(whole_seconds) FILTER (outcome = 'memory') AS median_compute_seconds,
        max(whole_seconds) FILTER (outcome = 'memory') AS max_compute_seconds,
        _relative_iqr(event_seconds) AS relative_iqr,
        arg_min(worker, (-event_seconds, worker)) FILTER (event_seconds IS NOT NULL)
            AS slowest_worker,
        sum(process_seconds) AS process_seconds,
        sum(open_seconds) AS open_seconds,
        sum(read_seconds) AS read_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(wait_seconds) AS wait_seconds,
        try_cast(sum(requests) AS BIGINT) AS requests,
        any_value(source) AS source,
        max(file_bytes) AS file_bytes,
        sum(bytes_read) FILTER (is_first_result) / nullif(max(file_bytes), 0) AS file_read_ratio,
        max(file_branches) AS file_branches,
        max(branches_read) AS branches_read,
        max(branches_read) / nullif(max(file_branches), 0) AS branch_share,
        try_cast(sum(compressed_bytes) AS BIGINT) AS compressed_bytes,
        try_cast(sum(uncompressed_bytes) AS BIGINT) AS uncompressed_bytes,
        sum(unpacked_bytes) / nullif(sum(packed_bytes), 0) AS compression_ratio,
        count(*) FILTER (is_first_result AND from_checkpoint) AS checkpointed_chunks,
        sum(bytes_read) FILTER (is_first_result)
            / nullif(sum(events) FILTER (is_first_result AND bytes_read IS NOT NULL), 0)
            AS bytes_per_event,
        trace_id
    FROM _file_attempts
    GROUP BY trace_id, dataset, filename, treename
)
SELECT
    totals.* EXCLUDE (bytes_per_event, trace_id),
    relative_duration.relative_duration,
    relative_duration.relative_duration_error,
    relative_duration.is_slow,
    totals.bytes_per_event,
    totals.trace_id
FROM totals
LEFT JOIN _relative_duration AS relative_duration
    ON relative_duration.process IS NULL
    AND totals.trace_id = relative_duration.trace_id
    AND totals.dataset IS NOT DISTINCT FROM relative_duration.dataset
    AND totals.filename IS NOT DISTINCT FROM relative_duration.filename
    AND totals.treename IS NOT DISTINCT FROM relative_duration.treename
ORDER BY
    totals.trace_id,
    compute_seconds DESC NULLS LAST,
    totals.dataset,
    totals.filename,
    totals.treename;

COMMENT ON VIEW files IS 'Totals by file. One row per dataset, file and tree, highest compute time first. A file that coffea skipped because its number of entries could not be read has no chunks and no events. Sums cover measured values only, and are null if nothing was measured.';
COMMENT ON COLUMN files.dataset IS 'Dataset of the file.';
COMMENT ON COLUMN files.filename IS 'File name, as coffea gives it.';
COMMENT ON COLUMN files.treename IS 'Tree or table in the file.';
COMMENT ON COLUMN files.chunks IS 'Chunks processed. A chunk that was recomputed after its result was lost counts once.';
COMMENT ON COLUMN files.chunk_attempts IS 'Chunk attempts.';
COMMENT ON COLUMN files.events IS 'Events in these chunks. Events of results from a checkpoint are unknown.';
COMMENT ON COLUMN files.bytes_read IS 'Bytes read by all attempts. Null if not measured.';
COMMENT ON COLUMN files.compute_seconds IS 'Compute time of all attempts.';
COMMENT ON COLUMN files.events_per_second IS 'Rate of one thread: events / compute time of the attempts that computed them. Failed and repeated attempts are excluded, and so are results from a checkpoint.';
COMMENT ON COLUMN files.workers IS 'Number of workers that attempted the file.';
COMMENT ON COLUMN files.failed_attempts IS 'Attempts that erred, were retried, were lost with their worker, or were skipped, failed reads of the number of entries included.';
COMMENT ON COLUMN files.bytes_per_second IS 'bytes_read divided by the compute time of the attempts that measured it: rate of one thread.';
COMMENT ON COLUMN files.compute_share IS 'Share of the compute time of all chunk attempts.';
COMMENT ON COLUMN files.median_compute_seconds IS 'Median compute time of successful attempts.';
COMMENT ON COLUMN files.max_compute_seconds IS 'Maximum compute time of successful attempts.';
COMMENT ON COLUMN files.relative_iqr IS 'Interquartile range of the seconds per event of its chunks, divided by their median.';
COMMENT ON COLUMN files.slowest_worker IS 'Worker of the chunk with the most seconds per event; the first by name in case of a tie.';
COMMENT ON COLUMN files.process_seconds IS 'Processor time of all attempts.';
COMMENT ON COLUMN files.open_seconds IS 'File opening time of all attempts.';
COMMENT ON COLUMN files.read_seconds IS 'Column read time of all attempts.';
COMMENT ON COLUMN files.cpu_seconds IS 'CPU time of all attempts.';
COMMENT ON COLUMN files.wait_seconds IS 'Time without CPU of all attempts.';
COMMENT ON COLUMN files.requests IS 'Requests of all attempts.';
COMMENT ON COLUMN files.source IS 'File format: TTree, RNTuple or Parquet.';
COMMENT ON COLUMN files.file_bytes IS 'File size.';
COMMENT ON COLUMN files.file_read_ratio IS 'Bytes read by processed chunks divided by the file size. Can exceed 1, since each chunk opens the file again.';
COMMENT ON COLUMN files.file_branches IS 'Branches in the file.';
COMMENT ON COLUMN files.branches_read IS 'Maximum number of branches read by a chunk.';
COMMENT ON COLUMN files.branch_share IS 'branches_read / file_branches.';
COMMENT ON COLUMN files.compressed_bytes IS 'Size in the file of the branch data read by all attempts. Data needed by several chunks counts once per chunk.';
COMMENT ON COLUMN files.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN files.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, where both are known.';
COMMENT ON COLUMN files.checkpointed_chunks IS 'Chunks whose result came from a checkpoint.';
COMMENT ON COLUMN files.relative_duration IS 'Duration of its chunks relative to the median file of the dataset: the median over its chunks of measured time divided by the time expected from dataset, size and worker. Null if the file cannot be separated from its worker, the only one of several that read it, or is the only one of its dataset.';
COMMENT ON COLUMN files.relative_duration_error IS 'Standard error of relative_duration, from the scatter of chunks.';
COMMENT ON COLUMN files.is_slow IS 'True if relative_duration, from at least 5 chunks, is at least 1.5, 4 standard errors above 1, and above 1 by 4 times the spread of the faster half of all files. Of two files, or if no other file was read at the same time, at least 2.5 is required; of a file that was read alone at the start of the run, at least 5.';
COMMENT ON COLUMN files.bytes_per_event IS 'Bytes read per event, over processed chunks that measured it.';
COMMENT ON COLUMN files.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW metadata_map AS
WITH cells(step, level, metadata, cell, "view", hint) AS (
    VALUES
        (1, 'job', 'jobs of the batch system', 'jobs', 'jobs', 'Recorded for scheduler, workers and the recording client in a job of SLURM, HTCondor, PBS, LSF, SGE, OAR or Kubernetes.'),
        (1, 'job', 'cluster and its arguments', 'cluster', 'environment', 'Recorded if the client was created from a cluster object: Client(cluster).'),
        (1, 'configuration', 'Dask''s configuration and its differences from the defaults', 'configuration', 'config', 'Recorded unless environment is excluded from kinds.'),
        (1, 'job', 'machines, cores, memory and limits', 'machines', 'machines', 'Recorded unless environment is excluded from kinds.'),
        (1, 'job', 'versions of packages', 'packages', 'packages', 'Recorded unless environment is excluded from kinds.'),
        (2, 'client', 'clients', 'clients', 'environment', 'Always recorded.'),
        (2, 'client', 'program, arguments and git commit', 'program', 'environment', 'Recorded by a client: roast_recorder.record or roast-record run.'),
        (2, 'client', 'submitting code', 'code', 'computations', 'Recorded with this setting: code=True.'),
        (2, 'graph', 'layers of submitted graphs, before and after fusion', 'layers sent', 'graph_layers', 'Recorded for the recording client, from Dask 2025.4 on.'),
        (2, 'graph', 'layers of graphs on the scheduler', 'layers', 'graph_layers', 'Recorded unless task is excluded from kinds.'),
        (2, 'graph', 'annotations', 'annotations', 'tasks', 'Recorded for annotated tasks: dask.annotate.'),
        (3, 'scheduler', 'cost of graphs on the scheduler', 'graph updates', 'graph_updates', 'Recorded unless event is excluded from kinds.'),
        (3, 'graph', 'tasks', 'tasks', 'tasks', 'Recorded unless task is excluded from kinds.'),
        (3, 'graph', 'dependencies', 'dependencies', 'dependencies', 'Recorded unless task is excluded from kinds.'),
        (3, 'graph', 'priorities', 'priorities', 'tasks', 'Recorded unless task is excluded from kinds.'),
        (3, 'graph', 'restrictions', 'restrictions', 'restrictions', 'Recorded for tasks annotated with workers or resources. Dask does not report the restrictions that it sets itself.'),
        (3, 'graph', 'groups and prefixes', 'groups', 'task_groups', 'Recorded unless task is excluded from kinds.'),
        (3, 'graph', 'spans', 'spans', 'spans', 'Recorded unless span is excluded from kinds; from Dask 2023.6 on.'),
        (3, 'scheduler', 'transitions of tasks', 'transitions', 'transitions', 'Recorded unless transition is excluded from kinds.'),
        (3, 'scheduler', 'queued tasks', 'queueing', 'latencies', 'Recorded if tasks were queued: distributed.scheduler.worker-saturation.'),
        (3, 'scheduler', 'steals', 'steals', 'events', 'Recorded if tasks were stolen: distributed.scheduler.work-stealing.'),
        (3, 'scheduler', 'keys that each client wants', 'wanted keys', 'wanted_keys', 'Recorded unless wanted_keys is excluded from kinds.'),
        (3, 'scheduler', 'plugins', 'plugins', 'environment', 'Recorded unless environment is excluded from kinds.'),
        (3, 'scheduler', 'events', 'events', 'events', 'Recorded unless event is excluded from kinds.'),
        (4, 'worker', 'workers, joined and left', 'workers', 'workers', 'Always recorded.'),
        (4, 'worker', 'CPU, memory and states over time', 'samples', 'worker_samples', 'Recorded unless worker_sample is excluded from kinds.'),
        (4, 'worker', 'states of tasks on workers', 'worker transitions', 'worker_transitions', 'Recorded with this setting: worker_transitions=True.'),
        (4, 'worker', 'transfers of results', 'transfers', 'transfers', 'Recorded with this setting: transfers=True. Dask does not log shards of P2P shuffles.'),
        (4, 'worker', 'spills to disk', 'spills', 'spills', 'Recorded with this setting, if any occur: worker_transitions=True.'),
        (4, 'worker', 'pauses', 'pauses', 'pauses', 'Recorded if a worker pauses.'),
        (4, 'thread', 'thread of each task', 'threads', 'task_runs', 'Recorded for finished tasks.'),
        (5, 'worker', 'attempts and their phases', 'attempts', 'task_runs', 'Recorded unless transition is excluded from kinds.'),
        (5, 'worker', 'fine metrics', 'fine metrics', 'fine_metrics', 'Recorded unless fine_metric is excluded from kinds.'),
        (5, 'I/O', 'coffea''s chunks', 'chunks', 'chunks', 'Recorded for coffea and uproot: measure_chunks.'),
        (5, 'I/O', 'named sections of tasks', 'sections', 'sections', 'Recorded in blocks of code: with roast_recorder.section("name").'),
        (5, 'thread', 'stacks of threads, by Dask''s profiler', 'profiles', 'profile_stacks', 'Recorded unless profile is excluded from kinds.'),
        (5, 'process', 'stacks of the scheduler''s event loop', 'scheduler''s profile', 'profile_stacks', 'Recorded if Dask profiles event loops: not on Python 3.11 and not with distributed.worker.profile.enabled off.'),
        (5, 'process', 'functions, by Yappi', 'yappi', 'yappi_functions', 'roast-analyze import yappi FILE… --into TRACE'),
        (5, 'coroutine', 'coroutines among the functions of an event loop, by Yappi', 'code flags', 'yappi_functions', 'roast-analyze import yappi FILE… --into TRACE, of a file with code flags (docs: how-to/yappi).'),
        (5, 'process', 'processes, by Darshan', 'darshan', 'io_jobs', 'Recorded by Darshan, as with roast-record run --darshan LIB. roast-analyze import darshan LOG… --into TRACE'),
        (5, 'I/O', 'files that were read and written, by Darshan', 'io files', 'io_files', 'Recorded by Darshan, as with roast-record run --darshan LIB. roast-analyze import darshan LOG… --into TRACE'),
        (5, 'I/O', 'single reads and writes, by Darshan''s DXT', 'io segments', 'io_segments', 'roast-analyze import darshan LOG… --into TRACE, of a log with DXT: roast-record run --darshan LIB, or DXT_ENABLE_IO_TRACE=1.'),
        (2, 'client', 'layers of graphs of other clients', NULL, NULL, 'Cannot be recorded. The scheduler receives tasks; only the sending client has the layers.'),
        (2, 'graph', 'steps of an expression before optimization', NULL, NULL, 'Cannot be recorded. Expressions are optimized before the client receives them; graph_layers names what was fused.'),
        (3, 'graph', 'restrictions set by Dask, as for P2P shuffles', NULL, NULL, 'Cannot be recorded. Dask sets them on tasks later and emits no event.'),
        (4, 'worker', 'shards of P2P shuffles, one by one', NULL, NULL, 'Cannot be recorded. Dask does not log them; fine_metrics contains the total size, with the context p2p.'),
        (4, 'coroutine', 'coroutines of a worker''s event loop, over time', NULL, NULL, 'Cannot be recorded. Neither Dask nor Yappi records when a coroutine ran; Yappi has total times.')
),
steps(step, step_name) AS (
    VALUES
        (1, 'configure and launch'),
        (2, 'create and submit'),
        (3, 'populate the scheduler'),
        (4, 'receive on the worker'),
        (5, 'execute and profile')
),
-- Frequent kinds are counted as records, because computing the rows of their views takes long.
counts AS (
    SELECT trace_id, 'jobs' AS cell, count(*) AS records FROM jobs GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        CASE section WHEN 'cluster' THEN 'cluster' WHEN 'client' THEN 'program' ELSE 'plugins' END,
        count(*)
    FROM environment
    WHERE section IN ('cluster', 'client') OR name LIKE '%plugins%'
    GROUP BY ALL
    UNION ALL
    SELECT trace_id, 'configuration', count(*) FROM config GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'machines', count(*) FROM machines GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'packages', count(*) FROM packages GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'clients', count(*) FROM raw.client_added GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'code', count(*) FROM computations WHERE code IS NOT NULL GROUP BY trace_id
    UNION ALL
    SELECT trace_id, CASE stage WHEN 'sent' THEN 'layers sent' ELSE 'layers' END, count(*)
    FROM graph_layers
    GROUP BY ALL
    UNION ALL
    SELECT trace_id, 'graph updates', count(*) FROM graph_updates GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        unnest(['tasks', 'annotations', 'dependencies', 'priorities']),
        unnest([
            count(*),
            count(annotations),
            coalesce(sum(len(dependencies)), 0)::BIGINT,
            count(priority)
        ])
    FROM raw.task
    GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'restrictions', count(*) FROM restrictions GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'groups', count(*) FROM task_groups GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'spans', count(*) FROM raw.span GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        unnest(['transitions', 'queueing', 'threads', 'attempts']),
        unnest([
            count(*),
            count(*) FILTER (finish = 'queued'),
            count(thread),
            count(*) FILTER (finish = 'processing')
        ])
    FROM raw.transition
    GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        unnest(['events', 'steals']),
        unnest([count(*), count(*) FILTER (topic = 'stealing')])
    FROM raw.event
    GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'wanted keys', count(*) FROM raw.wanted_keys GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'workers', count(*) FROM raw.worker_added GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'samples', count(*) FROM raw.worker_sample GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'worker transitions', count(*) FROM raw.worker_transition GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'transfers', count(*) FROM transfers GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'spills', count(*) FROM raw.spill GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'pauses', count(*) FROM pauses GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'fine metrics', count(*) FROM raw.fine_metric GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'chunks', count(*) FROM raw.chunk GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'sections', count(*) FROM raw.section GROUP BY trace_id
    UNION ALL
    SELECT
        trace_id,
        CASE WHEN worker IS NULL THEN 'scheduler''s profile' ELSE 'profiles' END,
        count(*)
    FROM raw.profile
    GROUP BY ALL
    UNION ALL
    SELECT
        trace_id,
        unnest(['yappi', 'code flags']),
        unnest([count(*), count(value ->> 'code_flags')])
    FROM raw."function"
    GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'darshan', count(*) FROM io_jobs GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'io files', count(*) FROM raw.io_file GROUP BY trace_id
    UNION ALL
    SELECT trace_id, 'io segments', count(*) FROM raw.io_segment GROUP BY trace_id
),
partial AS (
    SELECT
        trace_id,
        CASE WHEN starts_with(module, 'DXT_') THEN 'io segments' ELSE 'io files' END AS cell,
        count(DISTINCT source) AS logs
    FROM (SELECT trace_id, source, unnest(partial_modules) AS module FROM io_jobs)
    GROUP BY ALL
)
SELECT
    cells.step,
    step_name,
    level,
    metadata,
    coalesce(records, 0) > 0 AS is_recorded,
    CASE WHEN cells.cell IS NOT NULL THEN coalesce(records, 0) END AS records,
    "view",
    CASE
        WHEN coalesce(records, 0) = 0 THEN hint
        WHEN partial.logs > 0
            THEN 'Incomplete: Darshan reached its limit of records or memory (partial logs: '
                || partial.logs || '). DARSHAN_CONFIG_PATH names a file with higher limits '
                || '(docs: how-to/darshan).'
    END AS hint,
    traces.trace_id
FROM (SELECT DISTINCT trace_id FROM trace_info) AS traces
CROSS JOIN cells
INNER JOIN steps ON cells.step = steps.step
LEFT JOIN counts ON counts.trace_id = traces.trace_id AND counts.cell = cells.cell
LEFT JOIN partial ON partial.trace_id = traces.trace_id AND partial.cell = cells.cell
ORDER BY traces.trace_id, cells.step, cells.cell IS NULL, level, metadata;

COMMENT ON VIEW metadata_map IS 'Metadata that a trace contains or lacks. One row per step of a run (launch, submission, scheduling, receipt, execution), level (from the job to the coroutine) and kind of metadata. The hint describes how to record missing metadata, or why that is impossible.';
COMMENT ON COLUMN metadata_map.step IS 'Number of the step, from 1 to 5, in the order of the run.';
COMMENT ON COLUMN metadata_map.step_name IS 'Name of the step.';
COMMENT ON COLUMN metadata_map.level IS 'Subject: job, configuration, client, graph, scheduler, worker, process, thread, coroutine or I/O.';
COMMENT ON COLUMN metadata_map.metadata IS 'Kind of metadata.';
COMMENT ON COLUMN metadata_map.is_recorded IS 'Whether this trace contains the metadata.';
COMMENT ON COLUMN metadata_map.records IS 'Number of records or rows; null if it cannot be recorded.';
COMMENT ON COLUMN metadata_map."view" IS 'View with the metadata; null if it cannot be recorded.';
COMMENT ON COLUMN metadata_map.hint IS 'How to record missing or incomplete metadata, or why that is impossible.';
COMMENT ON COLUMN metadata_map.trace_id IS 'ID of the trace.';

CREATE OR REPLACE MACRO concurrency_by(bucket_seconds) AS TABLE
WITH buckets AS (
    SELECT trace_id, start_t, width, extent, unnest(range(buckets)) AS bucket
    FROM _buckets(bucket_seconds)
),
totals AS (
    SELECT
        trace_id,
        bucket,
        sum(amount) FILTER (what = 'compute') AS compute,
        sum(amount) FILTER (what = 'transfer') AS transfer,
        sum(amount) FILTER (what = 'processing') AS processing,
        sum(amount) FILTER (what = 'queued') AS queued,
        sum(amount) FILTER (what = 'no-worker') AS no_worker,
        sum(amount) FILTER (what = 'waiting') AS waiting,
        sum(amount) FILTER (what = 'presence') AS presence,
        -- Without workers there are 0 threads; otherwise their number can be unknown.
        CASE
            WHEN coalesce(presence, 0) = 0 THEN 0
            ELSE sum(amount) FILTER (what = 'threads')
        END AS threads
    FROM _bucket_sums(bucket_seconds, false)
    GROUP BY trace_id, bucket
)
SELECT
    start_t + bucket * width AS t,
    least(width, extent - bucket * width) AS seconds,
    coalesce(compute, 0) / seconds AS executing,
    coalesce(transfer, 0) / seconds AS transferring,
    coalesce(processing, 0) / seconds AS processing,
    coalesce(queued, 0) / seconds AS queued,
    coalesce(no_worker, 0) / seconds AS no_worker,
    coalesce(waiting, 0) / seconds AS waiting,
    coalesce(presence, 0) / seconds AS workers,
    CASE WHEN totals.bucket IS NULL THEN 0 ELSE threads END / seconds AS nthreads,
    coalesce(compute, 0) AS compute_seconds,
    nthreads * seconds AS thread_seconds,
    trace_id
FROM buckets
LEFT JOIN totals USING (trace_id, bucket)
ORDER BY trace_id, t;

COMMENT ON MACRO TABLE concurrency_by IS 'The view concurrency with buckets of a given length in seconds.';

CREATE OR REPLACE MACRO utilization_by(bucket_seconds) AS TABLE
WITH totals AS (
    SELECT
        process,
        any_value(t) AS t,
        any_value(seconds) AS seconds,
        coalesce(sum(amount) FILTER (what = 'compute'), 0) AS compute_seconds,
        coalesce(sum(amount) FILTER (what = 'failed'), 0) AS failed_seconds,
        coalesce(sum(amount) FILTER (what = 'transfer'), 0) AS transfer_seconds,
        coalesce(sum(amount) FILTER (what = 'threads'), 0) AS threads
    FROM _bucket_sums(bucket_seconds, true)
    -- Exclude buckets between two presences of the process.
    WHERE process > 0 AND amount > 0
    GROUP BY process, bucket
)
SELECT
    totals.t,
    totals.seconds,
    workers.worker,
    workers.name,
    totals.compute_seconds,
    totals.failed_seconds,
    totals.transfer_seconds,
    CASE WHEN presence.nthreads IS NOT NULL THEN totals.threads END AS thread_seconds,
    _clip_negative(thread_seconds - totals.compute_seconds) AS idle_seconds,
    totals.compute_seconds / nullif(thread_seconds, 0) AS utilization,
    workers.server_id,
    workers.trace_id
FROM totals
INNER JOIN _workers AS workers USING (process)
INNER JOIN _worker_presence AS presence USING (process)
ORDER BY workers.trace_id, totals.t, process;

COMMENT ON MACRO TABLE utilization_by IS 'The view utilization with buckets of a given length in seconds.';

CREATE OR REPLACE VIEW concurrency AS FROM concurrency_by(NULL);

COMMENT ON VIEW concurrency IS 'Tasks by state, workers and threads over time. One row per time bucket, in order. Bucket lengths are 1, 2 or 5 times a power of ten seconds, the shortest that gives at most 400 buckets; concurrency_by(10) uses 10 s. Values are exact means over the bucket. Time outside the recording is cut off.';
COMMENT ON COLUMN concurrency.t IS 'Start of the bucket, in seconds since the epoch.';
COMMENT ON COLUMN concurrency.seconds IS 'Length of the bucket. Only the last one, which ends with the recording, can be shorter.';
COMMENT ON COLUMN concurrency.executing IS 'Tasks computing.';
COMMENT ON COLUMN concurrency.transferring IS 'Transfers of dependencies in progress, as reported by task attempts.';
COMMENT ON COLUMN concurrency.processing IS 'Tasks assigned to a worker and not finished: computing or waiting there.';
COMMENT ON COLUMN concurrency.queued IS 'Tasks that were ready and queued on the scheduler until a worker had a free thread.';
COMMENT ON COLUMN concurrency.no_worker IS 'Tasks that were ready, but no worker could run them.';
COMMENT ON COLUMN concurrency.waiting IS 'Tasks waiting for dependencies.';
COMMENT ON COLUMN concurrency.workers IS 'Number of workers.';
COMMENT ON COLUMN concurrency.nthreads IS 'Number of threads. Workers with an unknown number of threads count 0; null if it is unknown for all.';
COMMENT ON COLUMN concurrency.compute_seconds IS 'Compute time in the bucket. The sum over all buckets is that of task_runs.';
COMMENT ON COLUMN concurrency.thread_seconds IS 'Available thread time. The sum over all buckets is core_seconds of run.';
COMMENT ON COLUMN concurrency.trace_id IS 'ID of the trace.';

CREATE OR REPLACE VIEW utilization AS FROM utilization_by(NULL);

COMMENT ON VIEW utilization IS 'Thread utilization of each worker over time. One row per time bucket and worker process, in order of time, with the buckets of concurrency, or wider ones if these would make more than about a million rows; utilization_by(10) uses 10 s. Times are exact: attempts that cross buckets are divided between them. Time outside the recording is cut off.';
COMMENT ON COLUMN utilization.t IS 'Start of the bucket, in seconds since the epoch.';
COMMENT ON COLUMN utilization.seconds IS 'Length of the bucket. Only the last one, which ends with the recording, can be shorter.';
COMMENT ON COLUMN utilization.worker IS 'Worker address.';
COMMENT ON COLUMN utilization.name IS 'Worker name, which a restarted worker keeps.';
COMMENT ON COLUMN utilization.compute_seconds IS 'Compute time in the bucket, summed over threads.';
COMMENT ON COLUMN utilization.failed_seconds IS 'Part of compute_seconds of attempts that did not succeed (outcome other than memory).';
COMMENT ON COLUMN utilization.transfer_seconds IS 'Time to fetch dependencies from other workers. Transfers overlap each other and computations.';
COMMENT ON COLUMN utilization.thread_seconds IS 'Available thread time. Null if the number of threads is unknown.';
COMMENT ON COLUMN utilization.idle_seconds IS 'thread_seconds - compute_seconds.';
COMMENT ON COLUMN utilization.utilization IS 'compute_seconds / thread_seconds. Slightly more than 1 is due to the worker''s clock; much more, to tasks that secede from the thread pool.';
COMMENT ON COLUMN utilization.server_id IS 'ID of the process.';
COMMENT ON COLUMN utilization.trace_id IS 'ID of the trace.';

