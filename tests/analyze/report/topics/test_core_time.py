"""The section on the use of the core time."""

from collections import Counter

import pytest

from analyze.report.reading import plain, texts
from roast_analyze.report import unexplained
from roast_analyze.report.topics import core_time, loss, verdict


def test_figures_add_up_to_the_core_time(section, worker, task, run):
    """One of two threads computes for 4 of 10 s."""
    found = section(
        "core-time", worker("w1"), worker("w2"), task("a", t=0.0), *run("a", 0.0, 4.0)
    )
    over_time, by_worker = (plot.figure for plot in found.plots)

    assert plain(found.sentences[0]) == (
        "20 % of the thread time was spent on results that were kept. The largest other uses: "
        "after the last result (60 %) and fewer tasks left than threads (20 %)."
    )
    assert sum(y * bar.width for bar in over_time.data for y in bar.y) == pytest.approx(20.0)
    # The first bar is in the middle of its bucket.
    assert over_time.data[0].x[0] == pytest.approx(over_time.data[0].width / 2)
    assert {bar.name: list(bar.x) for bar in by_worker.data} == {
        "computing, result kept": [0.0, 4.0],
        "fewer tasks left than threads": [4.0, 0.0],
        "after the last result": [6.0, 6.0],
    }
    assert texts(found.tables[0])[0][:3] == ["a", "4.00", "20"]


def test_the_time_before_the_first_worker(opened, worker, task, run):
    """The worker joins after 4 of 10 s."""
    trace, context = opened(worker("w1", t=4.0), task("a", t=4.0), *run("a", 4.0, 7.0))
    found = core_time.query(trace)
    text = (
        "4 s of 10 s passed without any worker and are not in the core time, before the first "
        "one joined."
    )

    assert plain(core_time.section(found, context).sentences[1]) == text
    shown = verdict.build(context, loss.query(trace), (), unexplained.query(trace, ()), found)
    assert text in plain(shown.spent_sentence)


def test_the_last_bar_covers_the_time_inside_the_recording(section, worker, task, run):
    records = worker("w1", nthreads=4), task("a"), *run("a", 1.0, 10.0)
    [over_time, _] = section("core-time", *records, stop_t=10.001).plots
    threads = Counter()
    for bar in over_time.figure.data:
        threads.update(dict(zip(bar.x, bar.y, strict=True)))

    assert threads[max(threads)] == pytest.approx(4.0)


def test_workers_with_the_most_idle_time_come_first(section, worker, gone, task, run):
    """The short-lived worker computed least, but was never idle."""
    found = section(
        "core-time",
        worker("short"),
        worker("long"),
        *(task("a"), *run("a", 0.0, 1.0, worker="short")),
        gone("short", 1.0, "retire-workers-1.0"),
        *(task("b"), *run("b", 0.0, 2.0, worker="long")),
    )

    assert list(found.plots[1].figure.layout.yaxis.ticktext) == ["long", "short"]


@pytest.mark.exhaustive
def test_unknown_core_time(section, worker, task, run):
    for records, stop_t, text in [
        ([task("a")], 10.0, "No worker joined while this was recorded:"),
        ([worker("w1")], 0.0, "The recording has no duration,"),
        ([worker("w1", nthreads=None), *run("a", 1.0, 2.0)], 10.0, "The numbers of threads"),
    ]:
        assert section("core-time", *records, stop_t=stop_t).empty.startswith(text)
