"""The report: figures, tables, downloads and colors; `open_page` fails on any complaint."""

import pytest

from browser.pages import assert_harmless, downloaded
from browser.records import FAILED, hostile_records, task, worker

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(open_page, report, coffea_trace):
    return open_page(
        report(coffea_trace, "coffea_failures"),
        permissions=["clipboard-read", "clipboard-write"],
        reduced_motion="reduce",
        viewport={"width": 1280, "height": 900},
    )


def cells(page, table: str, column: str) -> list[str]:
    """Return the raw values of the visible rows: unrounded numbers, else text."""
    return page.locator(f"#table-{table}").evaluate(
        """(table, column) => {
          const index = [...table.querySelectorAll("th")].findIndex(
            (th) => th.dataset.column === column);
          return [...table.querySelectorAll("tbody tr:not([hidden])")].map(
            (row) => row.cells[index].dataset.v ?? row.cells[index].textContent);
        }""",
        column,
    )


def test_every_section_has_content_and_every_figure_is_drawn(page):
    sections = page.locator("main > section")
    links = page.locator("nav a").evaluate_all("all => all.map(a => a.hash.slice(1))")

    assert sections.evaluate_all("all => all.map(one => one.id)") == links
    assert min(map(len, sections.all_inner_texts())) > 60
    assert page.locator("figure.plot").count() == 9
    for figure in page.locator("figure.plot").all():
        assert figure.get_attribute("data-state") == "drawn"
        assert figure.locator("svg.main-svg").first.bounding_box()["height"] > 100
        assert figure.locator(".trace, .bars .point, .scatterlayer .js-line, .hm").count() > 0


def test_tiles_show_the_numbers_of_the_view_run(page, trace):
    labels, values = (page.locator(f".tiles {part}").all_inner_texts() for part in ("dt", "b"))
    shown = dict(zip(labels, values, strict=True))

    run = trace.frame("run").row(0, named=True)
    for label, column in (("Chunks", "chunks"), ("Events", "events"), ("Tasks", "tasks"),
                          ("Failures", "failures")):  # fmt: skip
        assert shown[label] == f"{run[column]:,}"


def test_tables_contain_and_download_the_rows_of_their_views(page, trace):
    wrong = []
    for view, key, column in (
        ("prefixes", "prefix", "compute_seconds"),
        ("datasets", "dataset", "bytes_read"),
        ("workers", "worker", "task_runs"),
        ("files", "filename", "events"),
    ):
        expected = {
            str(name): number for name, number in trace.frame(view).select(key, column).rows()
        }
        shown = zip(cells(page, view, key), cells(page, view, column), strict=True)
        saved = [(row[key], row[column]) for row in downloaded(page, f"#table-{view}")]
        wrong += [
            (view, rows)
            for rows in (list(shown), saved)
            if {name: float(number) for name, number in rows} != expected
        ]
    assert wrong == []


def test_a_heading_sorts_by_number_and_by_name(page):
    heading = page.locator("#table-prefixes th[data-column=compute_seconds]")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    numbers = [float(number) for number in cells(page, "prefixes", "compute_seconds")]
    assert numbers == sorted(numbers, reverse=True)

    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert [float(n) for n in cells(page, "prefixes", "compute_seconds")] == numbers[::-1]

    page.locator("#table-prefixes th[data-column=prefix] button").press("Space")
    names = cells(page, "prefixes", "prefix")
    assert names == sorted(names, key=str.lower)
    assert heading.get_attribute("aria-sort") is None
    assert page.locator("#status").inner_text() == "Sorted by prefix, ascending"


def test_the_filter_keeps_the_rows_that_contain_the_text(page):
    field, counter = page.locator("#table-files input"), page.locator("#table-files .rows")
    field.fill("QCD_1")
    assert [name for name in cells(page, "files", "filename") if "QCD_1" not in name] == []
    assert counter.inner_text() == "1 of 8"
    assert len(downloaded(page, "#table-files")) == 1
    field.press("Escape")
    assert counter.inner_text() == "8"

    # The description of a picture in a row is not text of the row.
    page.locator("#table-workers input").fill(" to ")
    assert page.locator("#table-workers tbody tr:visible").count() == 0
    page.locator("#table-workers input").fill("")


def test_figures_download_what_they_draw(page, trace):
    held = [
        float(row["managed_bytes_in_MiB"])
        for row in downloaded(page, "#figure-memory")
        if row["managed_bytes_in_MiB"]
    ]
    [(managed, transfers)] = trace.sql(
        "SELECT (SELECT max(managed_bytes) / 1048576 FROM cluster_samples), "
        "(SELECT sum(transfer_seconds) * 1000 FROM task_runs)"
    ).fetchall()
    assert max(held) == pytest.approx(managed, abs=1e-3)

    moved = downloaded(page, "#figure-movement")
    assert {row["source"] for row in moved} <= {"worker 0", "worker 1", "worker 2"}
    assert sum(float(row["seconds_in_ms"]) for row in moved) == pytest.approx(
        transfers, rel=0.01
    )

    spent = {row["part"]: float(row["seconds"]) for row in downloaded(page, "#spent")}
    [(kept,)] = trace.sql(
        "SELECT sum(compute_seconds) FROM task_runs WHERE outcome = 'memory'"
    ).fetchall()
    assert next(iter(spent.values())) == pytest.approx(kept)


def test_a_table_and_a_script_are_copied(page):
    page.locator("#table-datasets [data-do=copy]").click()
    page.locator("#table-datasets [data-do=copy]", has_text="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[0].startswith("dataset\tfiles\tchunks")
    assert len(copied) == 1 + page.locator("#table-datasets tbody tr").count()

    page.locator("#snippet-again [data-do=copy]").click()
    page.locator("#snippet-again [data-do=copy]", has_text="Copied").wait_for()
    script = page.evaluate("navigator.clipboard.readText()")
    assert script == page.locator("#snippet-again pre").text_content()


def test_the_sql_of_a_table_opens_runs_and_closes(page, trace):
    box = page.locator("#table-workers .tools details")
    box.locator("summary").press("Enter")
    query, command = box.locator("pre").all_inner_texts()

    assert command == "roast-analyze view coffea_failures.jsonl.zst workers"
    assert len(trace.sql(query).fetchall()) == page.locator("#table-workers tbody tr").count()
    page.keyboard.press("Escape")
    assert box.locator("pre").first.is_hidden()
    assert box.locator("summary").evaluate("summary => summary === document.activeElement")
    # It closes too when the focus leaves it.
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    assert box.locator("pre").first.is_hidden()


def test_a_traceback_opens(page):
    more = page.locator("#table-failures details.more").first
    more.locator("summary").press("Enter")

    assert "File" in more.locator("pre").inner_text()
    assert more.locator("xpath=ancestor::td").evaluate("td => td.matches('.unfolded')")


def test_each_worker_has_pictures_in_its_row(page):
    pictures = page.locator("#table-workers tbody tr:first-child svg")

    assert pictures.count() == 3
    for picture in pictures.all():
        assert picture.bounding_box()["width"] == pytest.approx(60, abs=2)
        assert picture.locator("path").bounding_box()["width"] > 10
    assert all(0 < float(share) < 1 for share in cells(page, "workers", "max_memory_share"))


def test_colors_follow_the_system_and_the_button(page):
    def colors() -> list[str]:
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
            document.querySelector('#figure-memory .canvas').layout.font.color]"""
        )

    light = colors()
    page.emulate_media(color_scheme="dark")
    dark = colors()
    page.locator("#theme").press("Enter")

    assert all(a != b for a, b in zip(light, dark, strict=True))
    assert colors() == light
    page.emulate_media(color_scheme="light")
    page.locator("#theme").click()
    assert (colors(), page.locator("#theme").inner_text()) == (dark, "Light")
    page.locator("#theme").click()


@pytest.mark.parametrize("width", [400, 800, 1440])
def test_the_page_does_not_scroll_sideways(page, width):
    page.set_viewport_size({"width": width, "height": 900})

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_prints_in_light_colors(page):
    assert len(page.pdf()) > 50_000
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


IS_PAINTED = """all => all.map(one =>
  one.firstElementChild.checkVisibility({ contentVisibilityAuto: true }))"""


def test_the_link_of_the_visible_section_is_marked(page):
    page.locator("#memory").evaluate("section => section.scrollIntoView()")
    page.locator("nav a[aria-current][href='#memory']").wait_for()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.locator("nav a[aria-current]").last.wait_for()
    assert page.locator("nav a").last.get_attribute("aria-current") == "true"
    # A page of few rows is painted everywhere.
    assert False not in page.locator(".scroll, .canvas").evaluate_all(IS_PAINTED)


def test_hostile_strings_stay_text(open_page, report):
    page = open_page(report(hostile_records(), "hostile"))
    lanes = page.locator("#figure-timeline .timeline-content canvas")
    for x in range(100, 900, 50):
        lanes.hover(position={"x": x, "y": 8})
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    flame = page.locator(".flame-content canvas")
    flame.hover(position={"x": 100, "y": 28})
    flame.click(position={"x": 100, "y": 28})

    assert_harmless(page)
    assert "<img src=x onerror=" in page.locator(".flame-crumbs").inner_text()
    assert page.locator("figure.plot:not([data-state=drawn])").count() == 0
    for block in ("#table-failures", "#figure-timeline"):
        assert any("<img src=x" in row["key"] for row in downloaded(page, block))


@pytest.mark.parametrize(
    ("name", "records", "plots"),
    [
        ("nothing", [], 0),
        ("no-workers", task("a-1", 1.0, 2.0), 5),
        ("only-failures", [worker(), *task("a-1", 1.0, 2.0, **FAILED)], 5),
        ("never-ended", [worker(), *task("a-1", 1.0, 2.0)[:2]], 4),
    ],
)
def test_poor_traces_make_a_complete_page(open_page, report, page, name, records, plots):
    poor = open_page(report(records, name))

    assert poor.locator("figure.plot[data-state=drawn]").count() == plots
    assert poor.locator("main > section").count() == page.locator("main > section").count()
    for section in poor.locator("main > section").all():
        assert len(section.locator(".says, .empty, .lead").first.inner_text()) > 20
    assert poor.locator("#verdict .whole.bad").count() == 1


def test_a_browser_that_cannot_unpack_the_figures_shows_why(open_page, report, coffea_trace):
    path = report(coffea_trace, "coffea_failures")
    page = open_page(path, script="delete window.DecompressionStream", state="undrawn")

    for figure in ("#figure-timeline", "#figure-flame", "#figure-memory"):
        assert "it lacks DecompressionStream" in page.locator(figure).inner_text()
