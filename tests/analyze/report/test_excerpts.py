"""The report of a stretch of a run says so, and its numbers fit together."""

import pytest

from roast_analyze import Trace
from roast_analyze.open.time_range import Counts, TimeRange
from roast_analyze.report import data, excerpts, page, sentences

NBSP = "\N{NO-BREAK SPACE}"


def an_excerpt(told: Counts, whole: Counts, cut_attempts: int = 0) -> TimeRange:
    ends = {"start_seconds": 90.25, "stop_seconds": 5400.0, "run_seconds": 9000.0}
    return TimeRange("T", **ends, selected=told, total=whole, cut_attempts=cut_attempts)


@pytest.mark.parametrize(
    ("excerpt", "words"),
    [
        (
            an_excerpt(Counts(10, 50, 3), Counts(2000, 12000, 5), cut_attempts=1),
            (
                "What lies outside is left out: 1,990 of 2,000 attempts, 11,950 of 12,000 "
                "transitions, 2 of 5 samples. 1 attempt goes beyond its ends: the time outside "
                "is cut off, and what ends later counts as unfinished."
            ),
        ),
        # Without a cluster there are neither transitions nor samples.
        (
            an_excerpt(Counts(1, 0, 0), Counts(2, 0, 0)),
            "What lies outside is left out: 1 of 2 attempts.",
        ),
        (
            an_excerpt(Counts(2, 4, 1), Counts(2, 4, 1)),
            "Nothing lies outside: it is the whole run.",
        ),
    ],
)
def test_what_is_left_out(excerpt, words):
    assert excerpts.left_out(excerpt).replace(NBSP, " ") == words


def test_which_stretch_it_is():
    excerpt = an_excerpt(Counts(1, 1, 1), Counts(1, 1, 1))

    assert excerpts.stretch(excerpt).replace(NBSP, " ") == (
        "the stretch from 90.25 s to 5,400 s of a run of 2 h 30 min"
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


def test_the_page_says_it_and_how_to_ask_for_the_same(path):
    with Trace(path, start="15s", stop=40) as trace:
        html = page.render(page.build(data.gather(trace))).replace(NBSP, " ")

    assert "<strong>The stretch from 15 s to 40 s of a run of 1 min 40 s</strong>" in html
    assert "0 of 3 attempts, 2 of 6 transitions" in html
    assert "roast-analyze trace.jsonl --html --from 15 --to 40</code>" in html
    assert "roast-analyze view trace.jsonl prefixes --from 15 --to 40" in html
    assert "Times below count from its beginning." in html


def test_the_page_of_a_whole_run_says_nothing_of_a_stretch(path):
    with Trace(path) as trace:
        html = page.render(page.build(data.gather(trace)))

    assert "The stretch from" not in html
    assert "--from" not in html


def test_time_of_what_goes_on_after_it_is_neither_kept_nor_wasted(path):
    with Trace(path, start=15, stop=40) as trace:
        gathered = data.gather(trace)

    spent = gathered.time_spent
    assert (spent.kept_seconds, spent.wasted_seconds, spent.unfinished_seconds) == (13, 0, 10)
    shares = [(share.name, share.seconds) for share in page.build(gathered).verdict.spent]
    assert shares == [
        ("computing, result kept", 13.0),
        ("computing, not ended in the stretch", 10.0),
        ("idle, waiting and other", 2.0),
    ]
    assert sentences.time_spent(gathered).replace(NBSP, " ") == (
        "The cluster offered 25 core-seconds; 52 % of them computed results that were kept. "
        "10 s of computing went into attempts that ended after this stretch."
    )
