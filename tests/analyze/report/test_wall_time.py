"""Wall time of a run in which no task was assigned, in words."""

import re

import pytest

from analyze.report.reading import plain
from roast_analyze.open.views import view_comments
from roast_analyze.report import wall_time


def test_each_state_of_the_view_has_words():
    described = re.findall(r"[.·] ([a-z ]+):", view_comments()["wall_time"]["state"])
    assert described == ["working", *wall_time.WORDS]


@pytest.mark.parametrize(
    ("states", "text"),
    [
        # As of dask-awkward, which makes graphs for most of a short run.
        (
            {"working": 3.9, "client makes graphs": 9.4, "starting": 0.3, "no client": 0.01},
            (
                "Tasks were assigned to workers for 3.9 s of 13.6 s. The rest includes: 9.4 s "
                "in which the client was in functions of Dask, such as those that make graphs; "
                "300 ms before the first task, in which it is not known what the client did."
            ),
        ),
        ({"working": 95.0, "client computes": 5.0}, ""),
        # Short runs always begin and end.
        ({"working": 0.5, "starting": 0.3}, ""),
        ({"starting": 100.0}, ""),
        ({}, ""),
    ],
)
def test_time_without_an_assigned_task(states, text):
    assert plain(wall_time.describe(states)) == text


@pytest.mark.exhaustive
def test_the_summary_and_the_report_have_it(
    open_trace, analyze, write_trace, worker, task, run
):
    own = {"kind": "client_activity", "t": 60.0, "client": "c", "activity": "own", "name": "f"}
    records = (
        worker("w1"), task("a-1", client="c"), *run("a-1", 0.0, 20.0),
        own | {"start_t": 20.0, "stop_t": 60.0},
        task("b-1", t=60.0, client="c"), *run("b-1", 60.0, 100.0),
    )  # fmt: skip
    assert wall_time.query(open_trace(*records)) == {
        "working": pytest.approx(60.0), "client computes": pytest.approx(40.0)
    }  # fmt: skip
    _, out, _ = analyze(write_trace(*records, name="again.jsonl"))
    assert "40 s of the client's own work" in " ".join(out.split())
