"""The report of a time range."""

import pytest

from roast_analyze import Trace
from roast_analyze.open.time_range import Counts, TimeRange
from roast_analyze.report import data, page, time_ranges

NBSP = "\N{NO-BREAK SPACE}"


def a_range(selected: Counts, total: Counts, cut_attempts: int = 0) -> TimeRange:
    ends = {"start_seconds": 90.25, "stop_seconds": 5400.0, "run_seconds": 9000.0}
    return TimeRange("T", **ends, selected=selected, total=total, cut_attempts=cut_attempts)


@pytest.mark.parametrize(
    ("time_range", "words"),
    [
        (
            a_range(Counts(10, 50, 3), Counts(2000, 12000, 5), cut_attempts=1),
            (
                "Left out: 1,990 of 2,000 attempts, 11,950 of 12,000 transitions, 2 of 5 "
                "samples. 1 attempt crosses the ends of the time range: only the time inside "
                "counts, and attempts that end later count as unfinished."
            ),
        ),
        # Without a cluster there are neither transitions nor samples.
        (
            a_range(Counts(1, 0, 0), Counts(2, 0, 0)),
            "Left out: 1 of 2 attempts.",
        ),
        (
            a_range(Counts(2, 4, 1), Counts(2, 4, 1)),
            "The time range contains the whole run.",
        ),
    ],
)
def test_omissions(time_range, words):
    assert time_ranges.describe_omissions(time_range).replace(NBSP, " ") == words


def test_description():
    time_range = a_range(Counts(1, 1, 1), Counts(1, 1, 1))

    assert time_ranges.describe(time_range).replace(NBSP, " ") == (
        "time range 90.25 s to 5,400 s of a run of 2 h 30 min"
    )


@pytest.fixture
def path(write_trace, worker, task, run):
    return write_trace(
        worker("w1"),
        *(task(key) for key in ("a-1", "b-1", "c-1")),
        *run("a-1", 10.0, 20.0),
        *run("b-1", 22.0, 30.0),
        *run("c-1", 30.0, 50.0),
    )


def test_the_page_of_a_time_range(path):
    with Trace(path, start="15s", stop=40) as trace:
        html = page.render(page.build(data.query(trace))).replace(NBSP, " ")

    assert "<strong>Time range 15 s to 40 s of a run of 1 min 40 s</strong>" in html
    assert "0 of 3 attempts, 2 of 6 transitions" in html
    assert "roast-analyze trace.jsonl --html --from 15 --to 40</code>" in html
    assert "roast-analyze view trace.jsonl prefixes --from 15 --to 40" in html
    assert "Times below are relative to its start." in html


def test_the_page_of_a_whole_run(path):
    with Trace(path) as trace:
        html = page.render(page.build(data.query(trace)))

    assert "Time range" not in html
    assert "--from" not in html


def test_time_of_unfinished_attempts_is_neither_kept_nor_discarded(path):
    with Trace(path, start=15, stop=40) as trace:
        verdict = page.build(data.query(trace)).verdict

    assert [(share.name, share.seconds) for share in verdict.spent] == [
        ("computing, result kept", 13.0),
        ("computing, unfinished in this time range", 10.0),
        ("idle, waiting and other", 2.0),
    ]
    assert verdict.spent_sentence.replace(NBSP, " ") == (
        "The workers provided 25 core-seconds; 52 % computed results that were kept. Attempts "
        "that ended after this time range computed for 10 s."
    )
