"""Generated statements that try to read or write files, set settings or read the environment.

They come from DuckDB's lists of statement types, functions and settings, so a new version of
DuckDB adds cases. Every file below the store, the cache and the home folder is compared before
and after, and no result may contain what was planted in files and in the environment.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from roast_analyze import Store, Trace, each
from roast_analyze.errors import TraceError
from roast_analyze.open import database

#: Text in planted files and in the environment.
CANARY = "canary-2719"

#: Statements of each type; PATH is a file to read, OUT one that does not exist.
STATEMENTS = {
    "INVALID": [],
    "SELECT": ["FROM 'PATH'", "SELECT * FROM read_text('PATH')", "FROM glob('FOLDER/**')"],
    "INSERT": ["INSERT INTO raw.task (key) VALUES ('x')"],
    "UPDATE": ["UPDATE raw.task SET key = 'x'"],
    "CREATE": [
        "CREATE TABLE x AS FROM read_text('PATH')", "CREATE VIEW x AS SELECT 1",
        "CREATE SECRET s (TYPE s3, KEY_ID 'x')",
    ],
    "DELETE": ["DELETE FROM raw.task", "TRUNCATE raw.task"],
    "PREPARE": ["PREPARE p AS COPY (SELECT 1) TO 'OUT'"],
    "EXECUTE": ["EXECUTE p"],
    "ALTER": ["ALTER VIEW tasks RENAME TO t", "COMMENT ON VIEW tasks IS 'x'"],
    "TRANSACTION": ["COMMIT", "BEGIN", "ROLLBACK"],
    "COPY": [
        "COPY (SELECT 1 AS a) TO 'OUT'",
        "COPY (SELECT 1 AS a) TO 'PATH' (USE_TMP_FILE false)",
        "COPY (SELECT 1 AS a, 2 AS b) TO 'OUT' (FORMAT parquet, PARTITION_BY (a))",
        "COPY (SELECT 1 AS a) TO 'OUT' (FORMAT json, PER_THREAD_OUTPUT)",
        "COPY raw.task FROM 'PATH'",
    ],
    "ANALYZE": ["ANALYZE"],
    "VARIABLE_SET": ["SET VARIABLE x = 1"],
    "CREATE_FUNC": ["CREATE MACRO m() AS TABLE FROM read_text('PATH')"],
    "EXPLAIN": ["EXPLAIN ANALYZE COPY (SELECT 1) TO 'OUT'", "EXPLAIN COPY (SELECT 1) TO 'OUT'"],
    "DROP": ["DROP VIEW tasks"],
    "EXPORT": ["EXPORT DATABASE 'OUT'", "IMPORT DATABASE 'FOLDER'"],
    "PRAGMA": ["PRAGMA enable_profiling", "PRAGMA import_database('FOLDER')"],
    "VACUUM": ["VACUUM"],
    "CALL": ["CALL read_text('PATH')", "CALL enable_logging(storage_path = 'OUT')"],
    "SET": ["SET profiling_output = 'OUT'", "RESET lock_configuration", "USE memory"],
    "LOAD": ["LOAD 'PATH'", "INSTALL 'PATH'"],
    "RELATION": [],
    "EXTENSION": [],
    "LOGICAL_PLAN": [],
    "ATTACH": ["ATTACH 'OUT' AS x", "ATTACH 'PATH' AS x (READ_ONLY)"],
    "DETACH": ["DETACH memory"],
    "MULTI": ["PIVOT 'PATH' ON a USING count(*)"],
    "COPY_DATABASE": ["COPY FROM DATABASE trace TO memory"],
    "MERGE_INTO": [
        "MERGE INTO raw.task USING (SELECT 'x' AS key) USING (key) WHEN MATCHED THEN DELETE"
    ],
}  # fmt: skip

#: What a statement is put into. {text} is the statement within a string.
FORMS = {
    "plain": "{}",
    "comment": "/* SELECT */ -- c\n{}",
    "explain": "EXPLAIN {}",
    "analyze": "EXPLAIN ANALYZE {}",
    "analyze json": "EXPLAIN (ANALYZE, FORMAT json) {}",
    "body": "WITH x AS ({}) SELECT 1",
    "used body": "WITH x AS MATERIALIZED (/* c */ {}) FROM x",
    "nested body": "SELECT (WITH x AS (WITH y AS (SELECT 1) {}) SELECT 1)",
    "explained body": "EXPLAIN ANALYZE WITH x AS ({}) SELECT 1",
    "subquery": "FROM ({})",
    "pivot": "PIVOT (SELECT 1 AS a) ON a USING count(*); {}",
    "pivot of a body": "WITH x AS ({}) PIVOT (SELECT 1 AS a) ON a USING count(*)",
    "second": "SELECT 1; {}",
    "query": "FROM query({text})",
    "query of a body": "FROM query('WITH x AS (' || {text} || ') SELECT 1')",
    "serialized": "FROM json_execute_serialized_sql(json_serialize_sql({text}))",
    "serialized body": "FROM json_execute_serialized_sql(json_serialize_sql("
    "'WITH x AS (' || {text} || ') SELECT 1'))",
}  # fmt: skip


def in_forms(statements: Iterator[str] | list[str]) -> Iterator[str]:
    for statement in statements:
        text = "'" + statement.replace("'", "''") + "'"
        for form in FORMS.values():
            yield form.replace("{text}", text).replace("{}", statement)


def calls() -> Iterator[str]:
    """Yield calls of all functions of tables and pragmas, and of those with a text."""
    values = {"VARCHAR": "'PATH'", "BOOLEAN": "true", "VARCHAR[]": "['PATH']", "ANY": "'PATH'"}
    rows = duckdb.execute(
        "SELECT DISTINCT function_name, function_type, parameter_types FROM duckdb_functions() "
        "WHERE function_type IN ('table', 'table_macro', 'pragma') "
        "OR function_type = 'scalar' AND regexp_matches(function_name, '^[a-z_]+$') "
        "AND parameter_types IN (['VARCHAR'], ['VARCHAR', 'VARCHAR'])"
        "ORDER BY ALL"
    ).fetchall()
    for name, kind, types in rows:
        arguments = ", ".join(values.get(type_ or "ANY", "1") for type_ in types)
        if kind == "pragma":
            yield f"PRAGMA {name}({arguments})"
            yield f"PRAGMA {name}"
        elif kind == "scalar":
            yield f"SELECT {name}({arguments})"
        else:
            yield f"SELECT * FROM {name}({arguments}) LIMIT 1000"
            yield f"SELECT * FROM {name}({arguments.replace('PATH', 'FOLDER/**')}) LIMIT 1000"
    for variable in ("ROAST_CANARY", "HOME", "PATH"):
        yield f"SELECT getenv('{variable}')"


def settings() -> Iterator[str]:
    """Yield statements that set, reset and read each setting."""
    for (name,) in duckdb.execute("SELECT name FROM duckdb_settings() ORDER BY ALL").fetchall():
        yield f"SET GLOBAL {name} = 'OUT'"
        yield f"EXPLAIN ANALYZE RESET {name}"
        yield f"SELECT current_setting('{name}')"


def statements() -> list[str]:
    return [
        *in_forms([s for listed in STATEMENTS.values() for s in listed]),
        *calls(),
        *settings(),
    ]


def test_every_type_of_statement_has_cases():
    known = set(duckdb.StatementType.__members__)
    assert known - STATEMENTS.keys() == set()
    assert len(set(statements())) > 1500


class Places:
    """Folders with planted files, and their content."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.cache, self.home, self.store = (base / n for n in ("cache", "home", "store"))
        self.traces = [base / "traces" / f"{i}.jsonl" for i in range(2)]

    def plant(self) -> None:
        """Plant files in all folders."""
        for folder in sorted({path for path in self.base.rglob("*") if path.is_dir()}):
            (folder / "planted.csv").write_text(f"a,b\n{CANARY},2\n")
            (folder / "planted.json").write_text(f'{{"a": "{CANARY}"}}')
        with duckdb.connect(self.home / "planted.duckdb") as database:
            database.execute(f"CREATE TABLE t AS SELECT '{CANARY}' AS a")
            database.execute(f"COPY t TO '{self.home}/planted.parquet'")

        self.folders = sorted({path for path in self.base.rglob("*") if path.is_dir()})
        logs = sorted(self.store.glob("runs/_delta_log/0*.json"))
        databases = sorted(self.cache.glob("*/*.duckdb"))
        self.own = [*logs[-1:], *databases]
        self.outs = [
            *(path.with_name(f"{int(path.stem) + 1:020}.json") for path in logs[-1:]),
            *(path.with_name(f"{path.name}.wal") for path in databases),
            *(path.with_name("out.json") for path in databases),
        ]

    def digests(self) -> dict[str, str]:
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.base.rglob("*"))
            if path.is_file()
        }

    def fill(self, statement: str, number: int) -> str:
        """Return a statement with paths; successive statements refer to different folders."""
        folder = self.folders[number % len(self.folders)]
        outs = [folder / "out.json", *self.outs]
        paths = [folder / "planted.csv", folder / "planted.json", *self.own]
        for name, value in {
            "PATH": paths[number % len(paths)],
            "OUT": outs[number % len(outs)],
            "FOLDER": folder,
        }.items():
            statement = re.sub(rf"\b{name}\b", str(value), statement)
        return statement


@pytest.fixture(scope="module")
def places(tmp_path_factory, lines, worker, task, run):
    """Return folders with a trace, its cache, and a store of it."""
    places = Places(tmp_path_factory.mktemp("places"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "UNCACHED_BYTES", 0)
        patch.setenv("ROAST_CACHE_DIR", str(places.cache))
        patch.setenv("HOME", str(places.home))
        patch.setenv("ROAST_CANARY", CANARY)
        (places.home / ".duckdb" / "stored_secrets").mkdir(parents=True)
        records = [worker("w1"), task("a-1"), *run("a-1", 10.0, 20.0)]
        for i, trace in enumerate(places.traces):
            trace.parent.mkdir(exist_ok=True)
            trace.write_bytes(lines(*records, trace_id=f"T{i}"))
        Store(places.store).add(places.traces)
        with Trace(places.traces[0]) as opened:
            opened.frame("task_runs")
        places.plant()
        yield places


def check(places: Places, ask, cases: list[str]) -> None:
    """Run statements, most of which fail; compare results and files."""
    # Fill the tables that the statements can refer to, because the cache keeps them.
    ask(
        "FROM query('SELECT 1 AS a')"
        if any("query(" in case for case in cases)
        else "FROM tasks"
    )
    before = places.digests()
    leaks = []
    for number, case in enumerate(cases):
        query = places.fill(case, number)
        try:
            result = str(ask(query))
        except (TraceError, duckdb.Error) as error:
            result = str(error)
        if CANARY in result.replace(query, ""):
            leaks.append(query)
    assert leaks == []
    assert places.digests() == before
    assert ask("SELECT count(*) > 0 AS a FROM tasks") is not None


#: COPY in each of the forms, into each kind of place, and some forms of the first statement of
#: each type, without the forms that can refer to any table.
COPIES = [case for case in in_forms(STATEMENTS["COPY"][:1]) for _ in range(4)]
FIRST = list(in_forms([listed[0] for listed in STATEMENTS.values() if listed]))[::11]
FEW = [case for case in COPIES + FIRST if "query(" not in case]


def test_few_statements_on_a_trace(places):
    with Trace(places.traces[0]) as trace:
        check(places, trace.rows, FEW)


def test_few_statements_on_a_store(places):
    check(places, Store(places.store).session_for("FROM runs").rows, FEW)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["trace", "memory", "several", "time range"])
def test_statements_on_traces(places, kind):
    paths = places.traces if kind == "several" else places.traces[:1]
    options = {"start": 5, "stop": 15} if kind == "time range" else {}
    with Trace(*paths, cache=kind != "memory", **options) as trace:
        check(places, trace.rows, statements())


@pytest.mark.exhaustive
@pytest.mark.parametrize("traces", [(), ("T0",)])
def test_statements_on_a_store(places, traces):
    store = Store(places.store)
    session = store.trace(*traces) if traces else store.session_for("FROM runs")
    check(places, session.rows, statements())


@pytest.mark.exhaustive
def test_statements_on_each_trace(places):
    check(places, lambda query: each(query, places.traces).rows(), statements()[::9])


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::roast_analyze.errors.ViewSkipped")
@pytest.mark.parametrize("variable", [False, True])
def test_statements_in_views(places, tmp_path, monkeypatch, variable):
    """A statement is a view of its own, or is within CREATE VIEW."""

    def ask(query: str) -> object:
        (tmp_path / "a.sql").write_text(query)
        (tmp_path / "b.sql").write_text(f"CREATE VIEW b AS {query}")
        if variable:
            monkeypatch.setenv("ROAST_VIEWS", str(tmp_path))
        with Trace(places.traces[0], views=None if variable else tmp_path) as trace:
            return [trace.rows(f"FROM {view.name}") for view in trace.views()[-2:]]

    check(places, ask, statements()[::9])
