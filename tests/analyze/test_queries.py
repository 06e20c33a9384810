"""Asking: what a query may do, parameters, errors that point at the place, and threads."""

import re
import socket
import threading
import time

import duckdb
import polars as pl
import pytest

from roast_analyze import Trace
from roast_analyze.errors import QueryError

ALLOWED = "--unsafe allows it, or Trace(…, unsafe=True) in Python"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "t.jsonl"
    path.write_text(
        '{"kind":"task","t":1.0,"key":"a-1","prefix":"a"}\n'
        '{"kind":"task","t":2.0,"key":"b-1","prefix":"b"}\n'
    )
    with Trace(path) as trace:
        yield trace


def complaint(trace, query, parameters=None) -> str:
    """What is said of a query that fails, at once or while it runs."""
    try:
        trace.sql(query, parameters).fetchall()
    except duckdb.Error as error:
        return str(trace.explain(error, query))
    except QueryError as error:
        return str(error)
    pytest.fail(f"nothing is said of {query!r}")


# -- errors ------------------------------------------------------------------------------


NO_KYE = (
    'Binder Error: Referenced column "kye" not found in FROM clause! '
    'Candidate bindings: "key", "role", "client", "prefix"'
)

NO_NUMBER = (
    "Conversion Error: Could not convert string 'a-1' to INT32 "
    "when casting from source column key"
)
NO_MEDAIN = (
    'Catalog Error: Scalar Function with name medain does not exist! Did you mean "median"?'
)


@pytest.mark.parametrize(
    ("query", "where", "said", "line", "caret"),
    [
        (
            "SELECT kye FROM tasks", "line 1, column 8", NO_KYE,
            "SELECT kye FROM tasks",
            "       ^",
        ),
        (
            "SELECT\n\tkey,\n\t\tkye\nFROM tasks", "line 3, column 3", NO_KYE,
            "  kye",
            "  ^",
        ),
        (
            "SELECT '世界🎉e\u0301', kye FROM tasks", "line 1, column 17", NO_KYE,
            "SELECT '世界🎉e\u0301', kye FROM tasks",
            "                  ^",  # two columns for a wide letter, none for an accent
        ),
        (
            "SELECT 1\r\n, kye\r\nFROM tasks", "line 2, column 3", NO_KYE,
            ", kye",
            "  ^",
        ),
        (
            "SELECT 1\nUNION\nSELECT kye FROM tasks\nUNION\nSELECT kye FROM tasks",
            "line 3, column 8", NO_KYE,
            "SELECT kye FROM tasks",
            "       ^",
        ),
        (
            "-- a comment\nFROM taks", "line 2, column 6",
            'Catalog Error: Table with name taks does not exist! Did you mean "tasks"?',
            "FROM taks",
            "     ^",
        ),
        (
            "SELECT key,\n  key::INTEGER\nFROM tasks", "line 2, column 6",
            NO_NUMBER,
            "  key::INTEGER",
            "     ^",
        ),
        (
            "SELEC 1", "line 1, column 1", 'Parser Error: syntax error at or near "SELEC"',
            "SELEC 1",
            "^",
        ),
        (
            "SELECT medain(t) FROM events", "line 1, column 8",
            NO_MEDAIN,
            "SELECT medain(t) FROM events",
            "       ^",
        ),
    ],
)  # fmt: skip
def test_an_error_points_at_the_place(trace, query, where, said, line, caret):
    assert complaint(trace, query).splitlines() == [
        f"{where}: {said}",
        f"  {line}",
        f"  {caret}",
    ]


def test_a_place_is_found_in_what_the_query_became_a_part_of(trace):
    query = "SELECT key,\n  key::INTEGER\nFROM tasks"

    with pytest.raises(duckdb.ConversionException) as caught:
        trace.sql(query).project("#2 AS number").limit(1).fetchall()

    assert str(trace.explain(caught.value, query)).startswith("line 2, column 6: Conv")


def test_of_a_long_line_the_part_around_the_place_is_shown(trace):
    query = "SELECT " + "key, " * 100 + "kye, " + "prefix, " * 100 + "key FROM tasks"

    [first, line, caret] = complaint(trace, query).splitlines()
    assert first.startswith("line 1, column 508: ")
    assert line[2] == line[-1] == "…"
    assert len(line) < 110
    assert line[caret.index("^") :].startswith("kye, prefix, ")


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("FROM zzz", "there are environment, events, imports, loss, "),
        (
            "SELECT compute_seconds FROM tasks",
            "'compute_seconds' is a column of run, prefixes, ",
        ),
        ("SELECT w.nthread FROM workers AS w", "did you mean 'nthreads'?"),
        ("FROM tasks JOIN task_runs USING (kye)", "did you mean 'key'?"),
        ("SELECT kye, * FROM tasks, workers, task_runs, chunks", "did you mean 'key'?"),
    ],
)
def test_a_hint_where_duckdb_has_none(trace, query, hint):
    assert hint in complaint(trace, query).splitlines()[0]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "the query gives no rows: ''"),
        ("-- nothing", "the query gives no rows: '-- nothing'"),
        ("SELECT 1; SELECT 2", "one query at a time, not 2"),
    ],
)
def test_what_is_not_one_query(trace, query, said):
    assert complaint(trace, query) == said


# -- parameters --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "values", "rows"),
    [
        ("SELECT key FROM tasks WHERE prefix = $prefix", {"prefix": "a"}, [("a-1",)]),
        ("SELECT key FROM tasks WHERE prefix = $Prefix", {"pREFIX": "a"}, [("a-1",)]),
        ("SELECT key FROM tasks WHERE prefix = ? AND t < ?", ["a", 3], [("a-1",)]),
        ("SELECT $a, $a", {"a": None}, [(None, None)]),
        ("SELECT 1", None, [(1,)]),
        ("SELECT 1", {}, [(1,)]),
        ("SELECT key FROM tasks WHERE key = $x", {"x": "'; DROP VIEW tasks; --"}, []),
    ],
)
def test_parameters(trace, query, values, rows):
    query = query.replace("t <", "submitted_t <")

    assert trace.sql(query, values).fetchall() == rows


@pytest.mark.parametrize(
    ("query", "values", "said"),
    [
        ("SELECT $a, $b", {"a": 1}, "no value is given for $b in the query"),
        ("SELECT $a, $b", None, "no value is given for $a, $b in the query"),
        ("SELECT ?, ?", [1], "no value is given for $2 in the query"),
        ("SELECT $a", {"a": 1, "c": 2}, "given for $c, not in the query; it has $a"),
        ("SELECT 1", {"a": 1}, "given for $a, not in the query; it has no parameters"),
        ("SELECT ?", [1, 2], "given for $2, not in the query; it has $1"),
        ("SELECT $a", [1], "the query has names for its parameters, $a; give values by name"),
    ],
)
def test_a_parameter_that_is_missing_or_not_used_is_named(trace, query, values, said):
    assert said in complaint(trace, query, values)


# -- what a query may not do -------------------------------------------------------------

#: Ways out of the trace, and what is said of each. {file} is a file, {folder} where it lies;
#: at {port} somebody listens.
ATTEMPTS = {
    # files, by function
    "SELECT * FROM read_csv('{file}')": "opening '{file}'",
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
    "SELECT * FROM '{file}'": "opening '{file}'",
    'SELECT * FROM "{file}"': "opening '{file}'",
    "SUMMARIZE '{file}'": "opening '{file}'",
    "DESCRIBE '{file}'": "opening '{file}'",
    "SELECT * FROM query('FROM read_text(''{file}'')')": "opening '{file}'",
    "SELECT * FROM query_table('{file}')": "opening '{file}'",
    "SELECT * FROM query_table(['{file}'])": "opening '{file}'",
    "SELECT * FROM json_execute_serialized_sql("
    "json_serialize_sql('SELECT * FROM read_text(''{file}'')'))": "opening '{file}'",
    "SELECT (SELECT content FROM read_text('{file}'))": "opening '{file}'",
    "WITH a AS (FROM read_text('{file}')) FROM a": "opening '{file}'",
    "PIVOT '{file}' ON a USING count(*)": "opening '{file}'",
    "EXPLAIN FROM '{file}'": "opening '{file}'",
    "EXPLAIN ANALYZE FROM '{file}'": "opening '{file}'",
    # writing files
    "COPY tasks TO '{folder}/out.csv'": "COPY",
    "COPY (SELECT 1) TO '/dev/stdout'": "COPY",
    "EXPLAIN COPY tasks TO '{folder}/out.csv'": "opening '{folder}/out.csv'",
    "EXPLAIN ANALYZE COPY tasks TO '{folder}/out.csv'": "opening '{folder}/out.csv'",
    "EXPORT DATABASE '{folder}/out'": "EXPORT",
    "IMPORT DATABASE '{folder}/out'": "IMPORT",
    "SET temp_directory = '{folder}/out'": "SET",
    "SET profiling_output = '{folder}/out'": "SET",
    "SET log_query_path = '{folder}/out'": "SET",
    "CALL enable_logging(storage = 'file', storage_config = {'path': '{folder}/out'})": "CALL",
    "SELECT * FROM enable_logging()": "changing the setting 'enable_logging'",
    "SELECT * FROM enable_profiling(save_location = '{folder}/out')":
        "changing the setting 'enable_profiling'",
    # databases
    "ATTACH '{folder}/x.duckdb'": "ATTACH",
    "ATTACH ':memory:' AS m": "ATTACH",
    "DETACH memory": "DETACH",
    "USE memory": "USE",
    # the network
    "SELECT * FROM 'http://127.0.0.1:{port}/x.csv'": "opening 'http://127.0.0.1:{port}/x.csv'",
    "SELECT * FROM read_csv('https://127.0.0.1:{port}/x')": "opening 'https://127.0.0.1:{port}/x'",
    "FROM read_parquet('http://127.0.0.1:{port}/x')": "opening 'http://127.0.0.1:{port}/x'",
    "SELECT * FROM read_text('s3://bucket/x')": "opening 's3://bucket/x'",
    "ATTACH 'http://127.0.0.1:{port}/x.duckdb'": "ATTACH",
    "SELECT * FROM sqlite_scan('{folder}/x.db', 't')": "loading the extension 'sqlite_scanner'",
    # extensions
    "INSTALL httpfs": "INSTALL",
    "FORCE INSTALL httpfs FROM 'http://127.0.0.1:{port}'": "FORCE",
    "LOAD httpfs": "LOAD",
    "LOAD '{folder}/x.duckdb_extension'": "LOAD",
    "UPDATE EXTENSIONS": "UPDATE",
    "SELECT * FROM st_read('{file}')": "loading the extension 'spatial'",
    "SELECT st_point(1, 2)": "loading the extension 'spatial'",
    "SELECT * FROM iceberg_scan('{folder}')": "loading the extension 'iceberg'",
    "FROM sql_auto_complete('FROM ''{folder}/')": "loading the extension 'autocomplete'",
    # secrets
    "CREATE SECRET s (TYPE s3)": "CREATE",
    "SELECT * FROM duckdb_secrets()": "reading secrets",
    "SELECT * FROM which_secret('s3://x', 's3')": "reading secrets",
    # settings
    "SET enable_external_access = true": "SET",
    "SET GLOBAL python_enable_replacements = true": "SET",
    "RESET lock_configuration": "RESET",
    "SET VARIABLE x = 1": "SET",
    "PRAGMA enable_profiling": "PRAGMA",
    "EXPLAIN ANALYZE SET threads = 1": "changing the setting 'threads'",
    # what is there
    "CREATE TABLE x AS SELECT 1": "CREATE",
    "CREATE TEMP TABLE x AS SELECT 1": "CREATE",
    "CREATE MACRO m() AS TABLE FROM read_text('{file}')": "CREATE",
    "CREATE OR REPLACE VIEW tasks AS FROM read_text('{file}')": "CREATE",
    "DROP VIEW tasks": "DROP",
    "ALTER VIEW tasks RENAME TO t": "ALTER",
    "COMMENT ON VIEW tasks IS 'x'": "COMMENT",
    "INSERT INTO raw.task (key) VALUES ('x')": "INSERT",
    "UPDATE raw.task SET key = 'x'": "UPDATE",
    "DELETE FROM raw.task": "DELETE",
    "TRUNCATE raw.task": "TRUNCATE",
    "WITH a AS (DELETE FROM raw.task RETURNING *) FROM a": "changing what is there",
    "FROM (WITH a AS (DELETE FROM raw.task RETURNING *) FROM a)": "changing what is there",
    "EXPLAIN ANALYZE DELETE FROM raw.task": "changing what is there",
    "EXPLAIN ANALYZE DROP VIEW tasks": "changing what is there",
    "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1": "changing what is there",
    # prepared for later
    "PREPARE p AS SELECT 1": "PREPARE",
    "EXECUTE p": "EXECUTE",
    "BEGIN": "BEGIN",
    "COMMIT": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "CHECKPOINT": "CHECKPOINT",
    "VACUUM": "VACUUM",
}  # fmt: skip


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A folder with a file in it, and a port; whoever calls it is found out."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret.csv").write_text("a,b\n1,2\n")
    (folder / "x.parquet").write_bytes(b"")
    with duckdb.connect(folder / "x.duckdb") as database:
        database.execute("CREATE TABLE secret AS SELECT 1 AS a")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {
            "{file}": str(folder / "secret.csv"),
            "{folder}": str(folder),
            "{port}": str(server.getsockname()[1]),
        }
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("query", ATTEMPTS)
def test_a_query_sees_nothing_but_the_trace(trace, outside, query):
    def filled(text):
        for name, value in outside.items():
            text = text.replace(name, value)
        return text

    assert complaint(trace, filled(query)) == (
        f"{filled(ATTEMPTS[query])} is not allowed: a query reads the trace and nothing else; "
        + ALLOWED
    )
    assert trace.sql("SELECT key FROM tasks").fetchall() == [("a-1",), ("b-1",)]


def test_nor_the_variables_of_a_program(trace):
    tasks_of_mine = pl.DataFrame({"secret": [1]})

    assert "tasks_of_mine does not exist" in complaint(trace, "FROM tasks_of_mine")
    assert tasks_of_mine.shape == (1, 1)


@pytest.mark.parametrize("query", ["SELECT getenv('HOME')", ".read x.sql"])
def test_nor_what_a_shell_has(trace, query):
    assert re.search("getenv does not exist|syntax error", complaint(trace, query))


@pytest.mark.parametrize(
    "query",
    [
        "FROM tasks;", "WITH a AS (FROM tasks) FROM a", "VALUES (1)", "DESCRIBE tasks",
        "SUMMARIZE tasks", "SHOW TABLES", "EXPLAIN FROM tasks", "EXPLAIN ANALYZE FROM tasks",
        "PIVOT tasks ON prefix USING count(*)", "UNPIVOT tasks ON key", "TABLE tasks",
        "FROM duckdb_settings()", "SHOW ALL TABLES", "FROM query('FROM tasks')",
    ],
)  # fmt: skip
def test_every_kind_of_query_is_answered(trace, query):
    relation = trace.sql(query)

    assert len(relation.fetchall()[0]) == len(relation.columns)


# -- unsafe ------------------------------------------------------------------------------


@pytest.fixture
def unsafe(write_trace, task):
    with Trace(write_trace(task("a-1"), task("b-1")), unsafe=True) as trace:
        yield trace


def test_a_trusted_query_joins_a_file(unsafe, tmp_path):
    (tmp_path / "owners.csv").write_text("prefix,owner\na,Ada\n")
    query = f"SELECT key, owner FROM tasks JOIN '{tmp_path}/owners.csv' USING (prefix)"

    assert unsafe.sql(query).fetchall() == [("a-1", "Ada")]


def test_a_trusted_query_writes_a_file(unsafe, tmp_path):
    unsafe.sql(f"COPY (SELECT key FROM tasks) TO '{tmp_path}/keys.csv'")

    assert (tmp_path / "keys.csv").read_text() == "key\na-1\nb-1\n"


def test_trusted_statements_stay(unsafe):
    rows = unsafe.sql("CREATE TABLE mine AS SELECT 5 AS a; FROM mine").fetchall()

    assert rows == unsafe.sql("FROM mine").fetchall() == [(5,)]


def test_an_error_of_a_trusted_query_names_no_way_out(unsafe):
    assert complaint(unsafe, "FROM 'nowhere.csv'") == (
        'IO Error: No files found that match the pattern "nowhere.csv"'
    )


# -- answers -----------------------------------------------------------------------------


def test_an_answer_goes_to_polars_pandas_and_arrow(trace):
    relation = trace.sql("SELECT key, submitted_t FROM tasks ORDER BY key")
    expected = {"key": ["a-1", "b-1"], "submitted_t": [1.0, 2.0]}

    assert relation.pl().to_dict(as_series=False) == expected
    assert relation.df().to_dict("list") == expected
    assert relation.to_arrow_table().to_pydict() == expected
    assert relation.arrow().read_all().to_pydict() == expected


def test_an_answer_can_be_asked_further(trace):
    assert trace.view("tasks").filter("prefix = 'b'").select("key").fetchall() == [("b-1",)]


def test_answers_are_read_beside_each_other(trace):
    first = trace.sql("SELECT range FROM range(100_000)").to_arrow_reader(1000)
    first.read_next_batch()

    assert trace.sql("SELECT count(*) FROM tasks").fetchall() == [(2,)]
    assert sum(batch.num_rows for batch in first) == 99_000


def test_a_closed_trace_says_so(write_trace):
    with Trace(write_trace()) as trace:
        relation = trace.sql("SELECT 1")

    for ask in (lambda: trace.sql("SELECT 1"), trace.views, lambda: trace.frame("tasks")):
        with pytest.raises(QueryError, match="the trace is closed; open it again"):
            ask()
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        relation.fetchall()
    trace.close()


# -- threads -----------------------------------------------------------------------------


def test_many_threads_ask_at_once(write_trace, task, run):
    tasks = [task(f"p{i % 7}-{i}") for i in range(2000)]
    runs = [record for i in range(2000) for record in run(f"p{i % 7}-{i}", i, i + 0.5)]
    relations, wrong = [], []

    def work(prefix):
        try:
            for times in range(20):
                query = "SELECT count(*) FROM tasks WHERE prefix = $prefix"
                found = trace.sql(query, {"prefix": prefix}).fetchall()[0][0]
                expected = len(range(int(prefix[1]), 2000, 7))
                frame = trace.frame("task_runs")
                seconds = frame.filter(pl.col("prefix") == prefix)["compute_seconds"].sum()
                if (found, len(frame), seconds) != (expected, 2000, expected / 2):
                    wrong.append((prefix, times, found, len(frame), seconds))
            relations.append((trace.sql("SELECT $p", {"p": prefix}), prefix))
        except Exception as error:  # noqa: BLE001 - a thread has nobody to tell
            wrong.append(error)

    with Trace(write_trace(*tasks, *runs)) as trace:
        threads = [threading.Thread(target=work, args=(f"p{i % 7}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert wrong == []
        assert len(relations) == 8
        for relation, prefix in relations:  # their threads are gone
            assert relation.fetchall() == [(prefix,)]


def test_closing_ends_what_is_running_in_another_thread(write_trace):
    trace = Trace(write_trace())
    endless = trace.sql(
        "SELECT count(*) FROM range(10000000) a, range(10000000) b "
        "WHERE (a.range * b.range) % 7 = 3"
    )
    ended = []

    def work():
        with pytest.raises(duckdb.Error) as caught:
            endless.fetchall()
        ended.append(str(caught.value))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)
    trace.close()
    thread.join(30)
    assert not thread.is_alive()
    assert re.search("[Ii]nterrupted|closed", ended[0])
