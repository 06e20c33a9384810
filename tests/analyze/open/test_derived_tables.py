"""Tables that are derived from the records when a query first refers to them."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import duckdb
import pytest
import zstandard

from marks import exhaustive
from roast_analyze import Trace
from roast_analyze.computed import core_time, tables
from roast_analyze.errors import CacheNotUsed, QueryError
from roast_analyze.open import derived_tables
from roast_analyze.open.concurrent_queries import run_concurrently
from roast_analyze.open.views import tables_by_records

SAMPLE = Path(__file__).parents[3] / "sample_traces" / "coffea_failures.jsonl.zst"

COUNT = "SELECT count(*) > 0 FROM core_time"


@pytest.fixture
def calls(monkeypatch):
    """Count the computations of core_time."""
    counted = Mock(side_effect=tables.TABLES["_core_time"])
    monkeypatch.setattr(tables, "TABLES", {**tables.TABLES, "_core_time": counted})
    return counted


@pytest.fixture
def path(write_trace, worker, task, run):
    return write_trace(worker("w1"), task("a"), *run("a", 10.0, 20.0))


@pytest.fixture
def files(own_cache):
    """Return a function that lists the files of derived tables."""
    return lambda: sorted(own_cache.glob("*/*.tables"))


def test_a_table_is_computed_once_by_the_first_query_that_refers_to_it(path, calls):
    trace = Trace(path)
    trace.frame("tasks")
    assert calls.call_count == 0
    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(lambda _: trace.rows(COUNT), range(8)))
    assert counts == [[(True,)]] * 8
    assert calls.call_count == 1


def test_views_of_the_user(path, calls, tmp_path):
    (tmp_path / "idle.sql").write_text("SELECT * FROM CORE_TIME WHERE category = 'idle'")
    (tmp_path / "tails.sql").write_text("SELECT * FROM idle WHERE use = 'tail'")
    trace = Trace(path, views=tmp_path)
    assert calls.call_count == 0
    assert trace.rows("SELECT count(*) FROM tails") == [(0,)]
    assert trace.rows("SELECT sum(seconds) FROM idle") == [(90.0,)]
    assert calls.call_count == 1


@pytest.mark.parametrize("kind", tables_by_records())
@pytest.mark.exhaustive
def test_tables_that_are_empty_without_a_kind_of_record(monkeypatch, tmp_path, kind):
    """They are, if their statements run."""
    with monkeypatch.context() as patch:
        patch.setattr(derived_tables, "tables_by_records", dict)
        with zstandard.open(SAMPLE, "rt") as file:
            lines = file.read().splitlines(keepends=True)
        kept = [line for line in lines if f'"kind":"{kind}"' not in line]
        (tmp_path / "trace.jsonl").write_text("".join(kept))
        with Trace(tmp_path / "trace.jsonl") as trace:
            rows = {
                name: trace.rows(f"SELECT count(*) FROM {name}")
                for name in sorted(tables_by_records()[kind])
            }
    assert set(map(str, rows.values())) == {"[(0,)]"}, rows


def test_comments_and_sentences_refer_to_no_table(path, calls):
    trace = Trace(path)
    trace.rows("SELECT 1 -- core_time")
    trace.rows("SELECT 1 /* core_time */")
    trace.rows("SELECT 'time of core_time é'")
    assert calls.call_count == 0


@pytest.mark.parametrize(
    "query", ["FROM 'Core_Time'", "SELECT 'é', \"it's\" FROM (SELECT 1 AS \"it's\"), core_time"]
)
def test_quotes_do_not_hide_a_table(path, query):
    trace = Trace(path)
    assert len(trace.rows(query)) == len(trace.frame("core_time")) > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "query", ["FROM query_table('core_' || 'time')", "FROM query('FROM core_time')"]
)
def test_a_query_whose_tables_are_values(path, query):
    assert len(Trace(path).rows(query)) == len(Trace(path).frame("core_time"))


def test_a_macro(path):
    rows = Trace(path).rows("SELECT t, executing FROM concurrency_by(50)")
    assert rows == [(0.0, 0.2), (50.0, 0.0)]


def test_a_table_that_is_computed_from_another_one_of_the_query(path, monkeypatch):
    rows = []

    def compute(trace):
        rows.extend(trace.rows("SELECT count(*) FROM task_slack"))
        return core_time.query(trace)

    monkeypatch.setattr(tables, "TABLES", {**tables.TABLES, "_core_time": compute})
    Trace(path).rows("SELECT * FROM core_time, task_slack")
    assert rows == [(1,)]


def test_a_computation_queries_in_a_second_thread(path, monkeypatch):
    """The query names the table that waits for it."""

    def query(trace):
        run_concurrently(
            trace, lambda submit: submit(trace.rows, "SELECT 1 AS core_time").result()
        )
        return core_time.query(trace)

    monkeypatch.setattr(tables, "TABLES", {**tables.TABLES, "_core_time": query})

    assert Trace(path).rows(COUNT) == [(True,)]


def test_a_table_is_filled_while_another_thread_computes_one(path, monkeypatch):
    computes, is_filled = threading.Event(), threading.Event()

    def compute(trace):
        computes.set()
        assert is_filled.wait(10)
        return core_time.query(trace)

    monkeypatch.setattr(tables, "TABLES", {**tables.TABLES, "_core_time": compute})
    trace = Trace(path)
    with ThreadPoolExecutor(1) as thread:
        counted = thread.submit(trace.rows, COUNT)
        assert computes.wait(10)
        assert trace.rows("SELECT count(*) FROM task_slack") == [(1,)]
        is_filled.set()
        assert counted.result() == [(True,)]


@pytest.mark.usefixtures("files")
@pytest.mark.exhaustive
def test_another_process_fills_a_table_while_it_is_computed(path, monkeypatch):
    compute = tables.TABLES["_core_time"]

    def compute_late(trace):
        monkeypatch.setitem(tables.TABLES, "_core_time", compute)
        with Trace(path) as other:
            assert other.rows(COUNT) == [(True,)]
        trace.frame("workers")  # attaches all files
        return compute(trace)

    monkeypatch.setitem(tables.TABLES, "_core_time", compute_late)
    with Trace(path) as trace:
        trace.frame("tasks")
        assert trace.rows(COUNT) == [(True,)]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("files")
def test_views_are_described_before_or_after_tables_are_filled(path, monkeypatch):
    trace = Trace(path)
    create_in, describing = derived_tables.create_in, []

    def observe(schema, sql):
        describing.append(threading.Thread(target=trace.views))
        describing[-1].start()
        describing[-1].join(0.2)
        assert describing[-1].is_alive()
        return create_in(schema, sql)

    monkeypatch.setattr(derived_tables, "create_in", observe)
    assert trace.rows("SELECT count(*) FROM workers") == [(1,)]
    assert describing
    for thread in describing:
        thread.join()


@pytest.mark.filterwarnings("error")
def test_tables_are_kept_if_another_thread_has_read_the_catalog(path, files, monkeypatch):
    trace = Trace(path)
    reader = trace._connect()
    view_of_table = derived_tables.view_of_table

    def read_catalog(*names):
        monkeypatch.setattr(derived_tables, "view_of_table", view_of_table)
        reader.execute("BEGIN TRANSACTION READ ONLY")
        reader.execute("FROM duckdb_columns()").fetchall()
        return view_of_table(*names)

    monkeypatch.setattr(derived_tables, "view_of_table", read_catalog)
    assert trace.rows("SELECT count(*) FROM workers") == [(1,)]
    trace.close()
    assert files() != []


def test_a_table_that_failed_is_filled_by_the_next_query(path, monkeypatch):
    """The second table of a query fails, after the first one was created."""
    create_in, created = derived_tables.create_in, []

    def fail_once(schema, sql):
        created.append(sql)
        return create_in(schema, sql if len(created) != 2 else "CREATE TABLE x AS FROM nothing")

    monkeypatch.setattr(derived_tables, "create_in", fail_once)
    trace = Trace(path)
    with pytest.raises(QueryError, match="nothing"):
        trace.rows("FROM task_runs, workers")
    assert len(created) == 2
    assert trace.rows("SELECT count(*) FROM task_runs, workers") == [(1,)]
    assert trace.rows(COUNT) == [(True,)]


def test_a_query_that_needs_no_derived_table_fills_none(path, files):
    Trace(path).rows("SELECT count(*) FROM transitions")
    assert files() == []


def test_a_table_is_kept_for_later_sessions(path, calls, files):
    with Trace(path) as trace:
        first = trace.rows("FROM core_time")
        assert files() == []
    [kept] = files()
    with Trace(path) as trace:
        assert trace.rows("FROM core_time") == first
    assert calls.call_count == 1
    assert files() == [kept]


def test_tables_of_a_session_that_is_not_closed_are_kept(path, files, own_cache):
    Trace(path).rows(COUNT)
    assert len(files()) == 1
    assert list(own_cache.glob("*/*.unfinished*")) == []


def test_a_relation_outlives_its_session(path, files, own_cache):
    relation = Trace(path).sql("SELECT sum(seconds) FROM core_time")
    assert relation.fetchall() == [(100.0,)]
    assert files() == list(own_cache.glob("*/*.unfinished*")) == []


KILLED = """
import os, sys
from roast_analyze import Trace
from roast_analyze.open import database
database.UNCACHED_BYTES = 0
trace = Trace(sys.argv[1])
print(trace.rows("SELECT sum(seconds) FROM core_time"), flush=True)
os._exit(9)
"""


@pytest.mark.exhaustive
def test_a_killed_session_leaves_no_table(path, files, own_cache):
    process = subprocess.run([sys.executable, "-c", KILLED, path], capture_output=True)
    assert (process.returncode, process.stdout) == (9, b"[(100.0,)]\n")
    [draft] = own_cache.glob("*/*.unfinished")
    assert files() == []
    os.utime(draft, (0.0, 0.0))
    assert Trace(path).rows("SELECT sum(seconds) FROM core_time") == [(100.0,)]
    assert not draft.exists()


@pytest.mark.exhaustive
@pytest.mark.usefixtures("files")
def test_a_time_range_has_its_own_rows_which_are_not_kept(path):
    query = "SELECT sum(seconds) FROM core_time"
    assert Trace(path, start=5, stop=15).rows(query) == [(10.0,)]
    assert Trace(path).rows(query) == [(100.0,)]
    assert Trace(path, start=5, stop=15).rows(query) == [(10.0,)]


@pytest.mark.parametrize("kept", [exhaustive(0.0), 0.3, exhaustive(0.999)])
def test_a_truncated_file_is_replaced(path, files, kept):
    first = Trace(path).rows("FROM core_time")
    for file in files():
        os.truncate(file, int(kept * file.stat().st_size))
    assert Trace(path).rows("FROM core_time") == first


def test_a_file_with_a_damaged_header_is_ignored(path, files):
    first = Trace(path).rows("FROM core_time")
    for file in files():
        file.write_bytes(b"0" * file.stat().st_size)
    assert Trace(path).rows("FROM core_time") == first


def test_tables_are_in_memory_if_no_file_can_be_written(path, files, monkeypatch):
    trace = Trace(path)
    monkeypatch.setattr(derived_tables, "make_private", Mock(side_effect=OSError("full")))
    with pytest.warns(CacheNotUsed, match="full"):
        assert trace.rows("SELECT sum(seconds) FROM core_time") == [(100.0,)]
    trace.close()
    assert files() == []


def test_tables_that_a_full_disk_cannot_hold_are_filled_in_memory(path, files, monkeypatch):
    create_in, drafts = derived_tables.create_in, []

    def fail_once(schema, sql):
        drafts.append(schema)
        if len(drafts) == 2:
            raise duckdb.IOException("No space left on device")
        return create_in(schema, sql)

    monkeypatch.setattr(derived_tables, "create_in", fail_once)
    with Trace(path) as trace, pytest.warns(CacheNotUsed, match="No space left"):
        assert trace.rows("SELECT sum(seconds) FROM core_time") == [(100.0,)]
    assert len(set(drafts)) == 2
    assert files() == []
