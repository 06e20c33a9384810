"""Several traces in one database: each view is the union of the views of single traces.

Keys, worker addresses, spans and attempt numbers occur in more than one trace; only `trace_id`
distinguishes them. In a trace and its copy, all of them are the same.
"""

import json
from pathlib import Path

import pytest

from roast_analyze import Trace
from roast_analyze.open.views import view_names

SAMPLES = Path(__file__).parents[3] / "sample_traces"


@pytest.fixture(scope="module")
def database():
    """Open traces together; close them after the module."""
    opened = []

    def open_(*traces):
        opened.append(Trace(*traces))
        return opened[-1]

    yield open_
    for trace in opened:
        trace.close()


@pytest.fixture(scope="module")
def copy(tmp_path_factory, read_lines):
    """Copy a trace with another trace ID, as several segments, without its last record."""

    def copy(path: Path, trace_id: str, segments: int = 1) -> Path:
        folder = tmp_path_factory.mktemp("copy")
        header, *lines = read_lines(path)
        trailer = lines.pop()
        assert (header["kind"], trailer["kind"]) == ("header", "trailer")
        lines.pop()
        size = len(lines) // segments + 1
        for i in range(segments):
            begin = {**header, "trace_id": trace_id, "segment": i + 1}
            end = [{**trailer, "segment": i + 1}] if i + 1 == segments else []
            body = [begin, *lines[i * size : (i + 1) * size], *end]
            text = "".join(json.dumps(line) + "\n" for line in body)
            (folder / f"{i + 1}.jsonl").write_text(text)
        return folder

    return copy


@pytest.fixture(scope="module")
def databases(copy, database):
    """Return a run that lost workers, its copy in two segments, and each of them alone."""
    sample = SAMPLES / "shuffle_reduce.jsonl.zst"
    traces = [copy(sample, "a"), copy(sample, "b", segments=2)]
    return database(*traces), [database(trace) for trace in traces]


#: Columns that are only meaningful within a trace, or are differences of long sums.
COMPARED_AS = {
    "core_time": "round(seconds, 6) AS seconds",
    "transitions": "row_number() OVER (PARTITION BY trace_id ORDER BY seq) AS seq",
}


def rows_of(connection, view):
    """Return the rows of a view as text; lists and structs have no order."""
    replaced = f"REPLACE ({COMPARED_AS[view]})" if view in COMPARED_AS else ""
    rows = connection.rows(f"SELECT * {replaced} FROM {view}")
    return [repr(shown(row)) for row in rows]


def shown(value):
    """Round floats, whose sums depend on the order."""
    if isinstance(value, float):
        return float(f"{value:.11g}")
    return tuple(map(shown, value)) if isinstance(value, tuple) else value


#: Views whose rows are joined by key, worker, span or attempt.
JOINED = (
    "core_time", "critical_path", "fine_metrics", "loss", "profile_stacks", "run", "spans",
    "task_runs", "workers",
)  # fmt: skip


@pytest.mark.parametrize(
    "view",
    [
        view if view in JOINED else pytest.param(view, marks=pytest.mark.exhaustive)
        for view in view_names()
    ],
)
def test_views_are_the_union_of_single_traces(databases, view):
    together, alone = databases

    expected = [row for connection in alone for row in rows_of(connection, view)]
    assert sorted(rows_of(together, view)) == sorted(expected)

    traces = [trace for (trace,) in together.rows(f"SELECT trace_id FROM {view}")]
    assert traces == sorted(traces, key=traces.index)  # each in one piece
    if view != "transitions":
        assert traces == sorted(traces)
