"""The report of a recorded run: figures, tables, downloads, colors, and use by keyboard.

`open_page` fails on any request, console message, error or dialog.
"""

import re
from itertools import groupby
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from browser.pages import IS_PAINTED, assert_harmless, downloaded
from browser.records import hostile_records

pytestmark = pytest.mark.browser

SVG = "http://www.w3.org/2000/svg"


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


def test_sections_tiles_and_figures_have_content(page, trace):
    sections = page.locator("main > section")
    links = page.locator("nav a").evaluate_all("all => all.map(a => a.hash.slice(1))")
    assert sections.evaluate_all("all => all.map(one => one.id)") == links
    assert min(map(len, sections.all_inner_texts())) > 60

    labels, values = (page.locator(f".tiles {part}").all_inner_texts() for part in ("dt", "b"))
    shown = dict(zip(labels, values, strict=True))
    run = trace.frame("run").row(0, named=True)
    for name in ("Chunks", "Events", "Tasks", "Failures"):
        assert shown[name] == f"{run[name.lower()]:,}"

    assert page.locator("figure.plot[data-state=drawn]").count() == 16
    for figure in page.locator("figure.plot").all():
        assert figure.locator("svg.main-svg").first.bounding_box()["height"] > 100
        assert figure.locator(".trace, .bars .point, .scatterlayer .js-line, .hm").count() > 0
    pictures = page.locator("#table-workers tbody tr:first-child svg")
    assert [round(one.bounding_box()["width"]) for one in pictures.all()] == [60, 60, 60]
    assert all(path.bounding_box()["width"] > 10 for path in pictures.locator("path").all())


def test_details_are_folded_until_they_are_opened_or_linked_to(open_page, report, coffea_trace):
    path = report(coffea_trace, "coffea_failures")
    page = open_page(path, folded=True, viewport={"width": 1280, "height": 900})
    is_open = "all => all.filter(one => one.open).map(one => one.parentElement.id)"
    folds = page.locator("section.folded > details")

    assert page.locator("main > section:not(.folded)").evaluate_all(
        "all => all.map(one => one.id)"
    ) == ["verdict", "timeline", "chunks", "inside-tasks", "workers", "failures"]
    assert folds.evaluate_all(is_open) == []
    height = "document.documentElement.scrollHeight"
    assert page.evaluate(height) < 10_000
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 10

    # A summary, a link of the navigation, and an address of a figure within the page.
    folds.first.locator("summary").first.press("Enter")
    page.locator("#figure-core-time[data-state=drawn]").wait_for()
    page.locator("nav a[href='#tasks']").click()
    page.locator("#figure-durations[data-state=drawn]").wait_for()
    page.evaluate("location.hash = '#table-environment'")
    page.wait_for_function(
        """() => document.querySelector("#table-environment")
          .getBoundingClientRect().top < innerHeight"""
    )
    assert folds.evaluate_all(is_open) == ["core-time", "tasks", "environment"]
    assert page.evaluate("scrollY") > 0
    page.goto(f"{path.as_uri()}?again#figure-flame")
    page.locator("#figure-flame[data-state=drawn]").wait_for()
    assert folds.evaluate_all(is_open) == ["inside"]


@pytest.mark.parametrize(
    ("view", "key", "column"),
    [("prefixes", "prefix", "compute_seconds"), ("workers", "worker", "task_runs")],
)
def test_tables_contain_and_download_the_rows_of_their_views(page, trace, view, key, column):
    """Nightly tests compare every cell of every table."""
    expected = {str(name): n for name, n in trace.frame(view).select(key, column).rows()}
    shown = zip(cells(page, view, key), cells(page, view, column), strict=True)
    saved = [(row[key], row[column]) for row in downloaded(page, f"#table-{view}")]

    for rows in (shown, saved):
        assert {name: float(number) for name, number in rows} == expected


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


def test_more_columns_are_shown_on_demand_and_always_downloaded(page):
    def headings() -> list[str]:
        return page.locator("#table-files th:visible").evaluate_all(
            "all => all.filter(th => th.offsetWidth > 30).map(th => th.dataset.column)"
        )

    button = page.locator("#table-files .columns")
    most = headings()
    assert button.inner_text() == "13 more columns"
    assert "reading" in button.get_attribute("title").split(", ")
    every = list(downloaded(page, "#table-files")[0])
    assert (len(most), len(every)) == (9, 22)

    # Sorting keeps the widths of columns; hidden columns have none until they are shown.
    page.locator("#table-files th[data-column=events] button").click()
    button.press("Enter")
    assert (headings(), button.get_attribute("aria-pressed")) == (every, "true")
    page.locator("#table-files th[data-column=read_seconds] button").click()
    numbers = [float(number) for number in cells(page, "files", "read_seconds")]
    assert numbers == sorted(numbers, reverse=True)

    button.press("Space")
    assert (headings(), button.get_attribute("aria-pressed")) == (most, "false")


def test_the_filter_keeps_the_rows_that_contain_the_text(page):
    field, counter = page.locator("#table-files input"), page.locator("#table-files .rows")
    field.fill("QCD_1")
    assert ["QCD_1" in name for name in cells(page, "files", "filename")] == [True]
    assert counter.inner_text() == "1 of 8"
    assert len(downloaded(page, "#table-files")) == 1
    field.press("Escape")
    assert counter.inner_text() == "8"

    # A text does not continue in the next cell.
    names = page.locator("#table-files tbody tr:first-child td").all_text_contents()
    field.fill(names[0] + names[1])
    assert counter.inner_text() == "0 of 8"
    field.fill("")

    # The description of a picture in a row is not text of the row.
    page.locator("#table-workers input").fill(" to ")
    assert page.locator("#table-workers tbody tr:visible").count() == 0
    page.locator("#table-workers input").fill("")


def test_a_long_name_shows_both_ends_and_is_whole_in_its_tooltip(page):
    cell = page.locator("#table-functions td.cut:has(div)").first
    head_is_cut, tail_is_visible = cell.evaluate(
        """(cell) => {
          const [head, tail] = cell.querySelector("div").childNodes, range = new Range();
          range.selectNode(tail);
          const [end, edge] = [range, cell].map((one) => one.getBoundingClientRect().right);
          return [head.scrollWidth > head.clientWidth, end <= edge];
        }"""
    )
    assert head_is_cut
    assert tail_is_visible
    cell.hover()
    assert cell.get_attribute("title") == cell.text_content()
    assert cell.text_content() in cells(page, "functions", "function")


@pytest.mark.exhaustive
def test_a_long_fact_wraps(open_page, report):
    fact = {"kind": "environment", "t": 1.0, "section": "client", "name": "folder"}
    page = open_page(report([{**fact, "value": "/folder" * 30}], "fact"))

    # All cells of the row have its height; the text of others is one line.
    value, name = (
        page.locator(f"#table-environment td{part}").evaluate(
            """(cell) => {
              const range = new Range();
              range.selectNodeContents(cell);
              return range.getBoundingClientRect().height;
            }"""
        )
        for part in (".cut", ":first-child")
    )
    assert value > 1.5 * name


def test_figures_download_what_they_draw(page, trace):
    [(managed, transfers, kept)] = trace.rows(
        "SELECT (SELECT max(managed_bytes) / 1048576 FROM cluster_samples), "
        "sum(transfer_seconds) * 1000, "
        "(SELECT sum(seconds) FROM core_time WHERE use = 'kept result') FROM task_runs"
    )
    stored = [row["managed_bytes_in_MiB"] for row in downloaded(page, "#figure-memory")]
    moved = downloaded(page, "#figure-movement")
    spent = downloaded(page, "#spent")

    assert max(map(float, filter(None, stored))) == pytest.approx(managed, abs=1e-3)
    assert {row["source"] for row in moved} <= {"worker 0", "worker 1", "worker 2"}
    seconds = sum(float(row["seconds_in_ms"]) for row in moved)
    assert seconds == pytest.approx(transfers, rel=0.01)
    assert float(spent[0]["seconds"]) == pytest.approx(kept)


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ("#figure-timeline", "worker 0"),
        ("#figure-flame", "all: "),
        ("#figure-memory", "time since the start"),
        ("#spent", "computing, result kept"),
    ],
)
def test_figures_are_saved_as_pictures(page, figure, text, tmp_path):
    saved = {}
    for kind in ("svg", "png"):
        with page.expect_download() as download:
            page.locator(f"{figure} [data-do={kind}]").click()
        saved[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[kind])

    # A strict parser reads it.
    root = ET.parse(saved["svg"]).getroot()
    assert any(text in "".join(label.itertext()) for label in root.iter(f"{{{SVG}}}text"))
    size = [float(root.get(side)) for side in ("width", "height")]
    with Image.open(saved["png"]) as image:
        assert list(image.size) == pytest.approx([2 * side for side in size], abs=2)
        assert len(image.convert("RGB").getcolors(1 << 24)) > 5


def test_every_table_and_its_public_sql_are_copied(page, trace):
    def copied(button) -> str:
        button.click()
        page.wait_for_function("(button) => button.textContent === 'Copied'", arg=button)
        return page.evaluate("navigator.clipboard.readText()")

    tables = page.locator(".table")
    assert tables.count() == page.locator(".table [data-do=copy]").count() > 20
    queries = page.locator(".tools details").evaluate_all(
        """all => all.map((box) => [
        box.closest("[data-name]").id, box.querySelector("pre").textContent])"""
    )
    private = re.compile(r"(?<![\w.'])_[a-z]\w*|raw\.")
    assert [one for one in queries if private.search(one[1])] == []

    box = page.locator("#table-critical-path-steps .tools details")
    box.locator("summary").press("Enter")
    query = copied(box.locator("[data-do=copy-next]").first.element_handle())
    assert query == box.locator("pre").first.text_content()
    assert len(trace.rows(query)) == page.locator("#table-critical-path-steps tbody tr").count()
    command = copied(box.locator("[data-do=copy-next]").last.element_handle())
    assert command.startswith("roast-analyze view ")
    page.keyboard.press("Escape")


def test_tasks_of_chunks_have_file_and_entries(page):
    names = cells(page, "critical-path-steps", "task")
    assert sum(re.fullmatch(r"\w+\.root [\d,]+–[\d,]+", name) is not None for name in names) > 5
    assert [name for name in names if name.startswith("SlowProcessor-")] == []


def test_a_table_and_a_script_are_copied(page):
    def copied(block: str) -> str:
        page.locator(f"{block} [data-do=copy]").click()
        page.locator(f"{block} [data-do=copy]", has_text="Copied").wait_for()
        return page.evaluate("navigator.clipboard.readText()")

    table = copied("#table-datasets").splitlines()
    assert table[0].startswith("dataset\tfiles\tchunks")
    assert len(table) == 1 + page.locator("#table-datasets tbody tr").count()
    assert copied("#snippet-again") == page.locator("#snippet-again pre").text_content()


def test_spreadsheets_read_texts_of_a_table_as_text(page):
    name = page.locator("#table-datasets tbody tr:first-child td:first-child")
    before = name.text_content()
    for text, saved, copied in (
        ("=1+1", "'=1+1", "'=1+1"),
        ("-1+1", "'-1+1", "'-1+1"),
        ("-1.5", "-1.5", "-1.5"),
        ('"a" b', '"a" b', '"""a"" b"'),
    ):
        name.evaluate("(cell, text) => { cell.textContent = text; }", text)
        assert downloaded(page, "#table-datasets")[0]["dataset"] == saved
        page.locator("#table-datasets [data-do=copy]").click()
        clipboard = page.evaluate("navigator.clipboard.readText()")
        assert clipboard.splitlines()[1].split("\t")[0] == copied
    name.evaluate("(cell, text) => { cell.textContent = text; }", before)


#: Presses a button twice before its label returns, and returns the label in the end.
PRESS_TWICE = """async button => {
    const [real, later] = [setTimeout, []];
    window.setTimeout = (act, ms) => ms === 1500 ? later.push(act) : real(act, ms);
    for (const times of [1, 2]) {
        button.click();
        while (later.length < times) await new Promise(requestAnimationFrame);
    }
    window.setTimeout = real;
    later.forEach(act => act());
    return button.textContent;
}"""


def test_a_button_that_is_pressed_twice_keeps_its_label(page):
    assert page.locator("#table-datasets [data-do=copy]").evaluate(PRESS_TWICE) == "Copy"


def test_the_sql_of_a_table_opens_runs_and_closes(page, trace):
    box = page.locator("#table-workers .tools details")
    box.locator("summary").press("Enter")
    query, command = box.locator("pre").all_inner_texts()

    assert command == "roast-analyze view coffea_failures.jsonl.zst workers"
    assert len(trace.rows(query)) == page.locator("#table-workers tbody tr").count()
    page.keyboard.press("Escape")
    assert box.locator("pre").first.is_hidden()
    assert box.locator("summary").evaluate("summary => summary === document.activeElement")
    # It also closes when it loses the focus.
    page.keyboard.press("Space")
    for button in (*box.locator("[data-do=copy-next]").all(), None):
        assert box.locator("pre").first.is_visible()
        page.keyboard.press("Tab")
        if button:
            assert button.evaluate("button => button === document.activeElement")
    assert box.locator("pre").first.is_hidden()


def test_a_traceback_opens(page):
    more = page.locator("#table-failures details.more").first
    more.locator("summary").press("Enter")

    assert "File" in more.locator("pre").inner_text()
    assert more.locator("xpath=ancestor::td").evaluate("td => td.matches('.unfolded')")
    more.locator("summary").press("Enter")


#: Records the theme whenever it changes.
THEMES = """() => {
    window.themes = [];
    document.addEventListener("roast-theme", () => {
        themes.push(document.documentElement.dataset.theme ?? "that of the system");
    });
}"""


@pytest.mark.exhaustive
def test_colors_follow_the_system_and_the_button_and_paper_is_light(page):
    def colors() -> list[str]:
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
            document.querySelector('#figure-memory .canvas').layout.font.color]"""
        )

    light = colors()
    page.emulate_media(color_scheme="dark")
    page.locator("#theme", has_text="Light").wait_for()
    dark = colors()
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.evaluate(THEMES)
    assert len(page.pdf()) > 50_000
    assert page.evaluate("themes") == ["light", "that of the system"]
    page.locator("#theme").press("Enter")
    assert colors() == light
    page.emulate_media(color_scheme="light")
    page.locator("#theme", has_text="Dark").click()
    assert (colors(), page.locator("#theme").inner_text()) == (dark, "Light")
    page.locator("#theme").click()


def test_a_sorted_table_fits_on_paper(page):
    page.locator("#table-files th[data-column=filename] button").press("Enter")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 900})
    table, block = (page.locator(f"#table-files {name}") for name in ("table", ".scroll"))
    assert table.bounding_box()["width"] <= block.bounding_box()["width"]
    page.emulate_media(media="screen")


def test_the_page_does_not_scroll_sideways(page):
    for width in (400, 800, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_link_of_the_visible_section_is_marked(page):
    page.locator("#memory").evaluate("section => section.scrollIntoView()")
    page.locator("nav a[aria-current][href='#memory']").wait_for()
    # The page becomes longer while it is scrolled.
    page.wait_for_function(
        """() => {
          scrollTo(0, document.body.scrollHeight);
          return document.querySelector("nav li:last-child a").matches("[aria-current]");
        }"""
    )
    # A page of few rows is painted everywhere.
    assert False not in page.locator(".scroll, .canvas").evaluate_all(IS_PAINTED)


#: All visible interactive elements, in the order of the page.
STOPS = """() => {
    window.stops = [...document.querySelectorAll(
        'a[href], button, input, select, summary, [tabindex="0"]')]
        .filter(stop => !stop.disabled && stop.checkVisibility({visibilityProperty: true}));
    window.unfocused = stops.map(stop => getComputedStyle(stop).outline);
    return stops.map(stop => `${stop.closest('section')?.id ?? stop.closest('nav, header')
        ?.tagName.toLowerCase() ?? ''} ${stop.tagName.toLowerCase()} ${
        stop.ariaLabel ?? stop.innerText.trim()}`);
}"""

#: The focused stop (-1: the page itself), whether its outline shows the focus, and whether it
#: is visible and not covered.
FOCUS = """() => {
    const at = document.activeElement;
    const number = stops.indexOf(at);
    if (at === document.body) return { number, isOutlined: true, isVisible: true };
    const style = getComputedStyle(at);
    const box = at.getBoundingClientRect();
    const middle = (low, high, most) => (Math.max(low, 0) + Math.min(high, most - 1)) / 2;
    const top = document.elementFromPoint(
        middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight));
    return {
        number,
        isOutlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
            && style.outline !== unfocused[number],
        isVisible: at.contains(top),
    };
}"""


@pytest.mark.exhaustive
def test_tab_visits_everything_in_the_order_of_the_page(page):
    page.evaluate("document.activeElement.blur()")
    stops = page.evaluate(STOPS)
    page.locator("a.skip").focus()
    visited = [page.evaluate(FOCUS)]
    for _ in stops:
        page.keyboard.press("Tab")
        visited.append(page.evaluate(FOCUS))

    assert [focus["number"] for focus in visited] == [*range(len(stops)), -1]
    assert [stops[f["number"]] for f in visited if not f["isOutlined"]] == []
    assert [stops[f["number"]] for f in visited if not f["isVisible"]] == []
    assert stops[0] == " a Skip to the report"
    # The button that unfolds all sections is in none.
    sections = page.locator("main > :is(section, .details-head)").evaluate_all(
        "all => all.map(one => one.id)"
    )
    parts = [part for part, _ in groupby(stop.split(" ")[0] for stop in stops)]
    assert parts == ["", "header", "nav", *[one for one in sections if one in parts]]

    page.locator("a.skip").press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('section').id") == "verdict"


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


@pytest.mark.exhaustive
def test_a_plot_that_fails_leaves_the_others_alone(open_page, report, coffea_trace, tmp_path):
    html = report(coffea_trace, "coffea_failures").read_text()
    before, figure, after = html.partition('<figure class="plot"')
    start = '<script type="application/octet-stream">'
    path = tmp_path / "damaged.html"
    path.write_text(before + figure + after.replace(start, f"{start}damaged", 1))

    plots = open_page(path).locator("figure.plot")
    assert plots.first.locator(".canvas").inner_text() not in {"", "Drawing …"}
    assert plots.and_(plots.page.locator("[data-state=drawn]")).count() == plots.count() - 1


@pytest.mark.exhaustive
def test_a_browser_that_cannot_unpack_the_figures_shows_why(open_page, report, coffea_trace):
    path = report(coffea_trace, "coffea_failures")
    page = open_page(path, script="delete window.DecompressionStream", state="undrawn")

    for figure in ("#figure-timeline", "#figure-flame", "#figure-memory"):
        assert "it lacks DecompressionStream" in page.locator(figure).inner_text()
