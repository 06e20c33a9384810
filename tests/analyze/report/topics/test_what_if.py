"""The prediction of the run with other numbers of workers."""

import pytest

from analyze.report.reading import plain
from roast_analyze import what_if as simulation
from roast_analyze.report.topics import what_if


def test_eight_tasks_on_two_workers(section, worker, task, run):
    """With four workers the tasks take 2 s instead of 4 s."""
    records = [worker("w1"), worker("w2")]
    for n in range(8):
        start = float(n // 2)
        records += [task(f"a-{n}"), *run(f"a-{n}", start, start + 1.0, worker=f"w{n % 2 + 1}")]
    found = section("what-if", *records)
    [plot] = found.plots
    wall = dict(zip(plot.figure.data[0].x, plot.figure.data[0].y, strict=True))

    assert wall[1] - wall[2] == pytest.approx(4.0, abs=0.2)
    assert wall[2] - wall[4] == pytest.approx(2.0, abs=0.2)
    assert plain(found.sentences[0]).startswith("With 2 workers the simulated run takes")


def test_predictions_without_some_tasks_have_a_note(section, worker, task, run):
    records = [worker("w1"), worker("w2")]
    for n in range(8):
        address, start = f"w{n % 2 + 1}", float(n // 2)
        only = {"annotations": {"workers": ["w2"]}} if address == "w2" else {}
        records += [task(f"a-{n}", **only), *run(f"a-{n}", start, start + 1.0, worker=address)]
    [plot] = section("what-if", *records).plots

    assert "With 1 worker: 4 tasks cannot run: no worker remains that may do so." in plot.note


def test_a_run_without_workers(section, task):
    assert section("what-if", task("a")).empty.startswith("No task ran on a worker")


@pytest.mark.exhaustive
def test_numbers_of_workers_that_cannot_be_simulated_are_left_out(
    section, monkeypatch, worker, task, run
):
    """Four times as many workers as the run had can be more than a simulation may have."""
    monkeypatch.setattr(what_if, "MAX_WORKERS", 3)
    monkeypatch.setattr(simulation, "MAX_WORKERS", 3)
    records = [worker("w1"), worker("w2")]
    for n in range(8):
        start = float(n // 2)
        records += [task(f"a-{n}"), *run(f"a-{n}", start, start + 1.0, worker=f"w{n % 2 + 1}")]
    [plot] = section("what-if", *records).plots

    assert list(plot.figure.data[0].x) == [1, 2, 3]
