"""Queries: locations of errors, parameters, restrictions, results and threads."""

import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
import polars as pl
import pytest

from roast_analyze import Trace
from roast_analyze.errors import NoRoom, QueryError


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "t.jsonl"
    path.write_text(
        '{"kind":"task","t":1.0,"key":"a-1","prefix":"a"}\n'
        '{"kind":"task","t":2.0,"key":"b-1","prefix":"b"}\n'
    )
    with Trace(path) as trace:
        yield trace


def error_of(trace, query, parameters=None) -> str:
    """Return the error of a query that fails, at once or while it runs."""
    try:
        trace.rows(query, parameters)
    except duckdb.Error as error:
        return str(trace.explain(error, query))
    except QueryError as error:
        return str(error)
    pytest.fail(f"no error for {query!r}")


# -- errors ------------------------------------------------------------------------------


def test_an_out_of_memory_error_names_the_option(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"kind":"task","t":1.0,"key":"a-1","prefix":"a"}\n')
    with (
        Trace(path, memory_limit="128MiB") as trace,
        pytest.raises(NoRoom, match=r"^out of memory .*: allow more with --memory-limit"),
    ):
        trace.rows("SELECT list(i) FROM range(30_000_000) AS numbers(i)")


NO_KYE = (
    'Binder Error: Referenced column "kye" not found in FROM clause! '
    'Candidate bindings: "key", "role", "client", "prefix"'
)
NO_TAKS = "Catalog Error: Table with name taks does not exist; did you mean 'tasks'?"
NO_NUMBER = (
    "Conversion Error: Could not convert string 'a-1' to INT32 "
    "when casting from source column key"
)

#: Queries with the line, the column (where the caret is) and the message of their error.
PLACES = [
    ("SELECT kye FROM tasks", 1, 8, NO_KYE),
    ("SELECT\n\tkey,\n\t\tkye\nFROM tasks", 3, 3, NO_KYE),
    ("SELECT 1\r\n, kye\r\nFROM tasks", 2, 3, NO_KYE),
    ("SELECT 1\nUNION\nSELECT kye FROM tasks\nUNION\nSELECT kye FROM tasks", 3, 8, NO_KYE),
    ("-- a comment\nFROM taks", 2, 6, NO_TAKS),
    ("SELECT key,\n  key::INTEGER\nFROM tasks", 2, 6, NO_NUMBER),
    ("SELEC 1", 1, 1, 'Parser Error: syntax error at or near "SELEC"'),
]


@pytest.mark.parametrize(("query", "line", "column", "message"), PLACES)
def test_an_error_shows_the_place(trace, query, line, column, message):
    text = query.splitlines()[line - 1].replace("\t", " ")

    assert error_of(trace, query).splitlines() == [
        f"line {line}, column {column}: {message}",
        f"  {text}",
        "  " + " " * (column - 1) + "^",
    ]


def test_the_caret_is_below_the_place_in_wide_text(trace):
    [first, _, caret] = error_of(trace, "SELECT '世界🎉e\u0301', kye FROM tasks").splitlines()

    assert first.startswith("line 1, column 17: ")
    assert caret.index("^") == 2 + 18  # two columns for a wide letter, none for an accent


def test_a_long_line_is_cut_around_the_place(trace):
    query = "SELECT " + "key, " * 100 + "kye, " + "prefix, " * 100 + "key FROM tasks"

    [first, line, caret] = error_of(trace, query).splitlines()
    assert first.startswith("line 1, column 508: ")
    assert line[2] == line[-1] == "…"
    assert len(line) < 110
    assert line[caret.index("^") :].startswith("kye, prefix, ")


def test_the_place_is_found_in_a_derived_query(trace):
    query = "SELECT key,\n  key::INTEGER\nFROM tasks"

    with pytest.raises(duckdb.ConversionException) as caught:
        trace.sql(query).project("#2 AS number").limit(1).fetchall()

    assert str(trace.explain(caught.value, query)).startswith("line 2, column 6: Conv")


@pytest.mark.parametrize(
    ("query", "values", "message"),
    [
        # Suggestions.
        ("SELECT medain(t) FROM events", None, 'Did you mean "median"?'),
        ("FROM zzz", None, "choose from environment, events, findings, imports, "),
        ("FROM task", None, "does not exist; did you mean 'tasks'?"),
        ("SELECT compute_seconds FROM tasks", None, "is a column of run, prefixes, "),
        ("SELECT w.nthread FROM workers AS w", None, "did you mean 'nthreads'?"),
        ("FROM tasks JOIN task_runs USING (kye)", None, "did you mean 'key'?"),
        ("SELECT kye, * FROM tasks, workers, task_runs, chunks", None, "did you mean 'key'?"),
        # Texts that are not one query.
        ("", None, "the query is empty: try SELECT * FROM run"),
        ("-- nothing", None, "the query is empty: try SELECT * FROM run"),
        ("SELECT 1; SELECT 2", None, "expected one query, got 2"),
        # Missing and unused parameters.
        ("SELECT $a, $b", {"a": 1}, "no value for $b in the query"),
        ("SELECT $a, $b", None, "no value for $a, $b in the query"),
        ("SELECT ?, ?", [1], "no value for $2 in the query"),
        ("SELECT $a", {"a": 1, "c": 2}, "$c is not a parameter of the query; it has $a"),
        ("SELECT 1", {"a": 1}, "$a is not a parameter of the query; it has no parameters"),
        ("SELECT ?", [1, 2], "$2 is not a parameter of the query; it has $1"),
        ("SELECT $a", [1], "the query has named parameters, $a; pass values by name"),
        # Features of DuckDB's shell, and variables of Python.
        ("SELECT getenv('HOME')", None, "getenv does not exist"),
        (".read x.sql", None, "syntax error"),
        ("FROM variable_of_mine", None, "variable_of_mine does not exist"),
    ],
)
def test_errors_suggest_a_correction(trace, query, values, message):
    variable_of_mine = pl.DataFrame({"secret": [1]})

    assert message in error_of(trace, query, values).splitlines()[0]
    assert variable_of_mine.shape == (1, 1)


@pytest.mark.parametrize(
    ("query", "values", "rows"),
    [
        ("SELECT key FROM tasks WHERE prefix = $prefix", {"prefix": "a"}, [("a-1",)]),
        ("SELECT key FROM tasks WHERE prefix = $Prefix", {"pREFIX": "a"}, [("a-1",)]),
        ("SELECT key FROM tasks WHERE prefix = ? AND submitted_t < ?", ["a", 3], [("a-1",)]),
        ("SELECT $a, $a", {"a": None}, [(None, None)]),
        ("SELECT 1", None, [(1,)]),
        ("SELECT 1", {}, [(1,)]),
        ("SELECT key FROM tasks WHERE key = $x", {"x": "'; DROP VIEW tasks; --"}, []),
    ],
)
def test_parameters(trace, query, values, rows):
    assert trace.rows(query, values) == rows


# -- restrictions -------------------------------------------------------------

#: Queries that try to do more than read the trace, and the action that the error names. All
#: known ways are in tests/nightly.
ATTEMPTS = {
    "SELECT * FROM read_csv('{file}')": "opening '{file}'",
    "SELECT * FROM '{file}'": "opening '{file}'",
    "SELECT * FROM query('FROM read_text(''{file}'')')": "opening '{file}'",
    "WITH a AS (FROM read_text('{file}')) FROM a": "opening '{file}'",
    "COPY tasks TO '{folder}/out.csv'": "COPY",
    "EXPLAIN ANALYZE COPY tasks TO '{folder}/out.csv'": "COPY",
    "SELECT * FROM enable_logging()": "changing the setting 'enable_logging'",
    "ATTACH ':memory:' AS m": "ATTACH",
    "SELECT * FROM 'http://127.0.0.1:{port}/x.csv'": "opening 'http://127.0.0.1:{port}/x.csv'",
    "SELECT * FROM sqlite_scan('{folder}/x.db', 't')": "loading the extension 'sqlite_scanner'",
    "LOAD httpfs": "LOAD",
    "SELECT * FROM st_read('{file}')": "loading the extension 'spatial'",
    "SELECT * FROM duckdb_secrets()": "reading secrets",
    "SET enable_external_access = true": "SET",
    "DELETE FROM raw.task": "DELETE",
    "FROM (WITH a AS (DELETE FROM raw.task RETURNING *) FROM a)": "DELETE",
    "EXPLAIN ANALYZE DROP VIEW tasks": "DROP",
    "WITH x AS (COPY tasks TO '{folder}/out.csv') FROM tasks": "COPY",
    "WITH x AS (COPY tasks TO '{folder}/out.csv') PIVOT tasks ON prefix": "COPY",
    "BEGIN": "BEGIN",
}


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """Return a folder with files, and a port; both must stay untouched."""
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


def test_a_query_can_only_read_the_trace(trace, outside):
    def filled(text):
        for name, value in outside.items():
            text = text.replace(name, value)
        return text

    expected = {
        query: f"{filled(action)} is not allowed: a query may only read the trace; "
        "use --unsafe, or Trace(…, unsafe=True) in Python, to allow it"
        for query, action in ATTEMPTS.items()
    }
    assert {query: error_of(trace, filled(query)) for query in ATTEMPTS} == expected
    assert trace.rows("SELECT key FROM tasks") == [("a-1",), ("b-1",)]


@pytest.mark.parametrize(
    "query",
    [
        "FROM tasks;", "WITH a AS (FROM tasks) FROM a", "VALUES (1)", "DESCRIBE tasks",
        "SUMMARIZE tasks", "SHOW TABLES", "EXPLAIN FROM tasks", "EXPLAIN ANALYZE FROM tasks",
        "PIVOT tasks ON prefix USING count(*)", "UNPIVOT tasks ON key", "TABLE tasks",
        "FROM duckdb_settings()", "SHOW ALL TABLES", "FROM query('FROM tasks')",
    ],
)  # fmt: skip
def test_every_type_of_query_returns_rows(trace, query):
    relation = trace.sql(query)

    assert len(relation.fetchall()[0]) == len(relation.columns)


def test_unsafe_queries(write_trace, task, tmp_path):
    (tmp_path / "owners.csv").write_text("prefix,owner\na,Ada\n")
    with Trace(write_trace(task("a-1"), task("b-1")), unsafe=True) as trace:
        query = f"SELECT key, owner FROM tasks JOIN '{tmp_path}/owners.csv' USING (prefix)"
        assert trace.rows(query) == [("a-1", "Ada")]

        trace.sql(f"COPY (SELECT key FROM tasks) TO '{tmp_path}/keys.csv'")
        assert (tmp_path / "keys.csv").read_text() == "key\na-1\nb-1\n"

        # Statements persist.
        rows = trace.rows("CREATE TABLE mine AS SELECT 5 AS a; FROM mine")
        assert rows == trace.rows("FROM mine") == [(5,)]

        # The error does not mention --unsafe.
        assert error_of(trace, "FROM 'nowhere.csv'") == (
            'IO Error: No files found that match the pattern "nowhere.csv"'
        )


# -- results -----------------------------------------------------------------------------


def test_a_result_converts_to_polars_pandas_and_arrow(trace):
    relation = trace.sql("SELECT key, submitted_t FROM tasks ORDER BY key")
    expected = {"key": ["a-1", "b-1"], "submitted_t": [1.0, 2.0]}

    assert relation.pl().to_dict(as_series=False) == expected
    assert relation.df().to_dict("list") == expected
    assert relation.to_arrow_table().to_pydict() == expected
    assert relation.arrow().read_all().to_pydict() == expected
    assert trace.view("tasks").filter("prefix = 'b'").select("key").fetchall() == [("b-1",)]


def test_results_can_be_read_concurrently(trace):
    first = trace.sql("SELECT range FROM range(100_000)").to_arrow_reader(1000)
    first.read_next_batch()

    assert trace.rows("SELECT count(*) FROM tasks") == [(2,)]
    assert sum(batch.num_rows for batch in first) == 99_000


def test_a_closed_trace_raises(write_trace):
    with Trace(write_trace()) as trace:
        relation = trace.sql("SELECT 1")

    for ask in (lambda: trace.sql("SELECT 1"), trace.views, lambda: trace.frame("tasks")):
        with pytest.raises(QueryError, match="the trace is closed: open it again"):
            ask()
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        relation.fetchall()
    trace.close()


# -- threads -----------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_queries_from_many_threads(write_trace, task, run):
    tasks = [task(f"p{i % 7}-{i}") for i in range(2000)]
    runs = [record for i in range(2000) for record in run(f"p{i % 7}-{i}", i, i + 0.5)]
    relations, wrong = [], []

    def work(prefix):
        try:
            for times in range(20):
                query = "SELECT count(*) FROM tasks WHERE prefix = $prefix"
                found = trace.rows(query, {"prefix": prefix})[0][0]
                expected = len(range(int(prefix[1]), 2000, 7))
                frame = trace.frame("task_runs")
                seconds = frame.filter(pl.col("prefix") == prefix)["compute_seconds"].sum()
                if (found, len(frame), seconds) != (expected, 2000, expected / 2):
                    wrong.append((prefix, times, found, len(frame), seconds))
            relations.append((trace.sql("SELECT $p", {"p": prefix}), prefix))
        except Exception as error:  # noqa: BLE001 - reported by the main thread
            wrong.append(error)

    with Trace(write_trace(*tasks, *runs)) as trace:
        threads = [threading.Thread(target=work, args=(f"p{i % 7}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert wrong == []
        assert len(relations) == 8
        for relation, prefix in relations:  # after the end of their threads
            assert relation.fetchall() == [(prefix,)]


@pytest.mark.exhaustive
def test_the_first_queries_can_come_from_many_threads_at_once(write_trace):
    barrier = threading.Barrier(8)

    def query(trace):
        barrier.wait()
        return trace.sql("SELECT trace_id FROM trace_info").fetchall()

    for _ in range(10):
        with Trace(write_trace()) as trace, ThreadPoolExecutor(8) as pool:
            assert [*pool.map(query, [trace] * 8)] == [[("T",)]] * 8


def test_closing_interrupts_queries_of_other_threads(write_trace):
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
