"""schemas/roast.sql in a plain DuckDB returns what `Trace` returns, for damaged traces too."""

import gzip
import importlib.util
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import duckdb
import pytest
import zstandard

from nightly.comparison import Answer, differences
from roast_analyze import Trace
from roast_analyze.open.database import documented_views
from roast_analyze.open.views import computed_view_names, view_names
from roast_schemas import SCHEMA_VERSION
from sealing import sealed

ROOT = Path(__file__).parents[2]
SCRIPT = (ROOT / "schemas" / "roast.sql").read_text("utf-8")
VIEWS = [name for name in view_names() if name not in computed_view_names()]
SAMPLES = sorted((ROOT / "sample_traces").glob("*.jsonl.zst"))
FAILURES = ROOT / "sample_traces" / "coffea_failures.jsonl.zst"
#: The shell of the package duckdb-cli, which can have another version than the library.
SHELL = Path(importlib.util.find_spec("duckdb_cli").origin).with_name("duckdb")
#: Tables of records, and tables that views are computed from.
TABLES = (
    "SELECT schema_name, table_name FROM duckdb_tables() "
    "WHERE schema_name IN ('raw', 'main') AND NOT temporary "
    "AND database_name = current_database() ORDER BY ALL"
)
#: DuckDB has no function that computes the checksum.
UNCHANGED = "reason <> 'changed content'"


def literal(value: object) -> str:
    """Write a path, or a list of paths, in SQL."""
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return "'" + str(value).replace("'", "''") + "'"


def run_shell(*commands: str, database: str = ":memory:") -> subprocess.CompletedProcess[str]:
    arguments = [part for command in commands for part in ("-c", command)]
    return subprocess.run(
        [SHELL, database, *arguments], capture_output=True, text=True, cwd=ROOT
    )


def library(trace: object, *queries: str) -> list[Answer]:
    """Return the answers of the library."""
    with duckdb.connect() as connection:
        connection.execute(f"SET VARIABLE trace = {literal(trace)}")
        connection.execute(SCRIPT)
        return [Answer.of(connection.sql(query)) for query in queries]


def test_the_guide_names_the_views_that_only_python_computes():
    guide = (ROOT / "docs" / "how-to" / "export.md").read_text("utf-8")
    paragraph = guide.split("## Plain DuckDB")[1].split("\n```")[0]

    assert {*re.findall(r"`([a-z_]+)`", paragraph)} == set(computed_view_names())


@pytest.fixture
def shell(tmp_path):
    """Return the answers of the shell, which copies them to files."""

    def shell(trace: object, *queries: str) -> list[Answer]:
        files = [tmp_path / f"answer-{number}.parquet" for number in range(len(queries))]
        done = run_shell(
            f"SET VARIABLE trace = {literal(trace)}",
            ".read schemas/roast.sql",
            *(f"COPY ({q}) TO {literal(f)}" for q, f in zip(queries, files, strict=True)),
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        with duckdb.connect() as connection:
            return [Answer.of(connection.sql(f"FROM {literal(file)}")) for file in files]

    return shell


def different_views(ask, trace: object, path: object) -> list[str]:
    """Return the names of the views that differ from those of `Trace`."""
    answers = ask(trace, *(f"FROM {name}" for name in VIEWS))
    different = []
    with Trace(path) as expected:
        for name, answer in zip(VIEWS, answers, strict=True):
            view = expected.view(name)
            view = Answer.of(view.filter(UNCHANGED) if name == "loss" else view)
            if answer.types != view.types or differences(answer, view.rows):
                different.append(name)
    return different


def different_tables(trace: object) -> list[str]:
    """Return the names of the tables that differ from those of `Trace`.

    Views are generated from the same definitions in both, so that equal tables make equal
    views. The order of records counts.
    """
    different = []
    [found] = library(trace, TABLES)
    tables = [tuple(row.values()) for row in found.rows]
    answers = library(trace, *(f'FROM "{schema}"."{table}"' for schema, table in tables))
    with Trace(trace) as expected:
        # `Trace` has views in place of the derived tables.
        assert [name for name in tables if name[0] == "raw"] == expected.rows(TABLES)
        for (schema, table), answer in zip(tables, answers, strict=True):
            place = f'trace."{schema}".' if schema == "raw" else ""
            relation = expected.sql(f'FROM {place}"{table}"')
            other = Answer.of(relation.filter(UNCHANGED) if table == "damage" else relation)
            in_order = schema == "raw" and table != "damage"
            if answer.types != other.types or differences(
                answer, other.rows, in_order=in_order
            ):
                different.append(f"{schema}.{table}")
    return different


@pytest.fixture(scope="module")
def records(read_lines):
    """The records of a run without header and trailer."""
    return [r for r in read_lines(FAILURES) if r["kind"] not in ("header", "trailer")]


@pytest.fixture(scope="module")
def segment(read_lines):
    """Write records as a segment, compressed according to its suffix."""
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


@pytest.fixture
def folder(segment, records, tmp_path):
    """Three segments, stored in three ways, whose numbers are not in the order of text."""
    third = len(records) // 3
    folder = tmp_path / "run"
    segment(folder / "9.jsonl.gz", records[:third], 1)
    segment(folder / "10.jsonl", records[third : 2 * third], 2)
    segment(folder / "11.jsonl.zst", records[2 * third :], 3)
    return folder


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_sample_traces(shell, sample):
    assert different_views(library, sample, sample) == []
    assert different_views(shell, sample, sample) == []


def test_names_of_files_and_folders(shell, segment, records, folder, tmp_path):
    odd = segment(tmp_path / "it's [one]*?.jsonl", records)
    segment(tmp_path / "it's onewhole.jsonl", records[:5])
    (folder / "notes.txt").write_text("hello")
    (folder / "._9.jsonl").write_bytes(b"\0")

    assert different_views(shell, odd, odd) == []
    for ending in ("", "/", "/[!.]*.jsonl*"):
        assert different_views(library, f"{folder}{ending}", folder) == [], ending


def test_records_keep_the_order_of_the_files(segment, tmp_path):
    # Enough for several threads, with which DuckDB does not preserve the order by itself.
    events = [{"kind": "event", "t": float(n), "topic": "x"} for n in range(60_000)]
    segment(tmp_path / "run" / "1.jsonl", events[:50_000], 1)
    segment(tmp_path / "run" / "2.jsonl.zst", events[50_000:], 2)

    query = "SELECT t, segment FROM raw.event ORDER BY rowid"
    [found] = library(tmp_path / "run", query)

    expected = [{"t": n, "segment": 1 if n < 50_000 else 2} for n in range(60_000)]
    assert found.rows == expected


def test_several_traces():
    names = ["run", "task_runs", "chunks", "workers", "worker_samples", "events"]
    for traces in (str(ROOT / "sample_traces" / "coffea*"), SAMPLES[:2]):
        answers = library(traces, *(f"FROM {name}" for name in names))
        with Trace(SAMPLES[0]) as one, Trace(SAMPLES[1]) as other:
            for name, found in zip(names, answers, strict=True):
                alone = [
                    row for each in (one, other) for row in Answer.of(each.view(name)).rows
                ]
                assert differences(found, alone) == [], name


def test_script_can_run_again_after_the_trace_has_grown(tmp_path, segment, records):
    path = segment(tmp_path / "t.jsonl", records[:100])
    counts = []
    with duckdb.connect() as connection:
        connection.execute(f"SET VARIABLE trace = {literal(path)}")
        for some in (records[:100], records):
            segment(path, some)
            connection.execute(SCRIPT)
            counts += connection.sql("SELECT records FROM trace_info").fetchall()

    assert counts == [(102,), (len(records) + 2,)]


def test_database_file_keeps_the_views(tmp_path):
    database = str(tmp_path / "run.duckdb")
    trace = f"SET VARIABLE trace = {literal(FAILURES)}"
    assert run_shell(trace, ".read schemas/roast.sql", database=database).returncode == 0

    def later(_trace: Path, *queries: str) -> list[Answer]:
        with duckdb.connect(database) as connection:
            return [Answer.of(connection.sql(query)) for query in queries]

    assert different_views(later, FAILURES, FAILURES) == []


INVALID_LINES = {
    "garbage": b"garbage\n[1,2]\n{}\nnull\n",
    "bytes": b'\xff\xfe\x00\n\0\0\0\n{"kind":"task","t":1,"key":"\xff"}\n',
    "two on a line": b'{"kind":"task","t":1,"key":"b"}{"kind":"task","t":1,"key":"c"}\n',
    "blank lines": b"\n\r\n\n",
    "unknown kinds": b"".join(b'{"kind":"k%d","t":1}\n' % (n // 2) for n in range(51)),
    "names of other tables": b'{"kind":"kinds","t":1}\n{"kind":"lines","t":1}\n',
    "incomplete": b'{"kind":"task","t":1}\n{"kind":"chunk","key":"x"}\n{"kind":"task"}\n',
    "wrong types": b'{"kind":"task","t":"soon","key":"a"}\n'
    b'{"kind":"task","t":"5","key":{"a":1},"dependencies":{"b":2},"run_id":1e30}\n',
    "infinite time": b'{"kind":"event","t":1e400,"topic":"x"}\n',
    "unknown fields": b'{"kind":"task","t":1,"key":"a","flavour":{"new":[1]},"place":2}\n',
    "second header": b'{"kind":"header","t":1,"schema_version":"1.0",'
    b'"trace_id":"x","segment":9}\n',
    "cut line": b'{"kind":"transition","t":1.0,"key":"a","start":"wai',
}


def test_invalid_lines(shell, segment, records, tmp_path):
    different = {}
    for name, lines in INVALID_LINES.items():
        path = segment(tmp_path / f"{name}.jsonl", records[:300])
        header, rest = path.read_bytes().split(b"\n", 1)
        # A line is cut at the end of a file.
        body = lines + rest if lines.endswith(b"\n") else rest + lines
        path.write_bytes(header + b"\n" + body)
        if found := different_tables(path):
            different[name] = found

    assert different == {}
    assert different_views(shell, path, path) == []


def test_missing_headers(folder, records, tmp_path):
    text = "".join(json.dumps(record) + "\n" for record in records[:300]).encode()
    for name in ("run-7.jsonl", "run-7.jsonl.zst", "run-7.txt", ".jsonl"):
        path = tmp_path / name
        path.write_bytes(zstandard.compress(text) if name.endswith("zst") else text)
        assert different_tables(path) == [], name
    decompress = {".zst": zstandard.decompress, ".gz": gzip.decompress}
    for number in ("9", "10", "11"):
        [path] = folder.glob(f"{number}.*")
        text = decompress.get(path.suffix, bytes)(path.read_bytes()).split(b"\n", 1)[1]
        path.unlink()
        (folder / f"{number}.jsonl").write_bytes(text)
        assert different_tables(folder) == [], number


def test_empty_files_missing_segments_and_other_versions(folder, segment, records, tmp_path):
    (folder / "10.jsonl").unlink()
    for name in ("0.jsonl", "bad.jsonl"):
        (folder / name).write_bytes(b"")
        assert different_tables(folder) == [], name
    for version in ("2.7", "1.7", "one", "2.", "2.00000000001", ""):
        path = segment(tmp_path / "t.jsonl", records[:300], schema_version=version)
        assert different_tables(path) == [], version


def test_errors(folder, segment, records, tmp_path):
    major = int(SCHEMA_VERSION.split(".")[0]) + 1
    newer = segment(tmp_path / "newer.jsonl", records[:9], schema_version=f"{major}.0")
    segment(folder / "12.jsonl", records, 3)
    for name, text in {"empty": b"", "blank": b"\n\n", "notes": b"# Notes\n"}.items():
        (tmp_path / f"{name}.jsonl").write_bytes(text)
    (tmp_path / "folder").mkdir()
    expected = {
        None: "SET VARIABLE trace = 'trace.jsonl.zst'",
        tmp_path / "missing.jsonl": f"'{tmp_path}/missing.jsonl'",
        tmp_path / "folder": f"'{tmp_path}/folder'",
        tmp_path / "empty.jsonl": "is empty",
        tmp_path / "blank.jsonl": "is empty",
        tmp_path / "notes.jsonl": "no line is a record",
        newer: f"schema version {major}.0 is newer",
        folder: f"'{folder}/11.jsonl.zst' and '{folder}/12",
    }

    for trace, text in expected.items():
        variable = () if trace is None else (f"SET VARIABLE trace = {literal(trace)}",)
        done = run_shell(*variable, ".read schemas/roast.sql")
        assert done.returncode == 1, trace
        [line] = done.stderr.splitlines()
        assert text in line


def test_comments_of_views_and_columns(shell):
    views, columns = shell(
        FAILURES,
        "SELECT view_name, comment FROM duckdb_views() "
        "WHERE NOT internal AND NOT starts_with(view_name, '_')",
        "SELECT table_name, column_name, comment FROM duckdb_columns() "
        "WHERE schema_name = 'main' AND comment IS NOT NULL",
    )

    documented = [view for view in documented_views() if view.name in VIEWS]
    assert dict(row.values() for row in views.rows) == {v.name: v.comment for v in documented}
    assert {tuple(row.values()) for row in columns.rows} == {
        (view.name, column.name, column.comment)
        for view in documented
        for column in view.columns
    }


def test_nothing_temporary_is_left():
    variables, functions, tables = library(
        FAILURES,
        "SELECT name FROM duckdb_variables()",
        "SELECT function_name FROM duckdb_functions() "
        "WHERE NOT internal AND database_name = 'temp'",
        "SELECT table_name FROM duckdb_tables() WHERE temporary",
    )

    assert variables.rows == [{"name": "trace"}]
    assert functions.rows == tables.rows == []


def test_command_in_the_head_of_the_script():
    [command] = re.findall(r"^--     (duckdb .*)$", SCRIPT.split("\n\n")[0], re.MULTILINE)
    done = subprocess.run(
        ["sh", "-c", command.replace("trace.jsonl.zst", str(FAILURES))],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": f"{SHELL.parent}:/usr/bin:/bin"},
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "core_efficiency" in done.stdout
