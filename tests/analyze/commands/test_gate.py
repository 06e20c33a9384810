"""The commands ``metrics`` and ``gate``."""

import json

import pytest

from roast_analyze.metrics import METRICS


@pytest.fixture
def write_metrics(tmp_path):
    """Write a file of metrics of a run; return its path."""

    def write_metrics(name: str, **metrics):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"metrics_version": 1, **metrics}))
        return path

    return write_metrics


@pytest.fixture
def trace(write_trace, task, run, worker):
    """Write a trace of 10 s with a task of 8 s."""
    return write_trace(worker("w1"), task("a"), *run("a", 1.0, 9.0), stop_t=10.0)


def test_metrics_of_a_trace(analyze, trace, write_trace):
    code, out, err = analyze("metrics", trace)

    metrics = json.loads(out)
    assert (code, err) == (0, "")
    assert list(metrics) == ["metrics_version", "label", "trace_id", "start_t", *METRICS]
    assert metrics == metrics | {
        "metrics_version": 1, "trace_id": "T", "wall_seconds": 10.0, "compute_seconds": 8.0,
        "core_seconds": 10.0, "wasted_seconds": 0.0, "tasks": 1, "failures": 0,
        "events_per_second": None,
    }  # fmt: skip
    other = write_trace(name="other.jsonl", trace_id="O")
    assert "contains 2 traces: name one" in analyze("metrics", other.parent / "*.jsonl")[2]


def test_a_table_against_the_spread_of_several_bases(analyze, write_metrics):
    walls = (10.0, 10.1, 10.2)
    bases = [write_metrics(f"{wall}", wall_seconds=wall, tasks=4) for wall in walls]
    new = write_metrics("new", wall_seconds=13.0, tasks=4)

    code, out, err = analyze("gate", *bases, "--", new, "--fail-if", "wall_seconds > +5%")

    assert (code, err) == (1, "")
    assert [" ".join(line.split()) for line in out.splitlines()[2:]] == [
        "wall_seconds 10.1 s ± 497 ms 13 s +28.7% failed",
        "tasks 4 ± 0 4 +0.0%",
        "failed: wall_seconds > +5%",
    ]
    assert analyze("gate", *bases[:2], "--", bases[2])[0] == 0


def test_a_run_that_fails_early_is_not_faster(analyze, write_metrics):
    base = write_metrics("base", wall_seconds=9.0, failures=0, events=100)
    for metrics, end in [
        ({"failures": 0, "events": 100}, "passed"),
        ({"failures": 1, "events": 100}, "failed: failures > +0"),
        ({"failures": 0, "events": 98}, "failed: events < -1%"),
        ({"failures": 0}, "'events' was not measured in all runs: use another metric"),
    ]:
        new = write_metrics("new", wall_seconds=5.0, **metrics)
        _, out, err = analyze("gate", base, "--", new)
        assert (out or err).endswith(f"{end}\n")


def test_a_trace_against_metrics_as_lines_of_json(analyze, write_metrics, trace):
    base = write_metrics("base", wall_seconds=8.0)
    rule = ["--fail-if", "wall_seconds > +10%"]

    code, out, err = analyze("gate", base, "--", trace, "--format", "jsonl", *rule)

    assert (code, err) == (1, "roast-analyze: failed: wall_seconds > +10%\n")
    assert json.loads(out) == {
        "metric": "wall_seconds", "base": 8.0, "expected_change": None, "new": 10.0,
        "change": 2.0, "relative_change": 0.25, "verdict": "failed",
    }  # fmt: skip


def test_runs_after_an_option_are_new(analyze, write_metrics):
    base, *news = (write_metrics(f"{n}", wall_seconds=n) for n in (10.0, 12.0, 13.0))

    code, out, _ = analyze(
        "gate", base, "--", news[0], "--fail-if", "wall_seconds > +20%", news[1]
    )

    assert code == 0  # the new runs differ too much from each other
    assert " 12.5 s +25.0% passed" in " ".join(out.split())


def test_invalid_calls(analyze, write_metrics, tmp_path):
    base = write_metrics("base", wall_seconds=8.0, events_per_second=None, tasks=float("nan"))
    (tmp_path / "broken.json").write_text("{")
    rule = ["--fail-if", "events_per_second < -5%"]
    for words, message in [
        ([base], "no new run: name them after --"),
        ([base, "--", tmp_path / "none.jsonl"], "does not exist"),
        ([base, "--", base, *rule], "'events_per_second' was not measured"),
        ([base, "--", base, "--fail-if", "tasks > 5"], "'tasks' was not measured"),
        ([base, "--", base, "--", base], "expected one --"),
        ([base, "--", write_metrics("later", metrics_version=2)], "no metrics of version 1"),
        ([base, "--", tmp_path / "broken.json"], "is not JSON"),
    ]:
        code, _, err = analyze("gate", *words)
        assert (code, message in err) == (2, True), err
