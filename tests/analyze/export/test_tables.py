"""Views as Parquet files and as tables of a database, with their comments."""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from roast_analyze.cli import main
from roast_analyze.export.scope import find_scope
from roast_analyze.export.tables import write_duckdb, write_parquet
from roast_analyze.open.database import documented_views
from roast_analyze.trace import Trace
from roast_schemas import SCHEMA_VERSION

SAMPLES = [
    Path(__file__).parents[3] / "sample_traces" / f"{name}.jsonl.zst"
    for name in ("coffea_failures", "shuffle_reduce")
]
KEY = "x'\"\x00\n\u202e;é𝄞" + "y" * 50_000

#: Factor that moves times, which are decimal numbers, away from rounding boundaries.
ODD = 2**0.5


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Export a trace of one task, with a user view; return the three paths."""
    folder = tmp_path_factory.mktemp("exported")
    trace, parquet, file = folder / "t.jsonl", folder / "tables", folder / "trace.duckdb"
    header = {"schema_version": SCHEMA_VERSION, "trace_id": "T", "segment": 1, "versions": {}}
    records = [
        {"kind": "header", "t": 0.0, **header},
        {"kind": "task", "t": 1.0, "key": KEY, "prefix": "x", "annotations": {"a": KEY}},
    ]
    trace.write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "views").mkdir()
    (folder / "views" / "keys.sql").write_text("-- The keys.\nSELECT key FROM tasks")
    file.write_bytes(b"an older file, which is replaced")
    words = ["export", trace, "--views", folder / "views", "--parquet", parquet]

    assert main([*map(str, words), "--duckdb", str(file)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "t.jsonl", "tables", "trace.duckdb", "views",
    ]  # fmt: skip
    return trace, parquet, file


def rows_of(relation: duckdb.DuckDBPyRelation) -> list[str]:
    """Return sorted rows as text, without the last digits of floats, which can differ."""
    rows = relation.fetchall()
    return sorted(
        repr([f"{value * ODD:.9g}" if isinstance(value, float) else value for value in row])
        for row in rows
    )


@pytest.mark.exhaustive
def test_exported_rows_are_those_of_the_views(tmp_path):
    folder, file = tmp_path / "tables", tmp_path / "trace.duckdb"
    words = ["export", *SAMPLES, "--parquet", folder, "--duckdb", file]

    assert main([*map(str, words)]) == 0

    assert len(list(folder.iterdir())) == len(documented_views())
    with Trace(*SAMPLES) as trace, duckdb.connect(file, read_only=True) as database:
        for view in trace.views():
            rows = rows_of(trace.view(view.name))
            assert rows_of(database.sql(f"FROM {view.name}")) == rows
            parquet = database.sql(f"FROM '{folder / view.name}.parquet'")
            assert rows_of(parquet) == rows
            types = [(column.name, column.type) for column in view.columns]
            assert list(zip(parquet.columns, map(str, parquet.types), strict=True)) == types


@pytest.mark.exhaustive
def test_a_full_disk_is_an_error_and_leaves_no_file(small_disk, write_trace, task, capsys):
    trace = str(write_trace(task("a")))
    # The disk is full when tables are created, or when the database is closed.
    for nbytes in (40_000, 1_000_000):
        disk = small_disk(nbytes)

        code = main(["export", trace, "--duckdb", str(disk / "trace.duckdb")])

        assert code == 2
        assert f"cannot write '{disk}/trace.duckdb': " in capsys.readouterr().err
        assert list(disk.iterdir()) == []


@pytest.mark.exhaustive
def test_comments_text_and_compression(exported):
    recorded, folder, file = exported
    views = documented_views()
    with duckdb.connect(file, read_only=True) as database:
        query = "SELECT table_name, comment FROM duckdb_tables()"
        tables = dict(database.sql(query).fetchall())
        columns = database.sql(
            "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() "
            "WHERE NOT internal AND table_name <> 'keys'"
        ).fetchall()
    assert tables == {"keys": "The keys.", **{view.name: view.comment for view in views}}
    assert {*columns} == {(v.name, c.name, c.type, c.comment) for v in views for c in v.columns}
    for view in views:
        path = folder / f"{view.name}.parquet"
        metadata = pq.read_metadata(path).metadata
        assert metadata[b"comment"].decode() == view.comment
        comments = {column.name: column.comment for column in view.columns}
        assert json.loads(metadata[b"column_comments"]) == comments
        fields = pq.read_schema(path)
        assert {f.name: f.metadata[b"comment"].decode() for f in fields} == comments
    assert pq.read_metadata(folder / "keys.parquet").metadata[b"comment"] == b"The keys."
    rows = pq.read_metadata(folder / "tasks.parquet").row_group(0)
    assert {rows.column(i).compression for i in range(rows.num_columns)} == {"ZSTD"}
    with Trace(recorded) as trace, duckdb.connect(file, read_only=True) as database:
        rows = trace.rows("FROM tasks")
        assert database.sql("FROM tasks").fetchall() == rows
        assert database.sql(f"FROM '{folder}/tasks.parquet'").fetchall() == rows
        assert database.sql("FROM keys").fetchall() == [(KEY,)]

    # The shell of an older DuckDB opens both.
    shell = Path(find_spec("duckdb_cli").origin).with_name("duckdb")
    tasks = "(SELECT comment FROM duckdb_tables() WHERE table_name = 'tasks')"
    query = (
        f"SELECT count(*), {tasks} FROM tasks; SELECT count(*) FROM '{folder}/tasks.parquet'"
    )
    done = subprocess.run(
        [shell, "-readonly", file, "-list", "-noheader", "-c", query],
        capture_output=True,
        text=True,
    )
    assert (done.stderr, done.stdout) == ("", f"1|{tables['tasks']}\n1\n")


@pytest.mark.exhaustive
def test_a_scope_selects_rows(open_trace, worker, task, run, tmp_path):
    trace = open_trace(
        worker("w1"),
        worker("w2"),
        *(task(key) for key in ("a-1", "a-2", "b-1")),
        *run("a-1", 1.0, 2.0, "w1"),
        *run("b-1", 3.0, 4.0, "w1"),
        *run("a-2", 5.0, 6.0, "w2"),
    )
    file = tmp_path / "part.duckdb"

    for part, expected in [
        ({"worker": "w1"}, {"task_runs": 2, "workers": 1, "tasks": 3, "run": 1}),
        ({"prefix": "a"}, {"task_runs": 2, "workers": 2, "tasks": 2, "transitions": 4}),
        ({"worker": "scheduler"}, {"task_runs": 0, "workers": 0, "run": 1}),
    ]:
        write_duckdb(trace, find_scope(trace, **part), file)

        with duckdb.connect(file, read_only=True) as database:
            found = {view: len(database.sql(f"FROM {view}").fetchall()) for view in expected}
        assert found == expected, part


@pytest.mark.exhaustive
def test_types_that_parquet_lacks_are_text(write_trace, tmp_path):
    (tmp_path / "odd.sql").write_text("SELECT INTERVAL 1 DAY AS i, union_value(a := 1) AS u")
    with Trace(write_trace(), views=tmp_path) as trace:
        write_parquet(trace, find_scope(trace), tmp_path / "out")

    assert pq.read_table(tmp_path / "out" / "odd.parquet").to_pylist() == [
        {"i": "1 day", "u": "1"}
    ]
