"""What is read of Dask's page and of ours, of a small run that both recorded."""

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("bokeh", reason="distributed.performance_report draws with it")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
performance_report = importlib.import_module("performance_report")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return performance_report.recorded_run(100, tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1hr 2m", 3720), ("20m 34s", 1234), ("12.34 s", 12.34), ("3.50 ms", 0.0035)],
)
def test_a_time_as_dask_writes_it(text, seconds):
    assert performance_report.seconds_of(text) == pytest.approx(seconds)


# The run comes first: as long as a Chromium is there, so is an event loop.
@pytest.mark.browser
@pytest.mark.cluster
def test_both_pages_hold_all_of_a_small_run(run, chromium):
    by_prefix = {"read": 40, "select": 40, "merge": 10, "fit": 5, "plot": 5}
    theirs = performance_report.totals_of_dask(run.dask_page)
    ours = performance_report.totals_of_ours(chromium, run.our_page)

    assert run.truth.tasks_by_prefix == ours.tasks_by_prefix == by_prefix
    assert run.truth.tasks == theirs.tasks == ours.tasks == 100
    assert run.truth.compute_seconds <= ours.compute_seconds
    # Dask writes two digits.
    assert theirs.compute_seconds == pytest.approx(ours.compute_seconds, rel=0.05)


@pytest.mark.browser
@pytest.mark.cluster
def test_only_ours_is_drawn_without_network(run, chromium):
    theirs = performance_report.shown(chromium, run.dask_page)
    helped = performance_report.shown(chromium, run.dask_page, scripts_served=True)
    ours = performance_report.shown(chromium, run.our_page)

    assert theirs.failed_requests == theirs.requests > 0
    assert (theirs.characters, theirs.charts) == (0, 0)
    assert helped.charts > 0
    assert ours.requests == 0
    assert ours.characters > 1_000
    assert ours.charts > 0
