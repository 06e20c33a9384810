"""View span_totals."""

import re

import pytest

METRIC = {
    "kind": "fine_metric", "t": 1.0, "worker": "w1", "context": "execute", "prefix": "add",
    "unit": "seconds",
}  # fmt: skip


def span(span_id, parent_id=None, t=0.0, path=None):
    names = {"span_id": span_id, "parent_id": parent_id, "span_name": path or [span_id]}
    return {"kind": "span", "t": t, **names}


def metric(span_id, activity, delta):
    return {**METRIC, "span_id": span_id, "activity": activity, "delta": delta}


@pytest.fixture
def nested(ask, task, run):
    """`outer` contains `inner` and `other`, and `inner` contains `leaf`."""
    return ask(
        span("outer"),
        span("inner", "outer", 0.25, ["outer", "inner"]),
        span("leaf", "inner", 0.5, ["outer", "inner", "leaf"]),
        span("other", "outer", 0.75, ["outer", "other"]),
        task("a", span_id="outer"),
        task("b", span_id="inner"),
        task("c", span_id="leaf"),
        task("d", span_id="leaf", value={"submitted_span": {"name": ["default"]}}),
        *run("a", 1.0, 2.0),
        *run("b", 2.0, 4.0),
        *run("c", 3.0, 7.0),
        *run("d", 8.0, 9.0, outcome="lost"),
        metric("outer", "thread-cpu", 0.5),
        metric("inner", "thread-noncpu", 1.0),
        metric("leaf", "thread-cpu", 2.0),
        metric("leaf", "deserialize", 4.0),
    )


def test_columns_of_a_span_alone_and_with_nested_spans(nested):
    assert nested(
        "SELECT span_id, path, parent_id, tasks, other_span_tasks, task_runs, "
        "failed_attempts, compute_seconds, output_bytes, metric_seconds, cpu_seconds, "
        "noncpu_seconds, first_t, last_t, wall_seconds FROM span_totals"
    ) == [
        ("outer", ["outer"], None, 1, 0, 1, 0, 1.0, 8, 0.5, 0.5, None, 1.0, 2.0, 1.0),
        (
            "inner", ["outer", "inner"], "outer",
            1, 0, 1, 0, 2.0, 8, 1.0, None, 1.0, 2.0, 4.0, 2.0,
        ),
        (
            "leaf", ["outer", "inner", "leaf"], "inner",
            2, 1, 2, 1, 4.0, 8, 6.0, 2.0, None, 3.0, 9.0, 6.0,
        ),
        ("other", ["outer", "other"], "outer", 0, 0, 0, 0, *[None] * 8),
    ]  # fmt: skip
    assert nested(
        "SELECT span_id, descendants, total_tasks, total_other_span_tasks, "
        "total_task_runs, total_failed_attempts, total_compute_seconds, total_output_bytes, "
        "total_metric_seconds, total_cpu_seconds, total_noncpu_seconds, total_first_t, "
        "total_last_t, total_wall_seconds FROM span_totals"
    ) == [
        ("outer", 3, 4, 1, 4, 1, 7.0, 24, 7.5, 2.5, 1.0, 1.0, 9.0, 8.0),
        ("inner", 1, 3, 1, 3, 1, 6.0, 16, 7.0, 2.0, 1.0, 2.0, 9.0, 7.0),
        ("leaf", 0, 2, 1, 2, 1, 4.0, 8, 6.0, 2.0, None, 3.0, 9.0, 6.0),
        ("other", 0, 0, 0, 0, 0, *[None] * 8),
    ]


def test_unknown_and_cyclic_spans(rows, task, run):
    """The last row is work outside spans."""
    assert rows(
        "SELECT span_id, name, tasks, total_tasks, descendants, task_runs, compute_seconds, "
        "metric_seconds, total_compute_seconds, total_metric_seconds FROM span_totals",
        span("child", "lost parent"),
        span("x", "y", 1.0),
        span("y", "x", 2.0),
        task("a", span_id="child"),
        task("b", span_id="unknown"),
        task("c", span_id="x"),
        task("d", span_id="y"),
        task("e"),
        *run("e", 1.0, 2.0),
        {**metric(None, "network", 3.0), "context": "gather-dep", "prefix": None},
    ) == [
        ("child", "child", 1, 1, 0, 0, None, None, None, None),
        ("x", "x", 1, 2, 1, 0, None, None, None, None),
        ("y", "y", 1, 2, 1, 0, None, None, None, None),
        ("lost parent", None, 0, 1, 1, 0, None, None, None, None),
        ("unknown", None, 1, 1, 0, 0, None, None, None, None),
        (None, None, 1, 1, 0, 1, 1.0, 3.0, 1.0, 3.0),
    ]


def test_a_cycle_of_three_spans_and_the_spans_within_it(rows, task):
    """Spans of the cycle contain each other and the three below."""
    assert rows(
        "SELECT span_id, total_tasks, descendants FROM span_totals ORDER BY span_id",
        *(span("a", "b"), span("b", "c"), span("c", "a"), span("self", "self")),
        *(span("below a", "a"), span("below that", "below a"), span("below c", "c")),
        *(task(f"t-{name}", span_id=name) for name in ("a", "below that", "below c", "self")),
    ) == [
        ("a", 3, 5),
        ("b", 3, 5),
        ("below a", 1, 1),
        ("below c", 1, 0),
        ("below that", 1, 0),
        ("c", 3, 5),
        ("self", 1, 0),
    ]


@pytest.mark.parametrize("size", [1_000, pytest.param(20_000, marks=pytest.mark.exhaustive)])
def test_totals_of_deeply_nested_spans(ask, task, size):
    """No step has the rows of all pairs of a span and one within it, half of the square."""
    last, half = size - 1, size // 2
    spans = [span(f"s{n}", f"s{n - 1}" if n else None, float(n)) for n in range(size)]
    found = ask(*spans, task("a", span_id=f"s{last}"), task("b", span_id=f"s{half}"))

    assert found(
        "SELECT span_id, total_tasks, descendants FROM span_totals "
        f"WHERE span_id IN ('s0', 's{half}', 's{half + 1}', 's{last}') "
        "ORDER BY descendants DESC"
    ) == [
        ("s0", 2, last),
        (f"s{half}", 2, last - half),
        (f"s{half + 1}", 1, last - half - 1),
        (f"s{last}", 1, 0),
    ]
    assert found("SELECT count(*) FROM span_idle") == [(size,)]
    for view in ("span_totals", "span_idle"):
        [(_, plan)] = found(f"EXPLAIN (ANALYZE, FORMAT json) FROM {view}")
        rows = [int(number) for number in re.findall(r'"intermediate_rows": *(\d+)', plan)]
        assert size <= max(rows) <= 50 * size
