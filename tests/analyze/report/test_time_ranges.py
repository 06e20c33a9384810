"""The report of a time range."""

import pytest

from analyze.report.reading import plain
from roast_analyze import Trace
from roast_analyze.open.time_range import Counts, TimeRange
from roast_analyze.report import data, page, time_ranges


@pytest.mark.parametrize(
    ("selected", "total", "cut_attempts", "words"),
    [
        (
            Counts(10, 50, 3), Counts(2000, 12000, 5), 1,
            ("Left out: 1,990 of 2,000 attempts, 11,950 of 12,000 transitions, 2 of 5 samples. "
             "1 attempt crosses the ends of the time range: only the time inside counts, and "
             "attempts that end later count as unfinished."),
        ),
        # Without a cluster there are neither transitions nor samples.
        (Counts(1, 0, 0), Counts(2, 0, 0), 0, "Left out: 1 of 2 attempts."),
        (Counts(2, 4, 1), Counts(2, 4, 1), 0, "The time range contains the whole run."),
    ],
)  # fmt: skip
def test_the_time_range_and_what_is_left_out(selected, total, cut_attempts, words):
    time_range = TimeRange(
        "T", start_seconds=90.25, stop_seconds=5400.0, run_seconds=9000.0,
        selected=selected, total=total, cut_attempts=cut_attempts,
    )  # fmt: skip

    assert plain(time_ranges.describe_omissions(time_range)) == words
    assert plain(time_ranges.describe(time_range)) == (
        "time range 90.25 s to 5,400 s of a run of 2 h 30 min"
    )


@pytest.mark.exhaustive
def test_the_page_of_a_time_range(write_trace, worker, task, run):
    path = write_trace(
        worker("w1"),
        *(task(key) for key in ("a-1", "b-1", "c-1")),
        *run("a-1", 10.0, 20.0),
        *run("b-1", 22.0, 30.0),
        *run("c-1", 30.0, 50.0),
    )

    with Trace(path, start="15s", stop=40) as trace:
        built = page.build(data.query(trace))
    with Trace(path, start=60) as trace:
        built_later = page.build(data.query(trace))

    html = plain(page.render(built))
    assert "<strong>Time range 15 s to 40 s of a run of 1 min 40 s</strong>" in html
    assert "0 of 3 attempts, 2 of 6 transitions" in html
    assert "roast-analyze trace.jsonl --html --from 15 --to 40</code>" in html
    assert "roast-analyze view trace.jsonl prefixes --from 15 --to 40" in html
    assert "Times below are relative to its start." in html
    assert [(share.name, share.seconds) for share in built.verdict.spent] == [
        ("computing, result kept", 13.0),
        ("computing, not finished", 10.0),
        ("between graphs", 2.0),
    ]
    # Transitions are outside of the range.
    [scheduler] = [section for section in built_later.sections if section.name == "scheduler"]
    assert (scheduler.empty, scheduler.hint) == (
        "The time range contains no records for this section.",
        "",
    )
