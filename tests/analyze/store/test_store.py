"""Adding, replacing and removing traces; whatever happens, the store stays right."""

import sys
import threading
from importlib import import_module

import duckdb
import polars as pl
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from roast_analyze import Store, Trace
from roast_analyze.errors import MissingExtra, NotAStore, UnknownTrace
from roast_analyze.store import delta
from roast_analyze.store.conversion import Source, convert
from roast_analyze.store.delta import Location
from roast_analyze.store.layout import RAW, VIEWS, relation

#: 2026-01-31 and 2026-02-01, UTC.
JANUARY, FEBRUARY = 1769817600.0, 1769904000.0


def rows(store: Store, table: str) -> pl.DataFrame:
    """Return the rows of a table as any reader of Delta Lake finds them."""
    return pl.read_delta(f"{store.path}/{table}")


def valid_rows(store: Store, table: str) -> pl.DataFrame:
    return rows(store, table).join(rows(store, "runs"), on="addition", how="semi")


def test_each_table_has_the_rows_of_all_traces(store, write_run):
    paths = [write_run("A", tasks=2), write_run("B", tasks=3)]

    store.add(paths)

    with Trace(*paths) as both:
        for table in (*RAW, *VIEWS):
            [(expected,)] = both.sql(f"SELECT count(*) FROM {relation(table)}").fetchall()
            stored = len(valid_rows(store, table)) if expected else 0
            assert (table, stored) == (table, expected)
    assert store.check() == []


def test_the_same_trace_twice_changes_nothing(store, write_run):
    path = write_run("A")

    first, second = store.add([path]), store.add([path])

    assert (first.added, first.unchanged) == (1, 0)
    assert (second.added, second.unchanged) == (0, 1)
    assert len(rows(store, "task")) == 2


@pytest.mark.exhaustive
def test_a_longer_version_replaces_a_trace_and_a_shorter_one_does_not(store, write_run):
    for tasks in (2, 5, 3):
        store.add([write_run("A", tasks=tasks, name=f"{tasks}/run.jsonl")])

    assert store.runs()["tasks"].to_list() == [5]
    assert len(valid_rows(store, "task")) == 5
    assert store.sql("SELECT count(*) FROM task_runs").fetchall() == [(5,)]
    assert all(problem.is_harmless for problem in store.check())


def test_unreadable_traces_are_listed_and_all_others_added(store, write_run, tmp_path):
    (tmp_path / "text.jsonl").write_text("no record\n")

    added = store.add([tmp_path / "text.jsonl", tmp_path / "none.jsonl", write_run("A")])

    assert added.added == 1
    assert sorted(failure.path for failure in added.failures) == [
        str(tmp_path / "none.jsonl"),
        str(tmp_path / "text.jsonl"),
    ]


def test_two_copies_of_a_trace_are_one_run(store, write_run):
    store.add([write_run("A", name="one.jsonl"), write_run("A", name="two.jsonl")])

    assert store.runs()["trace_id"].to_list() == ["A"]
    assert store.check() == []


def test_rows_of_an_interrupted_addition_are_invisible_until_it_is_repeated(store, write_run):
    store.add([write_run("A")])
    place = Location.of(store.path)
    # Killed after the rows were committed, and before the run was.
    unfinished = convert([Source((write_run("B"),), place.reserve(1))], place)
    place.append(unfinished.files)

    assert store.sql("SELECT DISTINCT trace_id FROM task_runs").fetchall() == [("A",)]
    assert {problem.is_harmless for problem in store.check()} == {True}

    store.add([write_run("B")])
    store.compact(grace_hours=0)

    assert store.sql("SELECT DISTINCT trace_id FROM task_runs ORDER BY 1").fetchall() == [
        ("A",),
        ("B",),
    ]
    assert store.check() == []
    assert len(rows(store, "task")) == 4


@pytest.mark.exhaustive
def test_interrupted_additions_that_may_still_end_are_kept(store, write_run):
    place = Location.of(store.path)
    unfinished = convert([Source((write_run("A"),), place.reserve(1))], place)
    place.append(unfinished.files)
    store.add([write_run("B")])

    store.compact()
    place.merge_runs(unfinished.runs[0], lambda _current: [0])

    assert store.runs().height == 2
    assert store.check() == []


def test_several_processes_can_add_the_same_traces_at_once(write_run, tmp_path):
    paths = [write_run("A"), write_run("B"), write_run("C")]
    results = []
    start = threading.Barrier(2)

    def add():
        store = Store(tmp_path / "store")
        start.wait()
        results.append(store.add(paths))

    adders = [threading.Thread(target=add) for _ in range(2)]
    for adder in adders:
        adder.start()
    for adder in adders:
        adder.join()

    store = Store(tmp_path / "store")
    assert sum(result.added for result in results) == 3
    assert sorted(store.runs()["trace_id"]) == ["A", "B", "C"]
    assert all(problem.is_harmless for problem in store.check())


@pytest.mark.exhaustive
def test_files_are_partitioned_by_month_and_merged_in_the_order_of_additions(store, write_run):
    for number, start in enumerate([JANUARY, FEBRUARY, JANUARY]):
        store.add([write_run(f"T{number}", start=start)])

    store.compact(grace_hours=0)

    files = DeltaTable(f"{store.path}/task").file_uris()
    assert sorted(file.split("/")[-2] for file in files) == ["month=2026-01", "month=2026-02"]
    january = rows(store, "task").filter(month="2026-01")
    assert january["trace_id"].to_list() == ["T0", "T0", "T2", "T2"]
    assert store.check() == []


def test_removed_traces_are_gone_at_once_and_their_files_when_compacted(store, write_run):
    store.add([write_run("A"), write_run("B")])

    store.remove(["A"])

    assert store.sql("SELECT DISTINCT trace_id FROM task_runs").fetchall() == [("B",)]
    store.compact(grace_hours=0)
    assert rows(store, "task")["trace_id"].unique().to_list() == ["B"]
    with pytest.raises(UnknownTrace, match="has no trace 'A'"):
        store.remove(["A"])


def test_check_finds_rows_that_are_missing(store, write_run):
    store.add([write_run("A")])
    DeltaTable(f"{store.path}/task").delete("key = 'x-0'")

    [problem] = store.check()

    assert (problem.table, problem.trace_id, problem.detail) == (
        "task",
        "A",
        "1 rows instead of 2",
    )


def test_other_readers_need_nothing_of_ours(store, write_run):
    store.add([write_run("A"), write_run("B")])
    table = f"{store.path}/task_runs"
    files = DeltaTable(table).file_uris()

    assert len(pl.read_delta(table)) == 4
    assert ds.dataset(files, format="parquet").count_rows() == 4
    assert duckdb.sql("SELECT count(*) FROM read_parquet($files)", params={"files": files}) \
        .fetchall() == [(4,)]  # fmt: skip


def test_comments_and_types_are_kept(store, write_run):
    store.add([write_run("A")])

    schema = DeltaTable(f"{store.path}/task_runs").schema()

    fields = {field.name: field for field in schema.fields}
    assert fields["compute_seconds"].type.type == "double"
    assert fields["worker"].metadata["comment"].startswith("Address of the worker")


def test_a_folder_that_is_no_store(tmp_path):
    with pytest.raises(NotAStore, match="is not a store: create it with"):
        Store(tmp_path).runs()


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.delitem(sys.modules, delta.__name__)

    with pytest.raises(MissingExtra, match=r"pip install 'roast-trace\[store\]'"):
        import_module(delta.__name__)
