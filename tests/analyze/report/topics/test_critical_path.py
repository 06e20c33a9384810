"""The section on the critical path."""

import pytest

from roast_analyze.report.topics import critical_path


@pytest.fixture
def section(opened):
    def section(*records):
        trace, context = opened(*records)
        return critical_path.section(critical_path.query(trace), context)

    return section


def test_causes_add_up_to_the_wall_time(section, worker, task, run):
    found = section(
        worker("w1"),
        task("a", t=1.0),
        *run("a", 1.0, 4.0),
        task("b", t=4.0),
        *run("b", 4.0, 8.0),
    )
    text = " ".join(found.sentences).replace("\N{NO-BREAK SPACE}", " ")
    [plot], [causes, steps] = found.plots, found.tables

    assert "Its largest causes: compute (70 %) and client (30 %)." in text
    assert sum(sum(trace.x) for trace in plot.figure.data) == pytest.approx(10.0)
    assert [[cell.text for cell in row][:3] for row in causes.rows] == [
        ["compute", "b", "4.00"], ["client", "", "3.00"], ["compute", "a", "3.00"],
    ]  # fmt: skip
    assert steps.rows[0][5].text == "b"
