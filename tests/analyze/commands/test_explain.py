"""roast-analyze explain: findings and core time, one finding, and the findings of two runs."""

import json
import re

import pytest


@pytest.fixture
def failed(write_trace, worker, task, move):
    """Write a trace whose only task computes for 3 of 10 s, fails and is retried at once."""
    end = {"worker": "w1", "exception": "ValueError('no')", "phases": [("compute", 1.0, 4.0)]}
    return write_trace(
        worker("w1"),
        task("a-1"),
        move(1.0, "a-1", "waiting>processing", worker="w1"),
        move(4.0, "a-1", "processing>released", "task-erred-1.0", **end),
        move(4.0, "a-1", "waiting>processing", worker="w1"),
        move(8.0, "a-1", "processing>memory", "task-finished-1.0", worker="w1"),
        stop_t=10.0,
    )


@pytest.fixture
def healthy(write_trace, worker, task, run):
    records = [worker("w1"), task("a-1"), *run("a-1", 0.0, 10.0)]
    return write_trace(*records, name="ok.jsonl", trace_id="ok", stop_t=10)


def test_a_run(analyze, failed, healthy):
    code, text, errors = analyze("explain", failed)
    plain = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())

    assert (code, errors) == (0, "")
    assert plain.startswith("major: Failed attempts (ValueError)")
    assert "Cost: 3 core-seconds (30 % of the core time). Confidence: high." in plain
    assert "busy computing, attempt failed 3 s 30 %" in plain
    assert "`roast-analyze explain TRACE retries` prints the rule" in plain
    assert analyze("explain", healthy)[1].startswith("No rule found a change that could")


@pytest.mark.exhaustive
def test_a_long_sentence_is_whole(analyze, write_trace, worker, task, run):
    words = [f"{number:018}" for number in range(15)]
    erred = run("a-1", 0.0, 9.0, outcome="erred", exception=f"ValueError: {' '.join(words)}")
    path = write_trace(worker("w1"), task("a-1"), *erred, stop_t=10)

    assert set(words) <= set(analyze("explain", path)[1].split())


@pytest.mark.exhaustive
def test_one_finding(analyze, failed, healthy):
    text = analyze("explain", failed, "retries")[1]
    assert "min_attempts = 1" in text
    assert "FROM failures" in text
    assert "a-1" in text.splitlines()[-1]
    text = analyze("explain", healthy, "retries")[1]
    assert text.endswith("This run has no such finding.\n")

    code, _, errors = analyze("explain", healthy, "retried")
    assert code == 2
    assert errors == "roast-analyze: unknown finding 'retried'; did you mean 'retries'?\n"
    assert "no trace given for 'retries'" in analyze("explain", "retries")[2]


@pytest.mark.exhaustive
def test_evidence_is_short(analyze, write_trace, worker, chunk, run):
    """Chunks of one of three files take three times as long; two workers process all files."""
    records = [worker("w1"), worker("w2")]
    for number in range(30):
        start, seconds = 10.0 * (number // 2), 9.0 if number % 3 == 0 else 3.0
        name, address = f"/store/user/data/{number % 3}.root", f"w{1 + number % 2}"
        about = {"dataset": "DY", "filename": name, "treename": "Events"}
        entries = {"entry_start": 1000 * number, "entry_stop": 1000 * (number + 1)}
        records += [
            chunk(f"c-{number}", **about, **entries),
            *run(f"c-{number}", start, start + seconds, address),
        ]

    text = analyze("explain", write_trace(*records, stop_t=150.0), "slow-file")[1]
    assert re.split(r"  +", text.splitlines()[-3].strip())[:2] == ["…/0.root", "3"]


@pytest.mark.exhaustive
def test_one_finding_of_the_last_of_several_traces(analyze, failed, healthy):
    assert "Failed attempts" in analyze("explain", healthy, failed, "retries")[1]
    assert "no such finding" in analyze("explain", failed, healthy, "retries")[1]


@pytest.mark.exhaustive
def test_findings_of_two_runs(analyze, failed, healthy):
    for traces, word in [((healthy, failed), "new"), ((failed, healthy), "gone")]:
        last = analyze("explain", *traces)[1].splitlines()[-1]
        assert last.split()[:3] == [word, "retries", "ValueError"]
    [change] = json.loads(analyze("explain", "--json", healthy, failed)[1])
    assert (change["change"], change["after_core_seconds"]) == ("new", 3.0)


@pytest.mark.exhaustive
def test_json(analyze, failed):
    whole = json.loads(analyze("explain", "--json", failed)[1])
    assert [(row["id"], row["core_seconds"]) for row in whole["findings"]] == [("retries", 3.0)]
    assert whole["core_time"][1] == {
        "category": "busy", "use": "failed attempt", "seconds": 3.0, "share": 0.3,
    }  # fmt: skip
    [finding] = json.loads(analyze("explain", "--json", failed, "retries")[1])["findings"]
    assert [row["key"] for row in finding["evidence_rows"]] == ["a-1"]
    other = json.loads(analyze("explain", "--json", failed, "slow-worker")[1])
    assert other == {"findings": []}
