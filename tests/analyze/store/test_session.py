"""Queries of a store: the views of a trace, views over runs, and the files that are read."""

import re

import pytest

from roast_analyze import Trace
from roast_analyze.store.session import named_traces


def test_views_of_a_trace(store, write_run):
    paths = [write_run("A"), write_run("B", tasks=3)]
    store.add(paths)

    with Trace(*paths) as both:
        for view in ("task_runs", "workers", "events", "tasks", "prefixes", "run", "core_time"):
            query = f"SELECT COLUMNS(* EXCLUDE trace_id), trace_id FROM {view}"
            assert store.sql(query).pl().equals(both.sql(query).pl()), view


def test_a_query_of_one_trace_reads_only_its_files(store, write_run):
    store.add([write_run("A")])
    store.add([write_run("B")])
    query = "EXPLAIN ANALYZE SELECT key FROM task_runs WHERE trace_id = 'B'"

    [(_, plan)] = store.sql(query).fetchall()

    assert "Total Files Read: 1" in plan
    assert len(set(re.findall(r"[0-9a-f]{32}\.parquet", plan))) == 1


def test_traces_of_a_store_are_opened_like_files(store, write_run):
    path = write_run("B", tasks=3)
    store.add([write_run("A"), path])

    with Trace(path) as trace, store.trace("B") as stored:
        assert stored.frame("task_runs").equals(trace.frame("task_runs"))


@pytest.mark.exhaustive
def test_queries_find_what_was_added_since(store, write_run):
    store.add([write_run("A")])
    before = store.sql("SELECT count(*) FROM runs").fetchall()
    store.add([write_run("B")])

    after = store.sql("SELECT count(*) FROM runs").fetchall()

    assert (before, after) == ([(1,)], [(2,)])


def test_a_query_cannot_read_other_files(store, write_run, tmp_path):
    store.add([write_run("A")])

    with pytest.raises(Exception, match="not allowed"):
        store.sql(f"FROM read_text('{tmp_path}/A.jsonl')")


@pytest.mark.parametrize(
    ("query", "traces"),
    [
        ("FROM task_runs WHERE trace_id = 'A'", ("A",)),
        ("SELECT count(*) FROM task_runs AS r WHERE key = 'x' AND 'A' = r.trace_id", ("A",)),
        ("FROM task_runs WHERE trace_id IN ('A', 'B')", ("A", "B")),
        ("FROM task_runs JOIN workers USING (trace_id, worker) WHERE trace_id = 'A'", ("A",)),
        ("EXPLAIN ANALYZE FROM task_runs WHERE trace_id = 'A'", ("A",)),
        ("FROM task_runs WHERE trace_id = $id", ("C",)),
        ("FROM task_runs WHERE trace_id = 'A' OR worker = 'w1'", None),
        ("FROM task_runs JOIN workers USING (worker) WHERE trace_id = 'A'", None),
        ("FROM task_runs LEFT JOIN workers USING (trace_id) WHERE trace_id = 'A'", None),
        ("FROM tasks WHERE trace_id = 'A' AND key IN (SELECT key FROM task_runs)", None),
        ("WITH a AS (FROM tasks) FROM a WHERE trace_id = 'A'", None),
        ("FROM tasks WHERE trace_id = 'A' UNION FROM tasks", None),
        ("SELECT count(*) FROM tasks", None),
        ("no query", None),
    ],
)
def test_traces_that_all_rows_of_a_query_belong_to(query, traces):
    parameters = {"id": "C"} if "$id" in query else None
    assert named_traces(query, parameters) == traces
