"""Several traces side by side in a real Chromium; `open_page` fails on any complaint."""

import csv
import io
import json
from pathlib import Path

import pytest

from roast_analyze import Trace
from roast_analyze.report import write_comparison

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).parents[2] / "sample_traces"
NAMES = ["coffea", "coffea_failures", "image_pipeline"]

#: A file can be called so.
HOSTILE = "<img src=x onerror=window.__pwned=1>\"'`{{7*7}}%{y}\u202e"


@pytest.fixture(scope="module")
def comparison(tmp_path_factory) -> Path:
    """The page of three of the sample traces."""
    target = tmp_path_factory.mktemp("comparison") / "page.html"
    return write_comparison([(SAMPLES / f"{name}.jsonl.zst",) for name in NAMES], target)


@pytest.fixture
def page(open_page, comparison):
    return open_page(comparison, accept_downloads=True)


def texts(page, table: str, column: int) -> list[str]:
    return page.locator(f"#table-{table} tbody tr td:nth-child({column})").all_inner_texts()


def downloaded(page, block: str) -> list[dict]:
    with page.expect_download() as download:
        page.locator(f"{block} [data-do=csv]").click()
    return list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))


def test_every_section_and_figure_is_there(page):
    assert page.locator("main > section").evaluate_all("all => all.map(s => s.id)") == [
        "verdict", "over-time", "compute", "differences", "traces",
    ]  # fmt: skip
    figures = page.locator("figure.plot")
    assert figures.count() == 6
    for figure in figures.all():
        assert figure.get_attribute("data-state") == "drawn"
        assert figure.locator(".bars .point, .scatterlayer .js-line").count() > 0
    assert page.locator("nav a[aria-current]").inner_text() == "Side by side"


def test_the_small_figures_of_a_trace_stand_in_one_row(page):
    """Each of the three figures has a panel a trace, at the same height."""
    tops = page.locator("#over-time figure.plot").evaluate_all(
        """all => all.map(figure => [...figure.querySelectorAll('.annotation')].map(
        name => [name.textContent.trim(), Math.round(name.getBoundingClientRect().top)]))"""
    )

    assert [name for name, _ in tops[0]] == NAMES
    assert tops[0] == tops[1] == tops[2]


def test_the_numbers_are_those_of_the_traces(page):
    rows = downloaded(page, "#table-time")

    for name, row in zip(NAMES, rows, strict=True):
        with Trace(SAMPLES / f"{name}.jsonl.zst") as trace:
            [(wall, core)] = trace.sql("SELECT wall_seconds, core_seconds FROM run").fetchall()
        assert row["trace"] == name
        assert (float(row["wall_seconds"]), float(row["core_seconds"])) == (wall, core)


def test_a_ratio_stands_beside_each_number_but_those_of_the_first(page):
    walls = page.locator("#table-time tbody tr td:nth-child(2) small").all_inner_texts()

    assert walls[0] == ""
    assert all(text.startswith("×") for text in walls[1:])


def test_a_click_on_a_heading_sorts_by_what_a_trace_took_and_by_the_difference(page):
    by_difference = [
        float(row["difference_seconds"]) for row in downloaded(page, "#table-prefixes")
    ]
    assert by_difference == sorted(by_difference, key=abs, reverse=True)

    page.locator("#table-prefixes th").nth(2).locator("button").click()
    seconds = [
        row["coffea_failures compute_seconds"] for row in downloaded(page, "#table-prefixes")
    ]
    known = [float(text) for text in seconds if text]
    assert known == sorted(known, reverse=True)
    assert seconds[len(known) :] == [""] * (len(seconds) - len(known))


def test_a_figure_downloads_what_it_draws(page):
    rows = downloaded(page, "#figure-prefix-seconds")

    drawn = {
        row["series"] for row in rows if row["trace"] == "coffea" and float(row["seconds"])
    }
    assert "DijetProcessor" in drawn
    cores = downloaded(page, "#figure-cpu")
    assert {row["series"].partition(":")[0] for row in cores} == set(NAMES)


@pytest.mark.parametrize("width", [400, 800, 1440])
def test_the_page_does_not_scroll_sideways(open_page, comparison, width):
    page = open_page(comparison, viewport={"width": width, "height": 900})

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_name_of_a_row_stays_in_sight(open_page, comparison):
    page = open_page(comparison, viewport={"width": 400, "height": 900})
    name = page.locator("#table-time tbody tr td").first
    before = name.bounding_box()["x"]

    page.locator("#table-time .scroll").evaluate("box => { box.scrollLeft = 300 }")

    assert name.bounding_box()["x"] == before


def colours(page) -> list[str]:
    """Colours of the paper, of a row's name, and of the text of a figure."""
    return page.evaluate(
        """() => [getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('#table-time td')).backgroundColor,
        document.querySelector('#figure-cpu .canvas').layout.font.color]"""
    )


def test_the_theme_follows_the_system_and_the_button(open_page, comparison):
    page = open_page(comparison, color_scheme="dark")
    dark = colours(page)

    page.locator("#theme").click()

    assert all(a != b for a, b in zip(colours(page), dark, strict=True))


def test_hostile_names_of_traces_stay_text(open_page, tmp_path, hostile_records):
    header = {"kind": "header", "t": 0.0, "schema_version": "2.0", "segment": 1}
    paths = [tmp_path / f"{n}{HOSTILE}.jsonl" for n in "ab"]
    for path in paths:
        records = [{**header, "trace_id": path.name}, *hostile_records]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    target = tmp_path / "page.html"
    write_comparison([(path,) for path in paths], target)

    page = open_page(target, accept_downloads=True)
    for point in page.locator(".bars .point").all():
        point.hover(force=True)
    rows = downloaded(page, "#table-time")

    assert page.evaluate("window.__pwned") is None
    assert page.locator("main img, main [onerror], main a[href^=javascript]").count() == 0
    assert page.locator("figure.plot[data-state=drawn]").count() == 6
    assert "<img src=x onerror=window.__pwned=1>" in page.locator("h1").inner_text()
    assert all("<img src=x" in row["trace"] for row in rows)


def test_traces_with_nothing_in_them_make_a_page(open_page, tmp_path):
    header = {"kind": "header", "t": 0.0, "schema_version": "2.0", "segment": 1}
    paths = [tmp_path / f"{n}.jsonl" for n in "ab"]
    for path in paths:
        path.write_text(json.dumps({**header, "trace_id": path.name}) + "\n")

    page = open_page(write_comparison([(path,) for path in paths], tmp_path / "page.html"))

    assert "No task and no chunk was seen" in page.locator("#compute").inner_text()
    names = page.locator("#figure-cpu .annotation").all_text_contents()
    assert names == ["a · nothing recorded", "b · nothing recorded"]
