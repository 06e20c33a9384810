"""What the campaign of hostile traces takes for a failure, and some of its traces."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from hostile_campaign import Command, Outcome, count_problem, problem_of, run, write
from hostile_traces import hostile_trace

SUMMARY = Command("summary", ["t.jsonl"], is_terminal=True)


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
    ],
)
def test_outcomes_and_what_is_wrong_with_them(command, outcome, is_open, problem):
    found = problem_of(command, Outcome(*outcome, seconds=0.1), is_open=is_open)

    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_too_much_cpu_time_is_a_failure():
    assert problem_of(SUMMARY, Outcome(0, "", "", 1000.0), is_open=True) == "1000 s of CPU time"


@pytest.mark.parametrize("seed", range(8))
def test_check_and_counts_of_hostile_traces(seed, tmp_path):
    made = hostile_trace(seed)
    path = tmp_path / "trace.jsonl"
    write(path, made.lines)
    check = run(["check", str(path)])
    is_open, problem = count_problem(path, made, check)

    assert problem == ""
    assert problem_of(Command("check", []), check, is_open=is_open) == ""


def test_a_record_that_is_not_counted_is_a_failure(tmp_path):
    made = hostile_trace(0)
    path = tmp_path / "trace.jsonl"
    write(path, made.lines[:-1])

    assert count_problem(path, made, run(["check", str(path)]))[1]
