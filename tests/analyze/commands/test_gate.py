"""The commands ``metrics`` and ``gate``."""

import json
from pathlib import Path

import pytest

from roast_analyze.metrics import METRICS


@pytest.fixture
def write_run(write_trace, task, run, worker):
    """Write a trace of a task that computes for some seconds; return its path."""

    def write_run(name: str, seconds: float):
        records = [worker("w1"), task("a"), *run("a", 1.0, 1.0 + seconds)]
        return write_trace(*records, name=name, stop_t=2.0 + seconds)

    return write_run


def test_metrics_of_a_trace(analyze, write_run):
    code, out, err = analyze("metrics", write_run("run.jsonl", 8.0))

    metrics = json.loads(out)
    assert (code, err) == (0, "")
    assert list(metrics) == ["metrics_version", "label", "trace_id", "start_t", *METRICS]
    wanted = {
        "metrics_version": 1, "trace_id": "T", "wall_seconds": 10.0, "compute_seconds": 8.0,
        "core_seconds": 10.0, "wasted_seconds": 0.0, "tasks": 1, "failures": 0,
        "events_per_second": None,
    }  # fmt: skip
    assert {name: metrics[name] for name in wanted} == wanted


def test_each_metric_is_documented():
    readme = (Path(__file__).parents[3] / "analyze" / "README.md").read_text()

    assert [
        name for name, (text, _) in METRICS.items() if f"| `{name}` | {text} |" not in readme
    ] == []


def test_the_gate_exits_with_1_if_a_rule_fails(analyze, write_run, tmp_path):
    bases = [write_run(f"base-{n}.jsonl", 8.0 + 0.1 * n) for n in range(3)]
    slow = write_run("slow.jsonl", 11.0)
    stored = tmp_path / "base.json"
    stored.write_text(analyze("metrics", bases[0])[1])

    code, out, _ = analyze("gate", *bases, "--", slow, "--fail-if", "wall_seconds > +5%")
    assert code == 1
    assert [line.split() for line in out.splitlines() if "wall_seconds" in line] == [
        ["wall_seconds", "10.1", "s", "±", "497", "ms", "13", "s", "+28.7%", "failed"],
        ["failed:", "wall_seconds", ">", "+5%"],
    ]
    code, out, err = analyze("gate", stored, "--", slow, "--format", "jsonl")
    assert (code, err) == (1, "roast-analyze: failed: wall_seconds > +10%\n")
    assert json.loads(out.splitlines()[0]) == {
        "metric": "wall_seconds", "base": 10.0, "expected_change": None, "new": 13.0,
        "change": 3.0, "relative_change": 0.3, "verdict": "failed",
    }  # fmt: skip


def test_calls_that_are_wrong(analyze, write_run, tmp_path):
    trace, other = write_run("run.jsonl", 1.0), tmp_path / "other.json"

    def error(*words):
        code, _, err = analyze("gate", *words)
        assert code == 2
        return err

    assert "no new run: name them after --" in error(trace)
    assert "does not exist" in error(trace, "--", tmp_path / "none.jsonl")
    assert "'events_per_second' was not measured" in error(
        trace, "--", trace, "--fail-if", "events_per_second < -5%"
    )
    other.write_text("{}")
    assert "has no metrics of version 1" in error(trace, "--", other)
    other.write_text("{")
    assert "is no JSON" in error(trace, "--", other)
