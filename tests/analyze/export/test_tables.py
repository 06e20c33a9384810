"""Views as Parquet files and as tables of a database, with their comments."""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from roast_analyze import Trace
from roast_analyze.cli import main
from roast_analyze.open.database import documented_views

ROOT = Path(__file__).parents[3]
SAMPLES = ["coffea_failures", "shuffle_reduce"]

#: Times are decimal numbers. Multiplied by this, they are not near a limit of rounding.
ODD = 2**0.5


def rows_of(relation: duckdb.DuckDBPyRelation) -> list[str]:
    """Return sorted rows as text; sums of floats differ in their last digits."""
    rows = relation.fetchall()
    return sorted(
        repr([f"{value * ODD:.9g}" if isinstance(value, float) else value for value in row])
        for row in rows
    )


@pytest.fixture(params=SAMPLES)
def sample(request):
    return ROOT / "sample_traces" / f"{request.param}.jsonl.zst"


def test_exported_rows_are_those_of_the_views(sample, tmp_path):
    folder, file = tmp_path / "tables", tmp_path / "trace.duckdb"

    code = main(["export", str(sample), "--parquet", str(folder), "--duckdb", str(file)])

    assert code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables", "trace.duckdb"]
    assert len(list(folder.iterdir())) == len(documented_views())
    with Trace(sample) as trace, duckdb.connect(file, read_only=True) as database:
        for view in trace.views():
            rows = rows_of(trace.view(view.name))
            assert rows_of(database.sql(f"FROM {view.name}")) == rows
            parquet = database.sql(f"FROM '{folder / view.name}.parquet'")
            assert rows_of(parquet) == rows
            types = [(column.name, column.type) for column in view.columns]
            assert list(zip(parquet.columns, map(str, parquet.types), strict=True)) == types


def test_a_full_disk_is_an_error_and_leaves_no_file(small_disk, write_trace, task, capsys):
    trace = str(write_trace(task("a")))
    # The disk is full when tables are created, or when the database is closed.
    for nbytes in (40_000, 1_000_000):
        disk = small_disk(nbytes)

        code = main(["export", trace, "--duckdb", str(disk / "trace.duckdb")])

        assert code == 2
        assert "trace.duckdb' cannot be written" in capsys.readouterr().err
        assert list(disk.iterdir()) == []


def test_comments_and_compression(write_trace, task, tmp_path):
    folder, file = tmp_path / "tables", tmp_path / "trace.duckdb"
    trace = str(write_trace(task("a")))
    main(["export", trace, "--parquet", str(folder), "--duckdb", str(file)])

    views = documented_views()
    with duckdb.connect(file, read_only=True) as database:
        tables = dict(
            database.sql("SELECT table_name, comment FROM duckdb_tables()").fetchall()
        )
        columns = {
            (table, column): (type_, comment)
            for table, column, type_, comment in database.sql(
                "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() "
                "WHERE NOT internal"
            ).fetchall()
        }
    assert tables == {view.name: view.comment for view in views}
    assert columns == {(v.name, c.name): (c.type, c.comment) for v in views for c in v.columns}
    for view in views:
        path = folder / f"{view.name}.parquet"
        metadata = pq.read_metadata(path).metadata
        assert metadata[b"comment"].decode() == view.comment
        comments = {column.name: column.comment for column in view.columns}
        assert json.loads(metadata[b"column_comments"]) == comments
        fields = pq.read_schema(path)
        assert {f.name: f.metadata[b"comment"].decode() for f in fields} == comments
    rows = pq.read_metadata(folder / "tasks.parquet").row_group(0)
    assert {rows.column(i).compression for i in range(rows.num_columns)} == {"ZSTD"}


def test_a_shell_of_an_older_duckdb_opens_both(write_trace, task, tmp_path):
    folder, file = tmp_path / "tables", tmp_path / "trace.duckdb"
    trace = str(write_trace(task("a"), task("b")))
    main(["export", trace, "--parquet", str(folder), "--duckdb", str(file)])
    shell = Path(find_spec("duckdb_cli").origin).with_name("duckdb")
    tasks = "(SELECT comment FROM duckdb_tables() WHERE table_name = 'tasks')"
    commands = [
        f"SELECT count(*), {tasks} FROM tasks",
        f"SELECT count(*) FROM '{folder}/tasks.parquet'",
    ]

    done = subprocess.run(
        [shell, "-readonly", file, "-list", "-noheader", "-c", "; ".join(commands)],
        capture_output=True,
        text=True,
    )

    comments = {view.name: view.comment for view in documented_views()}
    assert (done.stderr, done.stdout) == ("", f"2|{comments['tasks']}\n2\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--worker", "w1"], {"task_runs": 2, "workers": 1, "tasks": 3, "run": 1}),
        (["--prefix", "a"], {"task_runs": 2, "workers": 2, "tasks": 2, "transitions": 4}),
        (["--from", "4.5"], {"task_runs": 1, "workers": 2, "transitions": 2}),
        (["--to", "2.5"], {"task_runs": 1, "transitions": 2}),
        (["--worker", "scheduler"], {"task_runs": 0, "workers": 0, "run": 1}),
    ],
)
def test_a_scope_selects_rows(write_trace, worker, task, run, tmp_path, options, expected):
    path = write_trace(
        worker("w1"),
        worker("w2"),
        *(task(key) for key in ("a-1", "a-2", "b-1")),
        *run("a-1", 1.0, 2.0, "w1"),
        *run("b-1", 3.0, 4.0, "w1"),
        *run("a-2", 5.0, 6.0, "w2"),
    )
    file = tmp_path / "part.duckdb"

    assert main(["export", str(path), "--duckdb", str(file), *options]) == 0

    with duckdb.connect(file, read_only=True) as database:
        counts = {
            name: database.sql(f"SELECT count(*) FROM {name}").fetchall()[0][0]
            for name in expected
        }
    assert counts == expected


def test_views_of_the_user_are_exported_with_their_comments(write_trace, task, tmp_path):
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "keys.sql").write_text("-- The keys.\nSELECT key FROM tasks")
    folder, file = tmp_path / "p", tmp_path / "d.duckdb"
    file.write_bytes(b"an older file, which is replaced")
    words = ["export", str(write_trace(task("a"))), "--views", str(tmp_path / "views")]

    assert main([*words, "--parquet", str(folder), "--duckdb", str(file)]) == 0

    assert pq.read_metadata(folder / "keys.parquet").metadata[b"comment"] == b"The keys."
    with duckdb.connect(file, read_only=True) as database:
        assert database.sql("FROM keys").fetchall() == [("a",)]
        found = "SELECT comment FROM duckdb_tables() WHERE table_name = 'keys'"
        assert database.sql(found).fetchall() == [("The keys.",)]


def test_unusual_text(write_trace, task, tmp_path):
    key = "x'\"\x00\n\u202e;é𝄞" + "y" * 50_000
    path = write_trace(task(key, annotations={"a": key}))
    folder, file = tmp_path / "p", tmp_path / "d.duckdb"

    assert main(["export", str(path), "--parquet", str(folder), "--duckdb", str(file)]) == 0

    with Trace(path) as trace, duckdb.connect(file, read_only=True) as database:
        rows = trace.view("tasks").fetchall()
        assert database.sql("FROM tasks").fetchall() == rows
        assert database.sql(f"FROM '{folder}/tasks.parquet'").fetchall() == rows
