"""The section on the critical path."""

import pytest

from analyze.report.reading import plain, texts


def test_causes_add_up_to_the_wall_time(section, worker, task, run):
    found = section(
        "critical-path",
        worker("w1"),
        *(task("a", t=1.0), *run("a", 1.0, 4.0)),
        *(task("b", t=4.0), *run("b", 4.0, 8.0)),
    )
    [plot], [causes, steps] = found.plots, found.tables

    assert "Its largest causes: compute (70 %) and client (30 %)." in plain(
        " ".join(found.sentences)
    )
    assert sum(sum(trace.x) for trace in plot.figure.data) == pytest.approx(10.0)
    assert [row[:3] for row in texts(causes)] == [
        ["compute", "b", "4.00"], ["client", "", "3.00"], ["compute", "a", "3.00"],
    ]  # fmt: skip
    assert texts(steps)[0][5] == "b"
