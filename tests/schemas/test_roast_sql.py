"""schemas/roast.sql in a plain DuckDB gives what `Trace` gives, of whole and damaged traces."""

import gzip
import importlib.util
import json
import math
import re
import subprocess
from collections import Counter
from pathlib import Path

import duckdb
import pytest
import zstandard

from roast_analyze import Trace
from roast_analyze.open.database import documented_views
from roast_analyze.open.views import view_names
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import duckdb_columns, kinds
from sealing import sealed

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "schemas" / "roast.sql"
SAMPLES = sorted((ROOT / "sample_traces").glob("*.jsonl.zst"))
FAILURES = ROOT / "sample_traces" / "coffea_failures.jsonl.zst"

#: The shell of the package duckdb-cli. It has another version than the library, as a shell
#: that somebody has may.
SHELL = Path(importlib.util.find_spec("duckdb_cli").origin).with_name("duckdb")


def literal(value: object) -> str:
    """Write a path, or a list of paths, in SQL."""
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return "'" + str(value).replace("'", "''") + "'"


def said_by_shell(*commands: str) -> subprocess.CompletedProcess[str]:
    """Give the shell some commands."""
    arguments = [part for command in commands for part in ("-c", command)]
    return subprocess.run([SHELL, *arguments], capture_output=True, text=True, cwd=ROOT)


@pytest.fixture
def shell(tmp_path):
    """Open a trace in the shell; gives what queries answer: column names and rows."""

    def ask(trace: object, *queries: str) -> list[tuple[list[str], list[tuple]]]:
        files = [tmp_path / f"answer-{number}.parquet" for number in range(len(queries))]
        done = said_by_shell(
            f"SET VARIABLE trace = {literal(trace)}",
            ".read schemas/roast.sql",
            *(f"COPY ({q}) TO {literal(f)}" for q, f in zip(queries, files, strict=True)),
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        with duckdb.connect() as connection:
            return [_answer(connection, f"FROM {literal(file)}") for file in files]

    return ask


@pytest.fixture
def library():
    """Open a trace in the library; gives what queries answer: column names and rows."""

    def ask(trace: object, *queries: str) -> list[tuple[list[str], list[tuple]]]:
        with duckdb.connect() as connection:
            connection.execute(f"SET VARIABLE trace = {literal(trace)}")
            connection.execute(SCRIPT.read_text(encoding="utf-8"))
            return [_answer(connection, query) for query in queries]

    return ask


@pytest.fixture(params=["shell", "library"])
def ask(request):
    return request.getfixturevalue(request.param)


def _answer(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[list[str], list[tuple]]:
    answer = connection.sql(query)
    return answer.columns, answer.fetchall()


#: DuckDB has no function that could work out a checksum.
UNCHANGED = "reason <> 'changed content'"


def differences(ask, trace: object, path: object) -> list[str]:
    """Name the views that are not what `Trace` says of the same trace."""
    answers = ask(trace, *(f"FROM {name}" for name in view_names()))
    with Trace(path) as trace_of_ours:
        ours = {name: trace_of_ours.view(name) for name in view_names()}
        ours["loss"] = ours["loss"].filter(UNCHANGED)
        return [
            name
            for name, (columns, rows) in zip(view_names(), answers, strict=True)
            if columns != ours[name].columns
            or not same(in_order(rows), in_order(ours[name].fetchall()))
        ]


#: Names of all tables: those of records, and those that are worked out once a trace.
TABLES = (
    "SELECT schema_name, table_name FROM duckdb_tables() "
    "WHERE schema_name IN ('raw', 'main') AND NOT temporary ORDER BY ALL"
)


def different_tables(ask, trace: object, path: object) -> list[str]:
    """Name the tables that are not what `Trace` reads of the same trace.

    What a view says is decided by these and by its definition, and both have the same
    definitions: `roast.sql` is generated. Tables of records are compared in their order, which
    views go by.
    """
    with Trace(path) as trace_of_ours:
        tables = trace_of_ours.sql(TABLES).fetchall()
        [(_, theirs), *answers] = ask(
            trace, TABLES, *map('FROM "{0[0]}"."{0[1]}"'.format, tables)
        )
        assert theirs == tables
        different = []
        for (schema, table), (columns, rows) in zip(tables, answers, strict=True):
            ours = trace_of_ours.sql(f'FROM trace."{schema}"."{table}"')
            if table == "damage":
                ours = ours.filter(UNCHANGED)
            are_records = schema == "raw" and table != "damage"
            in_their_order = list if are_records else in_order
            if columns != ours.columns or not same(
                in_their_order(rows), in_their_order(ours.fetchall())
            ):
                different.append(f"{schema}.{table}")
        return different


def same(one: object, other: object) -> bool:
    """Compare as == does, but for the last digits of numbers: the order of sums is free."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (one != one and other != other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


def in_order(rows: list[tuple]) -> list[tuple]:
    """Sort rows, as not every view has an order; by numbers that may differ a little last."""

    def key(row: tuple) -> tuple[list[str], list[str]]:
        numbers = [f"{value:.12g}" for value in row if isinstance(value, float)]
        return [repr(value) for value in row if not isinstance(value, float)], numbers

    return sorted(rows, key=key)


# -- whole traces ------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_trace(ask, sample):
    assert differences(ask, sample, sample) == []


@pytest.fixture
def records(read_lines):
    """The lines of a recorded run without header and trailer."""
    return [r for r in read_lines(FAILURES) if r["kind"] not in ("header", "trailer")]


@pytest.fixture
def segment(read_lines):
    """Write some records as a segment; what the ending of its name says holds."""
    header = read_lines(FAILURES)[0]

    def segment(path: Path, records: list[dict], number: int = 1, **changes) -> Path:
        head = {**header, "segment": number, **changes}
        trailer = {
            "kind": "trailer",
            "t": records[-1]["t"],
            "segment": number,
            "records_by_kind": Counter(r["kind"] for r in [head, *records]),
            "dropped_by_kind": {},
        }
        text = sealed("".join(json.dumps(r) + "\n" for r in [head, *records, trailer]).encode())
        compress = {".zst": zstandard.compress, ".gz": gzip.compress}.get(path.suffix, bytes)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(compress(text))
        return path

    return segment


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "it's [one]*?.jsonl"])
def test_a_file(ask, segment, records, tmp_path, name):
    path = segment(tmp_path / name, records)
    segment(tmp_path / "it's onewhole.jsonl", records[:5])

    assert differences(ask, path, path) == []


@pytest.fixture
def folder(segment, records, tmp_path):
    """Segments whose names count up, stored in three ways, among other files."""
    third = len(records) // 3
    folder = tmp_path / "run"
    segment(folder / "9.jsonl.gz", records[:third], 1)
    segment(folder / "10.jsonl", records[third : 2 * third], 2)
    segment(folder / "11.jsonl.zst", records[2 * third :], 3)
    return folder


@pytest.mark.parametrize("named", ["", "/", "/*.jsonl*"])
def test_a_folder_of_segments(ask, folder, named):
    assert differences(ask, f"{folder}{named}", folder) == []


def test_other_files_of_a_folder_are_left_alone(library, folder):
    (folder / "notes.txt").write_text("hello")
    (folder / "._9.jsonl").write_bytes(b"\0")

    assert differences(library, folder, folder) == []


def test_records_keep_the_order_of_the_files(ask, segment, tmp_path):
    # Enough for several threads: DuckDB gives up the order if a query allows it to.
    events = [
        {"kind": ("event", "loss")[n % 3 == 0], "t": float(n), "topic": "x"}
        for n in range(60_000)
    ]
    folder = tmp_path / "run"
    segment(folder / "1.jsonl", events[:50_000], 1)
    segment(folder / "2.jsonl.zst", events[50_000:], 2)

    [(_, answer), (_, losses)] = ask(
        folder,
        "SELECT t, segment FROM raw.event ORDER BY rowid",
        "SELECT t FROM raw.loss ORDER BY rowid",
    )

    assert answer == [(n, 1 if n < 50_000 else 2) for n in range(60_000) if n % 3]
    assert losses == [(n,) for n in range(0, 60_000, 3)]


OF_TRACES = ["run", "task_runs", "chunks", "workers", "prefixes", "worker_samples", "events"]


@pytest.mark.parametrize("traces", [str(ROOT / "sample_traces" / "coffea*"), SAMPLES[:2]])
def test_several_traces_are_told_apart(ask, traces):
    answers = ask(traces, *(f"FROM {name}" for name in OF_TRACES))

    with Trace(SAMPLES[0]) as one, Trace(SAMPLES[1]) as other:
        for name, (_, rows) in zip(OF_TRACES, answers, strict=True):
            alone = one.view(name).fetchall() + other.view(name).fetchall()
            assert same(in_order(rows), in_order(alone)), name


def test_a_trace_that_grows_is_read_anew(tmp_path, segment, records):
    path = segment(tmp_path / "t.jsonl", records[:100])
    script = SCRIPT.read_text(encoding="utf-8")

    with duckdb.connect() as connection:
        connection.execute(f"SET VARIABLE trace = {literal(path)}")
        connection.execute(script)
        before = connection.sql("SELECT records FROM trace_info").fetchall()
        segment(path, records)
        connection.execute(script)
        after = connection.sql("SELECT records FROM trace_info").fetchall()

    assert (before, after) == ([(102,)], [(len(records) + 2,)])


def test_a_database_keeps_it_for_later_sessions(tmp_path):
    database = str(tmp_path / "run.duckdb")
    commands = [
        "-c",
        f"SET VARIABLE trace = {literal(FAILURES)}",
        "-c",
        ".read schemas/roast.sql",
    ]
    subprocess.run([SHELL, database, *commands], check=True, cwd=ROOT)

    def later(_trace: Path, *queries: str) -> list[tuple[list[str], list[tuple]]]:
        with duckdb.connect(database) as connection:
            return [_answer(connection, query) for query in queries]

    assert differences(later, FAILURES, FAILURES) == []


# -- damaged traces ----------------------------------------------------------------------


def damaged(**changes: bytes) -> list:
    return [pytest.param(text, id=name.replace("_", " ")) for name, text in changes.items()]


@pytest.mark.parametrize(
    "lines",
    damaged(
        garbage=b"garbage\n[1,2]\n{}\nnull\n",
        bytes=b'\xff\xfe\x00\n\0\0\0\n{"kind":"task","t":1,"key":"\xff"}\n',
        two_on_a_line=b'{"kind":"task","t":1,"key":"b"}{"kind":"task","t":1,"key":"c"}\n',
        blank_lines=b"\n\r\n\n",
        unknown_kinds=b"".join(b'{"kind":"k%d","t":1}\n' % (n // 2) for n in range(51)),
        names_of_other_tables=b'{"kind":"kinds","t":1}\n{"kind":"lines","t":1}\n',
        incomplete=b'{"kind":"task","t":1}\n{"kind":"chunk","key":"x"}\n{"kind":"task"}\n',
        wrong_types=b'{"kind":"task","t":"soon","key":"a"}\n'
        b'{"kind":"task","t":"5","key":{"a":1},"dependencies":{"b":2},"run_id":1e30}\n',
        out_of_all_time=b'{"kind":"event","t":1e400,"topic":"x"}\n',
        unknown_fields=b'{"kind":"task","t":1,"key":"a","flavour":{"new":[1]},"place":2}\n',
        second_header=b'{"kind":"header","t":1,"schema_version":"1.0","trace_id":"x","segment":9}\n',
        the_end_missing=b'{"kind":"transition","t":1.0,"key":"a","start":"wai',
    ),
)
def test_lines_that_are_no_records(library, segment, records, tmp_path, lines):
    path = segment(tmp_path / "t.jsonl", records[:300])
    header, rest = path.read_bytes().split(b"\n", 1)
    # The end of a file is where it was cut.
    path.write_bytes(header + b"\n" + (lines + rest if lines.endswith(b"\n") else rest + lines))

    assert different_tables(library, path, path) == []


def test_lines_that_are_no_records_in_the_shell(shell, segment, records, tmp_path):
    path = segment(tmp_path / "t.jsonl", records[:300])
    header, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(header + b'\ngarbage\n{"kind":"new","t":1}\n' + rest[:-40])

    assert differences(shell, path, path) == []


@pytest.mark.parametrize("name", ["run-7.jsonl", "run-7.jsonl.zst", "run-7.txt", ".jsonl"])
def test_a_file_without_header_gives_its_name(ask, records, tmp_path, name):
    text = "".join(json.dumps(record) + "\n" for record in records[:300]).encode()
    (tmp_path / name).write_bytes(zstandard.compress(text) if name.endswith("zst") else text)

    assert differences(ask, tmp_path / name, tmp_path / name) == []


@pytest.mark.parametrize("headless", [["9"], ["10"], ["9", "11"]])
def test_a_segment_without_header_goes_with_its_neighbours(library, folder, headless):
    for name in headless:
        [path] = folder.glob(f"{name}.*")
        text = _decompressed(path).split(b"\n", 1)[1]
        path.unlink()
        (folder / f"{name}.jsonl").write_bytes(text)

    assert different_tables(library, folder, folder) == []


def test_no_header_at_all_in_a_folder(library, records, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for number, some in enumerate((records[:500], records[500:])):
        text = "".join(json.dumps(record) + "\n" for record in some)
        (folder / f"{number}.jsonl").write_text(text)

    assert different_tables(library, folder, folder) == []


@pytest.mark.parametrize("name", ["0.jsonl", "bad.jsonl"])
def test_an_empty_file_and_a_missing_segment(library, folder, name):
    (folder / name).write_bytes(b"")
    (folder / "10.jsonl").unlink()

    assert different_tables(library, folder, folder) == []


@pytest.mark.parametrize("version", ["2.7", "1.7", "one", "2.", "2.00000000001", ""])
def test_another_schema_version(library, segment, records, tmp_path, version):
    path = segment(tmp_path / "t.jsonl", records[:300], schema_version=version)

    assert different_tables(library, path, path) == []


# -- what is refused ---------------------------------------------------------------------


def refusal(trace: object) -> str:
    """What the shell says of a trace; it is one line, and it gives up."""
    done = said_by_shell(f"SET VARIABLE trace = {literal(trace)}", ".read schemas/roast.sql")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    return line


def test_no_trace_is_named():
    done = said_by_shell(".read schemas/roast.sql")

    assert done.returncode == 1
    assert done.stderr == (
        "Invalid Input Error: no trace is named; say SET VARIABLE trace = 'trace.jsonl.zst'; "
        "and read this file again\n"
    )


def test_nothing_there(tmp_path):
    assert f"there is no '{tmp_path}/x.jsonl'; name a trace" in refusal(tmp_path / "x.jsonl")


def test_a_folder_without_a_trace(tmp_path):
    assert f"there is no '{tmp_path}'; name a trace" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [(b"", "is empty"), (b"\n\n", "is empty"), (b"# Notes\n", "no line is a record")],
)
def test_a_file_that_is_no_trace(tmp_path, text, said):
    (tmp_path / "t.jsonl").write_bytes(text)

    assert said in refusal(tmp_path / "t.jsonl")


def test_a_newer_major_version(tmp_path, segment, records):
    major = int(SCHEMA_VERSION.split(".")[0])
    path = segment(tmp_path / "t.jsonl", records[:9], schema_version=f"{major + 1}.0")

    assert f"schema version {major + 1}.0 is newer than what this file reads" in refusal(path)


def test_a_segment_that_is_there_twice(folder, segment, records):
    segment(folder / "12.jsonl", records, 3)

    assert f"segment 3 is there twice: '{folder}/11.jsonl.zst' and '{folder}/12" in refusal(
        folder
    )


# -- what it says of itself --------------------------------------------------------------


def test_views_and_columns_have_their_comments(ask):
    [(_, views), (_, columns)] = ask(
        FAILURES,
        "SELECT view_name, comment FROM duckdb_views() "
        "WHERE NOT internal AND NOT starts_with(view_name, '_')",
        "SELECT table_name, column_name, comment FROM duckdb_columns() "
        "WHERE schema_name = 'main' AND comment IS NOT NULL",
    )

    assert dict(views) == {view.name: view.comment for view in documented_views()}
    assert {(view, column): comment for view, column, comment in columns} == {
        (view.name, column.name): column.comment
        for view in documented_views()
        for column in view.columns
    }


def test_records_are_tables_with_the_declared_types(library):
    [(_, rows)] = library(
        FAILURES,
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE schema_name = 'raw' AND table_name NOT IN ('segments', 'damage')",
    )
    place = {"segment": "BIGINT", "trace_id": "VARCHAR"}
    declared = {
        (kind.name, name): {**duckdb_columns(), **place}[name]
        for kind in kinds().values()
        for name in [*(field.name for field in kind.fields if field.name != "kind"), *place]
    }

    with duckdb.connect() as connection:
        types = {
            key: str(connection.sql(f"SELECT NULL::{type_} AS value").types[0])
            for key, type_ in declared.items()
        }
        found = {
            (table, column): str(connection.sql(f"SELECT NULL::{type_} AS value").types[0])
            for table, column, type_ in rows
        }
    assert found == types


def test_nothing_is_left_behind_but_tables_and_views(library):
    [(_, variables), (_, functions), (_, tables)] = library(
        FAILURES,
        "SELECT name FROM duckdb_variables()",
        "SELECT function_name FROM duckdb_functions() "
        "WHERE NOT internal AND database_name = 'temp'",
        "SELECT table_name FROM duckdb_tables() WHERE temporary",
    )

    assert (variables, functions, tables) == ([("trace",)], [], [])


def test_the_command_at_its_head_runs():
    head = SCRIPT.read_text(encoding="utf-8").split("\n\n")[0]
    [command] = re.findall(r"^--     (duckdb .*)$", head, re.MULTILINE)

    done = subprocess.run(
        command.replace("trace.jsonl.zst", str(FAILURES)),
        shell=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": f"{SHELL.parent}:/usr/bin:/bin"},
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "core_efficiency" in done.stdout


def _decompressed(path: Path) -> bytes:
    decompress = {".zst": zstandard.decompress, ".gz": gzip.decompress}.get(path.suffix, bytes)
    return decompress(path.read_bytes())
