"""Queries of a store: the views of a trace, views over runs, and the files that are read."""

import re
import warnings

import pytest

from roast_analyze import Store, Trace
from roast_analyze.errors import QueryError
from roast_analyze.store.layout import store_views
from roast_analyze.store.session import named_traces


@pytest.mark.exhaustive
def test_views_of_some_and_of_all_traces(filled, original, write_run):
    paths = [original / "A.jsonl", original / "B.jsonl", write_run("C", tasks=1)]
    assert filled.sql("SELECT count(*) FROM runs").fetchall() == [(2,)]
    filled.add(paths[2:])
    assert filled.sql("SELECT count(*) FROM runs").fetchall() == [(3,)]

    with Trace(*paths) as every, Trace(paths[1]) as trace, filled.trace("B") as stored:
        for view in ("task_runs", "workers", "events", "tasks", "prefixes", "run", "core_time"):
            query = f"SELECT COLUMNS(* EXCLUDE trace_id), trace_id FROM {view}"
            assert filled.sql(query).pl().equals(every.sql(query).pl()), view
        assert stored.frame("task_runs").equals(trace.frame("task_runs"))
    with pytest.raises(QueryError, match="not allowed"):
        filled.sql(f"FROM read_text('{original}/A.jsonl')")
    # A query of one trace reads only its files.
    query = "EXPLAIN ANALYZE SELECT key FROM task_runs WHERE trace_id = 'B'"
    [(_, plan)] = filled.sql(query).fetchall()
    assert "Total Files Read: 1" in plan
    assert len(set(re.findall(r"[0-9a-f]{32}\.parquet", plan))) == 1


@pytest.mark.exhaustive
def test_names_of_tables_can_be_computed(store, write_run):
    store.add([write_run("A"), write_run("B", tasks=3)])

    assert len(store.sql("FROM query_table('task_' || 'runs')").fetchall()) == 5


@pytest.mark.exhaustive
def test_hours_of_runs_without_a_result_are_wasted(filled, write_trace, worker, task, run):
    client = {"kind": "environment", "t": 1.0, "section": "client", "name": "program"}
    records = [worker("w1"), {**client, "value": "p.py"}]
    failed = run("a-1", 0.0, 36.0, outcome="erred", phases=[("compute", 0.0, 36.0)])
    lost = run("a-1", 0.0, 36.0, outcome="lost")
    runs = {
        "failed": [task("a-1"), *failed],
        "idle": [],
        "lost": [task("a-1"), *lost],
        "unknown": [task("a-1")],
    }
    paths = [
        write_trace(*records, *some, stop_t=72.0, name=f"{name}.jsonl", trace_id=name)
        for name, some in runs.items()
    ]
    filled.add(paths)
    which = "WHERE trace_id NOT IN ('A', 'B')"

    query = f"SELECT trace_id, compute_hours, kept_hours FROM runs {which} ORDER BY trace_id"
    assert filled.sql(query).fetchall() == [
        ("failed", 0.01, 0.0), ("idle", 0.0, 0.0), ("lost", 0.0, 0.0), ("unknown", None, None),
    ]  # fmt: skip
    query = f"SELECT trace_id, wasted_hours FROM program_history {which} ORDER BY trace_id"
    assert filled.sql(query).fetchall() == [
        ("failed", 0.02), ("idle", 0.02), ("lost", 0.02), ("unknown", None),
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_differences_of_a_trace_are_those_from_the_first(store, write_trace):
    fact = {"kind": "environment", "t": 1.0, "section": "scheduler versions", "name": "dask"}
    for name in "AB":
        store.add([write_trace({**fact, "value": name}, name=f"{name}.jsonl", trace_id=name)])
    query = "SELECT trace_id, name FROM differences WHERE name = 'dask'"

    assert store.sql(query).fetchall() == [("B", "dask")]
    assert store.sql(f"{query} AND trace_id = 'B'").fetchall() == [("B", "dask")]


@pytest.mark.exhaustive
def test_derived_tables_of_a_trace_are_kept(store, write_run, tmp_path, monkeypatch):
    monkeypatch.setenv("ROAST_CACHE_DIR", str(tmp_path / "cache"))
    store.add([write_run("A"), write_run("B")])
    query = "SELECT seconds FROM critical_path WHERE trace_id = 'A'"
    seconds = store.sql(query).fetchall()

    kept = [*tmp_path.glob("cache/*/*.tables")]
    again = Store(store.path).sql(query).fetchall()

    assert again == seconds
    assert kept
    assert [*tmp_path.glob("cache/*/*.tables")] == kept
    # The same trace with other contents is not mistaken for it.
    store.add([write_run("A", tasks=5, name="longer.jsonl")])
    [(total,)] = store.sql(
        "SELECT sum(seconds) FROM critical_path WHERE trace_id = 'A'"
    ).fetchall()
    assert total == pytest.approx(100.0)
    assert len(store.sql("FROM tasks WHERE trace_id = 'A'").fetchall()) == 5


@pytest.mark.exhaustive
def test_a_stored_trace_needs_no_cache(store, write_run, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROAST_CACHE_DIR", str(tmp_path / "file" / "cache"))
    store.add([write_run("A")])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = store.sql("FROM critical_path WHERE trace_id = 'A'").fetchall()

    assert rows


@pytest.mark.exhaustive
def test_a_run_is_compared_with_others_in_a_query_of_its_trace(
    store, write_trace, worker, chunk, run
):
    program = {"section": "client", "name": "program", "value": "p.py"}
    for trace_id in ("A", "B", "C"):
        records = [
            {"kind": "environment", "t": 0.0, **program},
            worker("w1", host="node1"),
            chunk("x-0", dataset="DY", filename="f.root", entry_start=0, entry_stop=10),
            *run("x-0", 1.0, 2.0),
        ]
        store.add([write_trace(*records, name=f"{trace_id}.jsonl", trace_id=trace_id)])

    for view in store_views():
        if view.name != "runs":
            query = f"SELECT run_number FROM {view.name} WHERE trace_id = 'C'"
            assert store.sql(query).fetchall() == [(3,)], view.name


@pytest.mark.exhaustive
def test_an_attached_recorder_is_not_the_program_of_a_run(store, write_trace):
    for name in ("p.py", "roast-record"):
        program = {"section": "client", "name": "program", "value": name}
        record = {"kind": "environment", "t": 0.0, **program}
        store.add([write_trace(record, name=f"{name}.jsonl", trace_id=name)])
    assert store.sql("SELECT program FROM runs ORDER BY ALL").fetchall() == [("p.py",), (None,)]


def test_traces_that_all_rows_of_a_query_depend_on():
    for query, traces in [
        ("FROM task_runs WHERE trace_id = 'A'", ("A",)),
        ("SELECT count(*) FROM task_runs AS r WHERE key = 'x' AND 'A' = r.trace_id", ("A",)),
        ("FROM task_runs WHERE trace_id IN ('A', 'B')", ("A", "B")),
        ("FROM task_runs JOIN workers USING (trace_id, worker) WHERE trace_id = 'A'", ("A",)),
        ("EXPLAIN ANALYZE FROM task_runs WHERE trace_id = 'A'", ("A",)),
        ("FROM task_runs WHERE trace_id = $id", ("C",)),
        ("FROM task_runs WHERE nbytes > ? AND trace_id = ?", ("D",)),
        ("FROM task_runs WHERE nbytes > ? AND compute_seconds > ? AND trace_id = ?", None),
        ("FROM raw.task WHERE trace_id = 'A'", ("A",)),
        ("FROM my_view WHERE trace_id = 'A'", None),
        ("FROM task_runs WHERE trace_id = 'A' OR worker = 'w1'", None),
        ("FROM task_runs JOIN workers USING (worker) WHERE trace_id = 'A'", None),
        ("FROM task_runs LEFT JOIN workers USING (trace_id) WHERE trace_id = 'A'", None),
        ("FROM tasks WHERE trace_id = 'A' AND key IN (SELECT key FROM task_runs)", None),
        ("WITH a AS (FROM tasks) FROM a WHERE trace_id = 'A'", None),
        ("FROM tasks WHERE trace_id = 'A' UNION FROM tasks", None),
        ("SELECT count(*) FROM tasks", None),
        ("no query", None),
    ]:
        parameters = {"id": "C"} if "$id" in query else [1, "D"]
        assert named_traces(query, parameters) == traces, query
