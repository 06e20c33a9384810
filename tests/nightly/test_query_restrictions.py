"""Further queries that try to do more than read the trace."""

from analyze.open import test_session
from analyze.open.test_session import outside, trace  # noqa: F401

#: Queries that try to do more than read the trace, and the action that the error names.
ATTEMPTS = {
    # files, by function
    "SELECT * FROM read_csv_auto('{file}')": "opening '{file}'",
    "SELECT * FROM sniff_csv('{file}')": "opening '{file}'",
    "SELECT * FROM read_text('{file}')": "opening '{file}'",
    "SELECT * FROM read_text('/proc/self/environ')": "opening '/proc/self/environ'",
    "SELECT * FROM read_text('~/.ssh/*')": "opening '~/.ssh/*'",
    "SELECT * FROM read_blob('{file}')": "opening '{file}'",
    "SELECT * FROM read_blob('/dev/stdin')": "opening '/dev/stdin'",
    "SELECT * FROM read_json('{file}')": "opening '{file}'",
    "SELECT * FROM read_json_objects('{file}')": "opening '{file}'",
    "SELECT * FROM read_ndjson('{file}')": "opening '{file}'",
    "SELECT * FROM read_parquet('{file}')": "opening '{file}'",
    "SELECT * FROM parquet_metadata('{file}')": "opening '{file}'",
    "SELECT * FROM parquet_schema('{file}')": "opening '{file}'",
    "SELECT * FROM parquet_file_metadata('{file}')": "opening '{file}'",
    "SELECT * FROM parquet_kv_metadata('{file}')": "opening '{file}'",
    "SELECT * FROM parquet_full_metadata('{file}')": "opening '{file}'",
    "SELECT * FROM parquet_bloom_probe('{file}', 'a', 1)": "opening '{file}'",
    "SELECT * FROM read_duckdb('{folder}/x.duckdb')": "opening '{folder}/x.duckdb'",
    "SELECT * FROM glob('{folder}/*')": "opening '{folder}/*'",
    # files, by name
    'SELECT * FROM "{file}"': "opening '{file}'",
    "SUMMARIZE '{file}'": "opening '{file}'",
    "DESCRIBE '{file}'": "opening '{file}'",
    "SELECT * FROM query_table('{file}')": "opening '{file}'",
    "SELECT * FROM query_table(['{file}'])": "opening '{file}'",
    "SELECT * FROM json_execute_serialized_sql("
    "json_serialize_sql('SELECT * FROM read_text(''{file}'')'))": "opening '{file}'",
    "SELECT (SELECT content FROM read_text('{file}'))": "opening '{file}'",
    "PIVOT '{file}' ON a USING count(*)": "opening '{file}'",
    "EXPLAIN FROM '{file}'": "opening '{file}'",
    "EXPLAIN ANALYZE FROM '{file}'": "opening '{file}'",
    # writing files
    "COPY (SELECT 1) TO '/dev/stdout'": "COPY",
    "EXPLAIN COPY tasks TO '{folder}/out.csv'": "COPY",
    "EXPORT DATABASE '{folder}/out'": "EXPORT",
    "IMPORT DATABASE '{folder}/out'": "IMPORT",
    "SET temp_directory = '{folder}/out'": "SET",
    "SET profiling_output = '{folder}/out'": "SET",
    "SET log_query_path = '{folder}/out'": "SET",
    "CALL enable_logging(storage = 'file', storage_config = {'path': '{folder}/out'})": "CALL",
    "SELECT * FROM enable_profiling(save_location = '{folder}/out')":
        "changing the setting 'enable_profiling'",
    # databases
    "ATTACH '{folder}/x.duckdb'": "ATTACH",
    "DETACH memory": "DETACH",
    "USE memory": "USE",
    # the network
    "SELECT * FROM read_csv('https://127.0.0.1:{port}/x')": "opening 'https://127.0.0.1:{port}/x'",
    "FROM read_parquet('http://127.0.0.1:{port}/x')": "opening 'http://127.0.0.1:{port}/x'",
    "SELECT * FROM read_text('s3://bucket/x')": "opening 's3://bucket/x'",
    "ATTACH 'http://127.0.0.1:{port}/x.duckdb'": "ATTACH",
    # extensions
    "INSTALL httpfs": "INSTALL",
    "FORCE INSTALL httpfs FROM 'http://127.0.0.1:{port}'": "FORCE",
    "LOAD '{folder}/x.duckdb_extension'": "LOAD",
    "UPDATE EXTENSIONS": "UPDATE",
    "SELECT st_point(1, 2)": "loading the extension 'spatial'",
    "SELECT * FROM iceberg_scan('{folder}')": "loading the extension 'iceberg'",
    "FROM sql_auto_complete('FROM ''{folder}/')": "loading the extension 'autocomplete'",
    # secrets
    "CREATE SECRET s (TYPE s3)": "CREATE",
    "SELECT * FROM which_secret('s3://x', 's3')": "reading secrets",
    # settings
    "SET GLOBAL python_enable_replacements = true": "SET",
    "RESET lock_configuration": "RESET",
    "SET VARIABLE x = 1": "SET",
    "PRAGMA enable_profiling": "PRAGMA",
    "EXPLAIN ANALYZE SET threads = 1": "SET",
    # tables, views and macros
    "CREATE TABLE x AS SELECT 1": "CREATE",
    "CREATE TEMP TABLE x AS SELECT 1": "CREATE",
    "CREATE MACRO m() AS TABLE FROM read_text('{file}')": "CREATE",
    "CREATE OR REPLACE VIEW tasks AS FROM read_text('{file}')": "CREATE",
    "DROP VIEW tasks": "DROP",
    "ALTER VIEW tasks RENAME TO t": "ALTER",
    "COMMENT ON VIEW tasks IS 'x'": "COMMENT",
    "INSERT INTO raw.task (key) VALUES ('x')": "INSERT",
    "UPDATE raw.task SET key = 'x'": "UPDATE",
    "TRUNCATE raw.task": "TRUNCATE",
    "WITH a AS (DELETE FROM raw.task RETURNING *) FROM a": "DELETE",
    "EXPLAIN ANALYZE DELETE FROM raw.task": "DELETE",
    "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1": "CREATE",
    # prepared statements, transactions, maintenance
    "PREPARE p AS SELECT 1": "PREPARE",
    "EXECUTE p": "EXECUTE",
    "COMMIT": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "CHECKPOINT": "CHECKPOINT",
    "VACUUM": "VACUUM",
}  # fmt: skip


def test_a_query_can_only_read_the_trace(monkeypatch, trace, outside):  # noqa: F811
    monkeypatch.setattr(test_session, "ATTEMPTS", ATTEMPTS)

    test_session.test_a_query_can_only_read_the_trace(trace, outside)
