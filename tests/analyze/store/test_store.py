"""Adding, replacing and removing traces; the store stays consistent."""

import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from marks import exhaustive
from roast_analyze import Store, Trace
from roast_analyze.errors import MissingExtra, NotAStore, NotWritable, UnknownTrace
from roast_analyze.store import delta
from roast_analyze.store.conversion import Source, convert
from roast_analyze.store.delta import Location
from roast_analyze.store.layout import RAW, VIEWS, relation
from roast_analyze.store.store import in_batches
from roast_recorder.scheduler.health import note_of

#: 2026-01-31 and 2026-02-01, UTC.
JANUARY, FEBRUARY = 1769817600.0, 1769904000.0


def rows(store: Store, table: str) -> pl.DataFrame:
    """Return the rows of a table as any Delta Lake reader does."""
    return pl.read_delta(f"{store.path}/{table}")


def valid_rows(store: Store, table: str) -> pl.DataFrame:
    return rows(store, table).join(rows(store, "runs"), on="addition", how="semi")


def queried(store: Store) -> list[str]:
    """Return the IDs of the traces that have rows."""
    found = store.sql("SELECT DISTINCT trace_id FROM task_runs ORDER BY 1").fetchall()
    return [trace_id for (trace_id,) in found]


@pytest.mark.exhaustive
def test_each_table_has_the_rows_of_all_traces(filled, original):
    paths = [original / "A.jsonl", original / "B.jsonl"]

    again = filled.add(paths)

    assert (again.added, again.unchanged) == (0, 2)
    with Trace(*paths) as both:
        for table in (*RAW, *VIEWS):
            [(expected,)] = both.sql(f"SELECT count(*) FROM {relation(table)}").fetchall()
            is_there = DeltaTable.is_deltatable(f"{filled.path}/{table}")
            stored = len(valid_rows(filled, table)) if is_there else 0
            assert (table, stored) == (table, expected)
    assert filled.check() == []


@pytest.mark.exhaustive
def test_other_readers_can_read_the_tables(filled):
    table = DeltaTable(f"{filled.path}/task_runs")
    files = table.file_uris()

    assert len(rows(filled, "task_runs")) == 5
    assert ds.dataset(files, format="parquet").count_rows() == 5
    count = duckdb.sql("SELECT count(*) FROM read_parquet($files)", params={"files": files})
    assert count.fetchall() == [(5,)]
    # Comments and types are kept.
    fields = {field.name: field for field in table.schema().fields}
    assert fields["compute_seconds"].type.type == "double"
    assert fields["worker"].metadata["comment"].startswith("Address of the worker")
    # Missing rows are detected.
    DeltaTable(f"{filled.path}/task").delete("key = 'x-0' AND trace_id = 'A'")
    [problem] = filled.check()
    assert (problem.table, problem.trace_id) == ("task", "A")
    assert problem.detail == "1 rows instead of 2"


@pytest.mark.parametrize(
    ("mebibytes", "threads", "expected"),
    [
        # As few batches as their size allows, the same number for each thread.
        ([2] * 24, 1, [8, 8, 8]),
        ([2] * 24, 2, [6, 6, 6, 6]),
        ([2] * 24, 8, [3] * 8),
        ([2] * 3, 8, [1, 1, 1]),
        # A batch exceeds its size by at most one trace.
        ([10] * 4, 1, [1, 2, 1]),
        ([100, 8, 8], 1, [1, 2]),
        ([0, 0], 2, [2]),
        ([], 2, []),
    ],
)
def test_batches_keep_all_threads_busy(mebibytes, threads, expected):
    sources = [Source((), number) for number in range(len(mebibytes))]

    batches = in_batches(sources, [size * 2**20 for size in mebibytes], threads)

    assert [len(batch) for batch in batches] == expected
    assert [source for batch in batches for source in batch] == sources


@pytest.mark.exhaustive
def test_a_longer_version_replaces_a_trace_and_a_shorter_one_does_not(store, write_run):
    for tasks, expected in [(2, (1, 0)), (5, (1, 0)), (3, (0, 1))]:
        result = store.add([write_run("A", tasks=tasks, name=f"{tasks}/run.jsonl")])
        assert (result.added, result.unchanged) == expected

    assert store.runs()["tasks"].to_list() == [5]
    assert len(valid_rows(store, "task")) == 5
    assert store.sql("SELECT count(*) FROM task_runs").fetchall() == [(5,)]
    assert all(problem.is_harmless for problem in store.check())


@pytest.mark.exhaustive
def test_unreadable_traces_are_listed_and_all_others_added(store, write_run, tmp_path):
    (tmp_path / "text.jsonl").write_text("no record\n")
    store.add([tmp_path / "text.jsonl"])

    # A store without any trace is empty.
    assert store.runs().height == 0
    assert store.expired(before_t=FEBRUARY) == []
    assert store.check() == []
    assert store.sql("SELECT program, start_t FROM program_history").fetchall() == []

    copies = [write_run("A", name=f"{name}.jsonl") for name in ("one", "two")]
    added = store.add([tmp_path / "text.jsonl", tmp_path / "none.jsonl", *copies])

    failed = sorted(failure.path for failure in added.failures)
    assert failed == [str(tmp_path / "none.jsonl"), str(tmp_path / "text.jsonl")]
    # Two copies of a trace are one run.
    assert (added.added, store.runs()["trace_id"].to_list()) == (1, ["A"])
    assert store.check() == []


@pytest.mark.exhaustive
def test_a_store_of_an_older_version_gets_all_columns(store, write_run):
    Location.of(store.path).create("runs", pa.schema({"trace_id": pa.string()}))

    assert store.add([write_run("A")]).added == 1


@pytest.mark.exhaustive
def test_runs_whose_start_is_not_a_date(store, write_run, tmp_path, analyze):
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(write_run("A").read_bytes()[:20])
    milliseconds = write_run("M", start=1000 * JANUARY)

    added = store.add([cut, milliseconds, write_run("J", start=JANUARY)])

    # Times in other units are no times of a run.
    [failure] = added.failures
    assert (added.added, Path(failure.path)) == (2, milliseconds)
    assert "t cannot be 1769817600000.0 (t is in seconds since 1970)" in str(failure)
    found = store.runs().select("trace_id", "month").rows()
    assert found == [("J", "2026-01"), ("cut", "unknown")]
    for words in ("store", "list", store.path), (store.path, "--html", tmp_path / "s.html"):
        assert analyze(*words)[0] == 0


@pytest.mark.exhaustive
def test_rows_of_an_interrupted_addition_are_invisible_until_it_is_repeated(filled, write_run):
    place = Location.of(filled.path)
    # Killed after the rows were committed, and before the run was.
    unfinished = convert([Source((write_run("C"),), place.reserve(1))], place)
    place.append(unfinished.files)

    assert queried(filled) == ["A", "B"]
    assert {problem.is_harmless for problem in filled.check()} == {True}

    filled.add([write_run("C")])
    filled.compact(grace_hours=0)

    assert queried(filled) == ["A", "B", "C"]
    assert filled.check() == []
    assert len(rows(filled, "task")) == 7


@pytest.mark.exhaustive
def test_interrupted_additions_that_may_still_end_are_kept(store, write_run):
    store.add([write_run("B")])
    place = Location.of(store.path)
    unfinished = convert([Source((write_run("A"),), place.reserve(1))], place)
    place.append(unfinished.files)

    store.compact()
    place.merge_runs(unfinished.runs[0], lambda _current: [0])

    assert store.runs().height == 2
    assert store.check() == []


@pytest.mark.exhaustive
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
def test_several_processes_can_create_a_table_at_once(store, write_run):
    place = Location.of(store.path)
    file = convert([Source((write_run("A"),), 1)], place).files[0]
    # Without retries, about one of 15 commits fails.
    for number in range(20):
        copies = [replace(file, table=f"t{number}", path=f"{n}.parquet") for n in range(4)]
        with ThreadPoolExecutor(len(copies)) as threads:
            list(threads.map(lambda copy: place.append([copy]), copies))

        assert len(DeltaTable(place.table(f"t{number}")).file_uris()) == len(copies)


@pytest.mark.exhaustive
def test_files_are_partitioned_by_month_and_merged_in_the_order_of_additions(store, write_run):
    for number, start in enumerate([JANUARY, FEBRUARY, JANUARY]):
        store.add([write_run(f"T{number}", start=start)])

    store.compact(grace_hours=0)

    files = DeltaTable(f"{store.path}/task").file_uris()
    assert sorted(file.split("/")[-2] for file in files) == ["month=2026-01", "month=2026-02"]
    assert store.runs()["month"].to_list() == ["2026-02", "2026-01", "2026-01"]
    january = rows(store, "task").filter(month="2026-01")
    assert january["trace_id"].to_list() == ["T0", "T0", "T2", "T2"]
    assert store.check() == []


def test_removed_traces_are_gone_at_once_and_their_files_when_compacted(filled):
    filled.remove(["A"])

    assert queried(filled) == ["B"]
    filled.compact(grace_hours=0)
    assert rows(filled, "task")["trace_id"].unique().to_list() == ["B"]
    with pytest.raises(UnknownTrace, match="has no trace 'A'"):
        filled.remove(["A"])


@pytest.mark.exhaustive
def test_a_trace_is_added_by_its_relative_path(store, write_run, monkeypatch):
    monkeypatch.chdir(write_run("A").parent)

    assert store.add(["A.jsonl"]).added == 1


def _overwrite_commit(store, content: str) -> None:
    """Overwrite the newest commit that added runs."""
    commits = sorted(Path(store.path).glob("runs/_delta_log/*.json"))
    [*_, newest] = [path for path in commits if '"add"' in path.read_text()]
    newest.write_text(content)


@pytest.mark.parametrize(
    "lose",
    [
        exhaustive(lambda store: _overwrite_commit(store, '{"x":1}\n')),
        exhaustive(lambda store: _overwrite_commit(store, "")),
        exhaustive(lambda store: DeltaTable(f"{store.path}/runs").delete("trace_id = 'B'")),
    ],
)
def test_runs_that_nobody_removed_are_reported_and_their_rows_kept(store, write_run, lose):
    store.add([write_run("A")])
    store.add([write_run("C")])
    store.remove(["C"])
    store.add([write_run("B")])
    assert {problem.is_harmless for problem in store.check()} == {True}
    lose(store)
    assert store.runs()["trace_id"].to_list() == ["A"]

    problems = store.check()
    assert [p.trace_id for p in problems if p.table == "runs"] == ["B"]
    assert not any(problem.is_harmless for problem in problems)
    with pytest.raises(NotAStore, match=r"'B' is missing in runs.*add it again"):
        store.compact(grace_hours=0)

    store.add([write_run("B")])
    assert {problem.is_harmless for problem in store.check()} == {True}
    store.compact(grace_hours=0)
    assert sorted(rows(store, "task")["trace_id"].unique()) == ["A", "B"]
    assert store.check() == []


def test_traces_cannot_be_removed_if_deltalake_cannot_delete_rows(filled, tmp_path):
    renamed = Store(shutil.copytree(filled.path, tmp_path / "[1]"))

    with pytest.raises(NotWritable, match=r"with '\[' in its path; rename the folder$"):
        renamed.remove(["A"])
    assert queried(renamed) == ["A", "B"]


@pytest.mark.exhaustive
def test_a_table_that_cannot_be_read_is_reported(store, write_run):
    store.add([write_run("A")])
    log = Path(store.path) / "task" / "_delta_log" / f"{0:020}.json"
    log.write_bytes(log.read_bytes()[:20])
    message = f"cannot read '{store.path}/task' (Kernel error: "

    # Other tables are checked, too.
    DeltaTable(f"{store.path}/worker_added").delete()
    problems = {problem.table: problem.detail for problem in store.check()}
    assert problems.keys() == {"task", "worker_added"}
    assert problems["task"].startswith(message)
    for call in store.compact, lambda: store.sql("FROM raw.task"):
        with pytest.raises(NotAStore) as caught:
            call()
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)


def test_a_store_that_cannot_be_written(original, small_disk):
    disk = small_disk(2**20)
    store = Store(shutil.copytree(original / "store", disk / "store"))
    with suppress(OSError):
        (disk / "large").write_bytes(bytes(2**20))

    for call in store.compact, lambda: store.remove(["A"]):
        with pytest.raises(NotWritable) as caught:
            call()
        assert str(caught.value).startswith(f"cannot write '{store.path}/")
        assert not {"\n", "\x1b"}.intersection(str(caught.value))


def test_no_store_and_no_library(tmp_path, monkeypatch):
    with pytest.raises(NotAStore, match="is not a store: create it with"):
        Store(tmp_path).runs()

    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.delitem(sys.modules, delta.__name__)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[store\]' in a clone"):
        import_module(delta.__name__)


def test_notes_of_the_recorder_beside_traces_are_left_out(store, write_run, tmp_path):
    """A pattern of the shell for all files of a folder matches them as well."""
    write_run("A", "runs/A.jsonl")
    note_of(str(tmp_path / "runs" / "B")).write_text('{"problem": "no space"}')

    result = store.add(sorted((tmp_path / "runs").iterdir()))

    assert (result.added, result.failures) == (1, ())


def test_a_server_without_tls(monkeypatch):
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION"):
        monkeypatch.setenv(f"AWS_{name}", "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)

    with pytest.raises(NotAStore) as caught:
        Store("s3://bucket/store").runs()

    assert str(caught.value) == (
        "cannot read 's3://bucket/store/runs' (the address of its server begins with http://, "
        "without encryption): set AWS_ALLOW_HTTP=true (for Azure, AZURE_ALLOW_HTTP), or use an "
        "address with https://"
    )
