"""The public views, and the class ``Trace``."""

import re
from pathlib import Path

import polars as pl
import pytest

import roast_analyze
from roast_analyze import Trace
from roast_analyze.errors import QueryError, TraceError, UnknownView
from roast_analyze.open.database import documented_views
from roast_analyze.open.views import view_comments, view_names

ROOT = Path(__file__).parents[2]
SQL = ROOT / "analyze" / "roast_analyze" / "sql"


# -- the views as a whole ----------------------------------------------------------------


#: tests/schemas compares names and order of views and columns with docs/reference/views.md.
def test_views(empty):
    views = documented_views()
    assert empty.views() == views
    assert [view.name for view in views] == list(view_names())
    commented = {
        view.name: {"": view.comment, **{c.name: c.comment for c in view.columns}}
        for view in views
    }
    assert view_comments() == commented
    double = re.compile(r".*(_seconds|_percent|_bps|_efficiency|_t)|t")
    for view in views:
        columns = [column.name for column in view.columns]
        assert empty.frame(view.name).columns == columns
        assert columns[-1] == "trace_id"
        for name, comment in [("", view.comment), *((c.name, c.comment) for c in view.columns)]:
            assert re.fullmatch(r"\S.{5,}\.", comment), (view.name, name)
        # Units in names determine types.
        for column in view.columns:
            if double.fullmatch(column.name):
                assert column.type == "DOUBLE", (view.name, column.name)
            if column.name.endswith("bytes"):
                assert column.type == "BIGINT", (view.name, column.name)


def test_the_declared_needs_of_each_file():
    files = [path for path in SQL.rglob("*.sql") if path.parent.name != "rules"]  # are queries
    wrong = {path.stem: names for path in files if (names := wrong_needs(path))}
    assert wrong == {}


def wrong_needs(path: Path) -> set[str]:
    """Return the names that a file reads but does not declare, or the other way around."""
    needs, _, sql = path.read_text().partition("\n")
    code = re.sub(r"--.*|'[^']*'|COMMENT ON.*", "", sql)
    others = {other.stem: other.read_text() for other in SQL.rglob("*.sql")}
    del others[path.stem]
    read = set(re.findall(r"(?:FROM|JOIN)\s+(\w+)(?![.\w(])", code)) & set(others)
    for other, text in others.items():
        macros = re.findall(r"CREATE MACRO (\w+)", text)
        read |= {other for macro in macros if re.search(rf"\b{macro}\(", code)}
    read -= set(re.findall(r"(\w+) AS \(", code))

    declared = set(needs.removeprefix("-- Needs: ").split(", "))
    return declared ^ (read or {"nothing"})


# -- queries ------------------------------------------------------------------------------


def test_frame_and_rows(open_trace, run):
    trace = open_trace(*run("a", 1.0, 3.0))

    frame = trace.frame("task_runs")
    assert frame.select("key", "outcome", "compute_seconds").rows() == [("a", "memory", 2.0)]
    assert frame.schema["compute_seconds"] == pl.Float64
    query = "SELECT key, $factor * compute_seconds FROM task_runs"
    assert trace.rows(query, {"factor": 2}) == [("a", 4.0)]
    with pytest.raises(QueryError, match=r'line 1, column 8: .* "kye" not found'):
        trace.rows("SELECT kye FROM task_runs")


def test_several_traces_have_no_common_report_or_timeline(write_traces, run, tmp_path):
    with Trace(*write_traces(run("a", 1.0, 3.0), run("b", 1.0, 4.0))) as traces:
        assert "<b>0.jsonl, 1.jsonl</b>" in traces._repr_html_()
        for describe in (lambda: traces.report(tmp_path / "r.html"), traces.timeline):
            with pytest.raises(TraceError, match="describe one run, and 2 traces are open"):
                describe()


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "t.jsonl"
    path.write_text('{"kind":"event","t":1.0,"topic":"x"}\n')
    with Trace(path) as trace:
        yield trace


def test_an_unknown_view_has_a_suggestion(empty):
    for name, message in [
        ("task_run", "did you mean 'task_runs'?"),
        ("chunk", "did you mean 'chunks'?"),
        ("zzz", "choose from environment, events"),
        ('tasks"; DROP TABLE x', "unknown view"),
        ("_tasks", "did you mean 'tasks'?"),
        ("", "unknown view ''"),
    ]:
        with pytest.raises(UnknownView, match=re.escape(message)):
            empty.frame(name)


# -- flame graphs ------------------------------------------------------------------------


def profile(worker, prefix, start_t, **times):
    """Return a profile in which `f` calls functions with these samples, one per slice."""
    names = ["f", *times]
    slices = [
        {"start_t": start_t + i, "stop_t": start_t + i + 1, "nodes": [0, 1, i + 2],
         "counts": [n, n, 0]}
        for i, n in enumerate(times.values())
    ]  # fmt: skip
    tree = {
        "frames": [{"name": name, "filename": "a.py", "line_number": 1} for name in names],
        "parents": [None, 0, *([1] * len(times))],
        "node_frames": [None, *range(len(names))],
        "line_numbers": [None] * (len(names) + 1),
        "slices": slices,
    }
    stop_t = start_t + len(times)
    record = {"kind": "profile", "t": stop_t, "worker": worker, "prefix": prefix, "tree": tree}
    return {**record, "start_t": start_t, "stop_t": stop_t, "interval_seconds": 0.01}


@pytest.fixture
def profiled(open_trace, worker, task):
    return open_trace(
        worker("w1"),
        worker("w2"),
        task("load-1"),
        task("sum-1"),
        profile("w1", "load", 10.0, a=100, b=50),
        profile("w2", "load", 10.0, a=20),
        profile("w1", "sum", 12.0, c=30),
        profile(None, None, 10.0, loop=1),
    )


def test_flame_graphs_of_parts(profiled):
    for part, expected in [
        ({}, {"a": 120, "b": 50, "c": 30}),
        ({"worker": "w1"}, {"a": 100, "b": 50, "c": 30}),
        ({"prefix": "load"}, {"a": 120, "b": 50}),
        ({"worker": "w1", "prefix": "sum"}, {"c": 30}),
        ({"start": 10.0, "stop": 11.0}, {"a": 120}),
        ({"start": 10.4, "stop": 11.4}, {"a": 120}),
        ({"start": 10.6, "stop": 12.0}, {"b": 50}),
        ({"start": "11s"}, {"b": 50, "c": 30}),
        ({"stop": 1.0}, {}),
        ({"worker": "scheduler"}, {"f": 1}),
    ]:
        flamegraph = profiled.flamegraph(**part)
        certain = flamegraph.stacks.filter(pl.col("samples") > 0)
        leaves = (stack[-1].split()[0] for stack in certain["stack"])
        assert dict(zip(leaves, certain["samples"], strict=True)) == expected, part
        assert len(flamegraph.figure.data) == bool(expected)
    for part, message in [
        ({"worker": "w3"}, "unknown worker 'w3'.*"),
        ({"prefix": "laod"}, ".*did you mean 'load'\\?"),
        ({"start": 5.0, "stop": 4.0}, "empty time range from '5.0' to '4.0', .*"),
    ]:
        with pytest.raises(TraceError, match=f"^{message}$"):
            profiled.flamegraph(**part)


def test_flame_graphs_are_compared(profiled):
    compared = profiled.flamegraph("w1", baseline=profiled.flamegraph("w2"))

    found = compared.difference().select("function", "share", "baseline_share").rows()
    assert [(name.split()[0], *shares) for name, *shares in found] == [
        ("b", pytest.approx(50 / 180), 0.0),
        ("c", pytest.approx(30 / 180), 0.0),
        ("f", 1.0, 1.0),
        ("a", pytest.approx(100 / 180), 1.0),
    ]
    assert compared.figure.data[0].marker.showscale
    with pytest.raises(TraceError, match="there is no baseline"):
        profiled.flamegraph().difference()


# -- the rest ----------------------------------------------------------------------------


def test_names_and_errors():
    for name, value in vars(roast_analyze.errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, TraceError | UserWarning), name
    with pytest.raises(AttributeError, match="no attribute 'Traec'"):
        roast_analyze.Traec  # noqa: B018
