"""The comparison of traces; `open_page` fails on any request, message, error or dialog."""

from pathlib import Path

import pytest

from browser.pages import downloaded
from roast_analyze import Trace
from roast_analyze.report import write_comparison

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).parents[2] / "sample_traces"
NAMES = ["coffea", "coffea_failures", "image_pipeline"]


@pytest.fixture(scope="module")
def page(open_page, tmp_path_factory):
    """The comparison of three of the sample traces."""
    target = tmp_path_factory.mktemp("comparison") / "page.html"
    return open_page(
        write_comparison([(SAMPLES / f"{name}.jsonl.zst",) for name in NAMES], target)
    )


@pytest.mark.exhaustive
def test_every_section_and_figure_is_there(page):
    assert page.locator("main > section").evaluate_all("all => all.map(s => s.id)") == [
        "verdict", "reasons", "over-time", "compute", "differences", "traces",
    ]  # fmt: skip
    figures = page.locator("figure.plot")
    assert figures.count() == 6
    for figure in figures.all():
        assert figure.get_attribute("data-state") == "drawn"
        assert figure.locator(".bars .point, .scatterlayer .js-line").count() > 0
    panels = page.locator("#over-time figure.plot").evaluate_all(
        """all => all.map(figure => [...figure.querySelectorAll('.annotation')].map(
        name => [name.textContent.trim(), Math.round(name.getBoundingClientRect().top)]))"""
    )
    assert [name for name, _ in panels[0]] == NAMES
    # The three figures are side by side: panels of one trace have one height.
    assert panels[0] == panels[1] == panels[2]


def test_the_numbers_are_those_of_the_traces(page):
    for name, row in zip(NAMES, downloaded(page, "#table-time"), strict=True):
        with Trace(SAMPLES / f"{name}.jsonl.zst") as trace:
            [(wall, core)] = trace.rows("SELECT wall_seconds, core_seconds FROM run")
        assert row["trace"] == name
        assert (float(row["wall_seconds"]), float(row["core_seconds"])) == (wall, core)
    ratios = page.locator("#table-time tbody tr td:nth-child(2) small").all_inner_texts()
    assert [ratio[:1] for ratio in ratios] == ["", "×", "×"]
    assert {row["series"].partition(":")[0] for row in downloaded(page, "#figure-cpu")} == {
        *NAMES
    }


def test_numbers_line_up_with_their_headings(page):
    """The first trace has no ratios, the second one has."""
    for name in ("time", "work"):
        offsets = page.locator(f"#table-{name}").evaluate(
            """table => {
                const right = node => {
                    const range = document.createRange()
                    range.selectNodeContents(node)
                    return range.getBoundingClientRect().right
                }
                const shown = [...table.querySelectorAll("th.n")].filter(th => th.offsetWidth)
                const rows = [...table.querySelectorAll("tbody tr")].slice(0, 2)
                return shown.map(th => rows.map(row =>
                    right(row.cells[th.cellIndex].firstChild)
                    - right(th.firstChild.lastElementChild ?? th.firstChild.firstChild)))
            }"""
        )
        assert len(offsets) >= 5
        assert all(abs(offset) < 4 for column in offsets for offset in column)


def test_tables_sort_by_a_trace_and_by_the_difference(page):
    differences = [
        float(row["difference_seconds"]) for row in downloaded(page, "#table-prefixes")
    ]
    assert differences == sorted(differences, key=abs, reverse=True)

    page.locator("#table-prefixes th").nth(2).locator("button").click()
    column = "coffea_failures compute_seconds"
    seconds = [row[column] for row in downloaded(page, "#table-prefixes")]
    known = [float(text) for text in seconds if text]
    assert known == sorted(known, reverse=True)
    assert seconds[len(known) :] == [""] * (len(seconds) - len(known))


@pytest.mark.exhaustive
def test_tables_scroll_and_the_page_does_not(page):
    name = page.locator("#table-time tbody tr td").first
    for width in (400, 800, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width

        page.locator("#table-time .scroll").evaluate("box => { box.scrollLeft = 0 }")
        before = name.bounding_box()["x"]
        page.locator("#table-time .scroll").evaluate("box => { box.scrollLeft = 300 }")
        assert name.bounding_box()["x"] == before
