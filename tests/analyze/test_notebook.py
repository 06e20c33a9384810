"""A trace in a notebook: its HTML representation, and the tour."""

import os
from html.parser import HTMLParser
from pathlib import Path

import pytest

from roast_analyze import Trace

ANALYZE = Path(__file__).parents[2] / "analyze"


class Page(HTMLParser):
    """The text of a piece of HTML, and whether its tags are balanced."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.open = "", set(), []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, _attributes):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_cell_shows_the_run(write_trace, worker, task, run):
    path = write_trace(worker("w1"), task("a"), *run("a", 10.0, 30.0))

    with Trace(path, start=20, stop=40) as trace:
        page = Page(trace._repr_html_())

    text = page.text.replace("\N{NO-BREAK SPACE}", " ")
    assert page.open == []
    for part in (
        "trace.jsonl", "Only time range 20 s to 40 s of a run of 1 min 40 s.",
        ": 1 worker, 1 task, 1 attempt, 0 failures", "task_runs", "trace.sql(",
    ):  # fmt: skip
        assert part in text, part


def test_a_cell_shows_losses(open_trace):
    losses = [
        {"kind": "loss", "t": 1.0, "reason": f"<b>{i}</b>", "records": i} for i in range(9)
    ]
    page = Page(open_trace(*losses)._repr_html_())

    assert "Incomplete" in page.text
    assert "<b>0</b>" in page.text
    assert "and 4 more in the view loss" in page.text


def test_a_cell_is_small_and_harmless(write_trace):
    with Trace(write_trace(name="<script>alert(1)<\u202e.jsonl")) as trace:
        html = trace._repr_html_()

    assert len(html) < 10_000
    assert Page(html).tags <= {"p", "b", "ul", "li", "code"}
    assert "⟨U+202E⟩" in html
    assert "Nothing is lost." in html
    # Of a closed trace only the name and the error are shown.
    assert "the trace is closed" in Page(trace._repr_html_()).text


def test_the_tour_runs():
    """Executed in a kernel of its own, from the folder where it lies."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    tour = nbformat.read(ANALYZE / "tour.ipynb", as_version=4)
    nbformat.validate(tour)
    code = [cell for cell in tour.cells if cell.cell_type == "code"]
    assert [cell for cell in code if cell.outputs or cell.execution_count] == []

    nbclient.NotebookClient(
        tour, timeout=120, resources={"metadata": {"path": str(ANALYZE)}}
    ).execute(env=os.environ.copy())

    shown = [output for cell in code for output in cell.outputs]
    assert [output for output in shown if output.output_type == "error"] == []
    assert any("text/html" in output.get("data", {}) for output in shown)
