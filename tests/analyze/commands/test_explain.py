"""roast-analyze explain: findings and core time, one finding, and the findings of two runs."""

import json

import pytest


@pytest.fixture
def failed(write_trace, worker, task, move):
    """A trace whose only task computes for 3 of 10 s and fails."""
    phases = [{"action": "compute", "start": 1.0, "stop": 4.0}]
    end = {"startstops": phases, "exception": "ValueError('no')", "worker": "w1"}

    def failed():
        return write_trace(
            worker("w1"),
            task("a-1"),
            move(1.0, "a-1", "waiting>processing", worker="w1"),
            move(4.0, "a-1", "processing>erred", "task-erred-1.0", **end),
            stop_t=10.0,
        )

    return failed


@pytest.fixture
def healthy(write_trace, worker, task, run):
    return write_trace(
        worker("w1"),
        task("a-1"),
        *run("a-1", 0.0, 10.0),
        name="ok.jsonl",
        trace_id="ok",
        stop_t=10,
    )


def test_a_run(analyze, failed, healthy):
    code, text, errors = analyze("explain", failed())
    plain = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())

    assert (code, errors) == (0, "")
    assert plain.startswith("major: Attempts that failed")
    assert "Cost: 3 core-seconds (30 % of the core time). Confidence: high." in plain
    assert "busy computing, attempt failed 3 s 30 %" in plain
    assert "`roast-analyze explain TRACE retries` prints the rule" in plain
    assert analyze("explain", healthy)[1].startswith("Nothing was found that could save 1 %")


def test_one_finding(analyze, failed, healthy):
    _, text, _ = analyze("explain", failed(), "retries")
    assert "min_attempts = 1" in text
    assert "FROM task_runs" in text
    assert "a-1" in text.splitlines()[-1]

    _, text, _ = analyze("explain", healthy, "retries")
    assert text.endswith("This run has no such finding.\n")

    code, _, errors = analyze("explain", healthy, "retried")
    assert code == 2
    assert errors.startswith("roast-analyze: unknown finding 'retried'; ")


@pytest.mark.exhaustive
def test_findings_of_two_runs(analyze, failed, healthy):
    def change(*traces):
        return analyze("explain", *traces)[1].splitlines()[-1].split()[:3]

    assert change(healthy, failed()) == ["new", "retries", "ValueError"]
    assert change(failed(), healthy) == ["gone", "retries", "ValueError"]


@pytest.mark.exhaustive
def test_json(analyze, failed, healthy):
    def shown(*words):
        return json.loads(analyze("explain", "--json", *words)[1])

    whole = shown(failed())
    assert [(row["id"], row["core_seconds"]) for row in whole["findings"]] == [("retries", 3.0)]
    assert whole["core_time"][1] == {
        "category": "busy", "use": "failed attempt", "seconds": 3.0, "share": 0.3,
    }  # fmt: skip
    [finding] = shown(failed(), "retries")["findings"]
    assert [row["key"] for row in finding["evidence_rows"]] == ["a-1"]
    [change] = shown(healthy, failed())
    assert (change["change"], change["after_core_seconds"]) == ("new", 3.0)
