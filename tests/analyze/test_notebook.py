"""A trace in a notebook: its HTML representation, and the tour."""

import os
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import nbformat
import pytest
from IPython import display
from nbconvert import HTMLExporter

from analyze.report.reading import plain
from roast_analyze import Trace, notebook

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


def test_a_cell_shows_the_run_and_is_small_and_harmless(write_trace, worker, task, run):
    records = worker("w1"), task("a"), *run("a", 10.0, 30.0)
    path = write_trace(*records, name="<script>alert(1)<\u202e.jsonl")

    with Trace(path, start=20, stop=40) as trace:
        html = trace._repr_html_()

    page = Page(html)
    assert page.open == []
    for part in (
        "<script>alert(1)<⟨U+202E⟩.jsonl",
        "Only time range 20 s to 40 s of a run of 1 min 40 s. Left out: 0 of 1 ",
        "1 attempt crosses the ends of the time range: only the time inside counts, and ",
        ": 1 worker, 1 task, 1 attempt, 0 failures", "task_runs", "trace.sql(",
        "No loss was detected.",
    ):  # fmt: skip
        assert part in plain(page.text), part
    assert len(html) < 10_000
    assert page.tags <= {"p", "b", "ul", "li", "code", "details", "summary"}
    # For a closed trace, only the name and the error are shown.
    assert "the trace is closed" in Page(trace._repr_html_()).text


@pytest.mark.exhaustive
def test_a_cell_shows_losses(open_trace):
    losses = [
        {"kind": "loss", "t": 1.0, "reason": f"<b>{i}</b>", "records": i} for i in range(9)
    ]
    page = Page(open_trace(*losses)._repr_html_())

    assert "Incomplete" in page.text
    assert "<b>0</b>" in page.text
    assert "and 4 more in the view loss" in page.text


@pytest.mark.exhaustive
def test_findings_predictions_and_comparisons_are_displayed_as_html(
    write_trace, worker, task, run
):
    def opened(name, seconds):
        records = [worker("<b>w1"), worker("w2"), *(task(f"a-{i}") for i in range(4))]
        for i in range(4):
            records += run(f"a-{i}", seconds * i, seconds * (i + 1), "<b>w1", thread=1)
        stop_t = 4.0 * seconds
        return Trace(write_trace(*records, name=name, trace_id=name, stop_t=stop_t))

    with opened("slow.jsonl", 20.0) as slow, opened("fast.jsonl", 10.0) as fast:
        shown = {
            "findings": slow.findings(),
            "predictions": slow.what_if(workers=[1, 2]),
            "comparison": slow.why(fast),
        }
        texts = {name: plain(Page(frame._repr_html_()).text) for name, frame in shown.items()}

    # A finding about the whole run has no entity.
    assert "More workers than the work can use: " in texts["findings"]
    assert "wall time" in texts["predictions"]
    assert "1 min 20 s" in texts["predictions"]
    assert "slow.jsonl took 1 min 20 s, +40 s compared with fast.jsonl" in texts["comparison"]
    # They are frames, whose text and parts are those of polars.
    for name, frame in shown.items():
        assert repr(frame).startswith("shape: "), name
        assert frame.head(1)._repr_html_().startswith("<div>"), name
    # Columns that no prediction has are left out.
    assert "chunk" not in texts["predictions"]
    # For a closed trace, the rows are shown.
    assert shown["findings"]._repr_html_().startswith("<div>")


def test_the_timeline_has_a_bar_for_each_computation_and_a_lane_for_each_thread(
    open_trace, worker, task, run
):
    trace = open_trace(
        worker("w1", nthreads=2),
        worker("w2"),
        *(task(key) for key in ("<b>load-1", "<b>load-2", "sum-1")),
        *run("<b>load-1", 10.0, 30.0, "w1", thread=1),
        *run("<b>load-2", 10.0, 40.0, "w1", thread=2),
        *run("sum-1", 40.0, 45.0, "w2", outcome="erred"),
    )

    figure = trace.timeline()

    load, failed = figure.data
    assert (load.name, failed.name) == ("&lt;b&gt;load", "failed attempt")
    bars = zip(load.base, load.x, load.y, strict=True)
    assert sorted(bars) == [(10.0, 20.0, 0), (10.0, 30.0, 1)]
    assert (failed.x, failed.y) == ((45.0,), (2,))
    assert (figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext) == (
        (0, 2),
        ("w1", "w2"),
    )


@pytest.mark.exhaustive
def test_a_long_run_is_drawn_with_few_bars(open_trace, worker, task, run):
    keys = [f"a-{i}" for i in range(3000)]
    trace = open_trace(
        worker("w1"),
        *(task(key) for key in keys),
        *(r for i, key in enumerate(keys) for r in run(key, i / 40, (i + 0.9) / 40)),
    )

    figure = trace.timeline()

    [bars] = figure.data
    seconds = [seconds for _, seconds in bars.customdata]
    assert sum(seconds) == pytest.approx(3000 * 0.9 / 40)
    # A computation is as high as a lane; the height of a sum is its share of the bucket.
    heights = [0.9 * s / length for s, length in zip(seconds, bars.x, strict=True)]
    assert list(bars.width) == pytest.approx(heights, rel=1e-3)
    assert "The 2,000 longest of 3,000 computations" in figure.layout.title.text


def test_a_flame_graph_is_a_figure_of_plotly_or_text(open_trace):
    bundle = open_trace().flamegraph()._repr_mimebundle_()

    assert bundle["application/vnd.plotly.v1+json"]["layout"]["annotations"]
    assert bundle["text/plain"] == "Flamegraph of 0 stacks, 0.0 s"


@pytest.mark.exhaustive
def test_the_tour_runs():
    """The tour runs in its own kernel, from its folder."""
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


@pytest.mark.exhaustive
def test_pages_of_nbconvert_have_the_timeline_of_a_recorded_cell(
    write_trace, worker, task, run, monkeypatch
):
    """The interactive timeline needs a renderer; a picture is beside it."""
    shown = []
    monkeypatch.setattr(display, "publish_display_data", shown.append)
    hostile = "<script>alert(1)</script>&\"'"
    records = [worker(hostile, name=hostile), task("a", prefix=hostile)]
    records += run("a", 10.0, 30.0, hostile, "erred", exception="E()")

    with Trace(write_trace(*records)) as trace:
        notebook.publish(trace)

    page, timeline = shown
    assert [*timeline] == ["application/vnd.plotly.v1+json", "text/plain", "image/svg+xml"]
    picture = ET.fromstring(timeline["image/svg+xml"])
    texts = [it.text or "" for it in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.startswith("<script") and "&" in text]
    assert "failed attempt" in texts
    assert "time since the start (s)" in texts
    assert {it.tag.rpartition("}")[2] for it in picture.iter()} == {
        "svg",
        "rect",
        "text",
        "path",
    }
    outputs = [nbformat.v4.new_output("display_data", data) for data in (page, timeline)]
    cell = nbformat.v4.new_code_cell("%%record", outputs=outputs, execution_count=1)
    html, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    assert "image/svg+xml" in html or "<svg" in html
    assert "<script>alert(1)" not in html


@pytest.mark.exhaustive
def test_a_cell_shows_the_report_in_a_frame(open_trace, worker, task, run):
    report = open_trace(worker("w1"), task("a"), *run("a", 10.0, 30.0)).report(title="My run")

    frame = Page(report._repr_html_())

    assert (frame.tags, frame.open) == ({"iframe"}, [])
    assert "<title>My run" in report.page
    assert "same-origin" not in report._repr_html_().partition("srcdoc")[0]
    assert len(repr(report)) < 60
