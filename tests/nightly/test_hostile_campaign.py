"""What the campaign of hostile traces takes for a failure, and some of its traces."""

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import hostile_campaign
from hostile_campaign import (
    Command,
    Outcome,
    campaign,
    cost_problem,
    count_problems,
    examine_together,
    problem_of,
    run,
    view_problem,
    write,
)
from hostile_traces import cases, hostile_trace
from roast_analyze import Trace
from roast_schemas.describe import kinds

SUMMARY = Command("summary", ["t.jsonl"], is_terminal=True)
JSON = Command("json", [], is_json=True)


@pytest.mark.parametrize(
    ("command", "outcome", "is_open", "problem"),
    [
        (SUMMARY, (0, "fine", ""), True, ""),
        (SUMMARY, (2, "", "roast-analyze: t.jsonl: is empty"), False, ""),
        (SUMMARY, (2, "", "roast-analyze: unknown"), True, "exit code 2"),
        (SUMMARY, (0, "", ""), False, "exit code 0"),
        (SUMMARY, (2, "", "roast-analyze: a\nroast-analyze: b"), False, "2 lines of errors"),
        (SUMMARY, (0, "", "Warning: x"), True, "not an error of roast"),
        (SUMMARY, (0, "", "(0 rows)"), True, ""),
        (
            SUMMARY,
            (2, "", "roast-analyze: Conversion Error: INT128"),
            False,
            "raw error 'Conversion Error'",
        ),
        (SUMMARY, (None, "", 'File "x.py"\nKeyError: 1'), True, "traceback: KeyError: 1"),
        (SUMMARY, (0, "\x1b[31mred", ""), True, "control character"),
        (Command("check", []), (1, "lost", ""), True, ""),
        (Command("metrics", []), (1, "", ""), True, "exit code 1"),
        (JSON, (0, '{"seconds": 1.5}', ""), True, ""),
        (JSON, (0, '{"seconds": NaN}', ""), True, "NaN in JSON"),
        (JSON, (0, '{"a": 1}\n{"a": Infinity}\n', ""), True, "Infinity in JSON"),
        (JSON, (0, "{", ""), True, "not JSON"),
        (SUMMARY, (0, "", "thread panicked at x"), True, "not an error of roast"),
        (SUMMARY, (2, "", "roast-analyze: a thread panicked"), False, "raw error 'panicked'"),
    ],
)
def test_outcomes_and_what_is_wrong_with_them(command, outcome, is_open, problem):
    found = problem_of(command, Outcome(*outcome, seconds=0.1), is_open=is_open)

    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_too_much_cpu_time_or_memory_is_a_failure():
    assert problem_of(SUMMARY, Outcome(0, "", "", 1000.0), is_open=True) == "1000 s of CPU time"
    assert cost_problem(1.0, 2**32) == "4096 MiB of memory"


def test_each_field_of_each_kind_has_cases():
    named = {(case.kind, case.path[0]) for case in cases()}

    assert named == {
        (kind.name, field.name) for kind in kinds().values() for field in kind.fields
    }


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Traces, and what check did with those that can be opened."""
    folder = tmp_path_factory.mktemp("traces")
    made = {folder / f"{seed}.jsonl": hostile_trace(seed) for seed in range(8)}
    checks = {}
    for path, trace in made.items():
        write(path, trace.lines)
        checks[path] = run(["check", str(path)])
        is_open = checks[path].code in (0, 1)
        assert problem_of(Command("check", []), checks[path], is_open=is_open) == ""
    opened = {path: check for path, check in checks.items() if check.code != 2}
    assert len(opened) > 4
    return {path: made[path] for path in opened}, opened


def test_counts_of_hostile_traces(together):
    made, checks = together
    with Trace(*made, cache=False) as trace:
        assert count_problems(trace, made, checks) == {}


def test_a_record_that_is_not_counted_is_a_failure(together, tmp_path):
    made, checks = together
    [path, *_] = made
    cut = tmp_path / path.name
    write(cut, made[path].lines[:-1])
    with Trace(cut, cache=False) as trace:
        assert count_problems(trace, {cut: made[path]}, {cut: checks[path]}).keys() == {cut}


def test_a_check_that_finds_no_loss_is_a_failure_if_there_is_one(together):
    made, checks = together
    [path] = [path for path, check in checks.items() if check.code == 1][:1]
    with Trace(path, cache=False) as trace:
        [problem] = count_problems(
            trace, {path: made[path]}, {path: Outcome(0, "", "")}
        ).values()
    assert problem.startswith("check ends with 0, but loss has")


def test_a_failure_in_a_session_is_sought_until_the_trace_is_found(monkeypatch, tmp_path):
    def problem(session, view):
        is_broken = any(path.stem == "3" for path in session.paths)
        return "ConversionException: value 17" if is_broken and view == "tasks" else ""

    monkeypatch.setattr(hostile_campaign, "view_problem", problem)
    monkeypatch.setattr(hostile_campaign, "count_problems", lambda *_: {})
    failures = []

    def report(what, value):
        if what == "failure":
            failures.append(value)

    checks = {seed: run(["check", str(write_seed(tmp_path, seed))]) for seed in (1, 2, 3, 4, 5)}
    examine_together(checks, ["tasks", "workers"], tmp_path, Counter(), report)

    [(seed, view, found, lines)] = failures
    assert (seed, view, found) == (3, "FROM tasks", "ConversionException: value 17")
    assert lines == hostile_trace(3).lines


def test_traces_that_cannot_be_opened_together_are_a_failure(monkeypatch, tmp_path):
    def opened(*paths, cache):
        if len(paths) > 1:
            raise RuntimeError("not together")
        return Trace(*paths, cache=cache)

    monkeypatch.setattr(hostile_campaign, "Trace", opened)
    failures = []
    checks = {seed: run(["check", str(write_seed(tmp_path, seed))]) for seed in (1, 2)}
    examine_together(
        checks, ["tasks"], tmp_path, Counter(),
        lambda what, value: failures.append(value) if what == "failure" else None,
    )  # fmt: skip

    assert [(what, problem) for _, what, problem, _ in failures] == [
        ("FROM , in a session of 2", "RuntimeError: not together")
    ]


def write_seed(folder, seed):
    path = folder / f"{seed}.jsonl"
    write(path, hostile_trace(seed).lines)
    return path


@pytest.mark.parametrize("place", ["problem_of", "view_problem"])
def test_a_process_that_dies_is_a_failure_and_the_campaign_continues(
    place, monkeypatch, tmp_path
):
    def die(subject, other, **_):
        words = subject.words if isinstance(subject, Command) else map(str, subject.paths)
        if any(word.endswith("/3.jsonl") for word in words) and other != "workers":
            os.kill(os.getpid(), signal.SIGSEGV)
        return ""

    monkeypatch.setattr(hostile_campaign, place, die)
    monkeypatch.setattr(hostile_campaign, "view_names", lambda: ["tasks", "workers"])
    monkeypatch.setattr(hostile_campaign, "SHARES", (0.0, 0.0))
    monkeypatch.setenv("ROAST_CACHE_DIR", str(tmp_path / "cache"))
    totals = campaign([1, 2, 3, 4], 1, tmp_path)

    assert totals.failures == {"process ended with -N": 1}
    assert totals.traces == 4
    [kept] = tmp_path.glob("3-*.jsonl")
    assert kept.read_bytes().splitlines() == hostile_trace(3).lines
    assert totals.commands["check"] == 4


def test_a_view_with_a_number_that_json_lacks_is_a_failure(together, tmp_path):
    (tmp_path / "wrong.sql").write_text(
        "CREATE VIEW wrong AS SELECT 1.5 AS a, 'nan'::DOUBLE AS b"
    )
    [path, *_] = together[0]
    with Trace(path, cache=False, views=tmp_path) as trace:
        assert view_problem(trace, "wrong") == "nan in wrong.b"
        assert view_problem(trace, "tasks") == ""
        assert view_problem(trace, "none").startswith("QueryError")
