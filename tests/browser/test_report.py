"""The report in a real Chromium; the fixture `open_page` fails on any complaint or request."""

import csv
import io
from itertools import pairwise
from pathlib import Path

import pytest

from roast_analyze import Trace

pytestmark = pytest.mark.browser

SECTIONS = [
    "verdict",
    "timeline",
    "chunks",
    "workers",
    "tasks",
    "inside",
    "memory",
    "scheduler",
    "failures",
    "environment",
    "loss",
]


@pytest.fixture
def page(open_page, report, coffea_trace):
    """The report of the recorded coffea run with failures."""
    return open_page(report(coffea_trace, "coffea_failures"), accept_downloads=True)


def texts(page, table: str, column: int) -> list[str]:
    return page.locator(f"#table-{table} tbody tr td:nth-child({column})").all_inner_texts()


def downloaded(page, block: str) -> list[dict]:
    with page.expect_download() as download:
        page.locator(f"{block} [data-do=csv]").click()
    return list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))


def test_every_section_is_filled(page):
    assert page.locator("main > section").evaluate_all("all => all.map(s => s.id)") == SECTIONS
    for section in SECTIONS:
        assert len(page.locator(f"#{section}").inner_text()) > 60


def test_every_figure_is_drawn(page):
    figures = page.locator("figure.plot")

    assert figures.count() == 9
    for figure in figures.all():
        assert figure.get_attribute("data-state") == "drawn"
        assert figure.locator("svg.main-svg").first.bounding_box()["height"] > 100
        assert figure.locator(".trace, .bars .point, .scatterlayer .js-line, .hm").count() > 0


def test_the_page_shows_the_numbers_of_the_views(page, coffea_trace):
    with Trace(coffea_trace) as trace:
        chunks, events, failures = trace.sql(
            "SELECT count(DISTINCT key), "
            "(SELECT sum(events) FROM (SELECT DISTINCT key, events FROM chunks "
            "WHERE outcome = 'memory')), "
            "(SELECT count(*) FROM failures) FROM chunks WHERE outcome = 'memory'"
        ).fetchall()[0]
    tiles = dict(
        zip(
            page.locator(".tiles dt").all_inner_texts(),
            page.locator(".tiles b").all_inner_texts(),
            strict=True,
        )
    )

    assert tiles["Chunks"] == f"{chunks:,}"
    assert tiles["Events"] == f"{events:,}"
    assert tiles["Failures"] == f"{failures:,}"


def test_a_click_on_a_heading_sorts_by_number_and_by_name(page):
    heading = page.locator("#table-prefixes th[data-column=compute_seconds]")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    largest_first = texts(page, "prefixes", 1)
    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert texts(page, "prefixes", 1) == largest_first[::-1]

    page.locator("#table-prefixes th[data-column=prefix] button").click()
    assert texts(page, "prefixes", 1) == sorted(largest_first, key=str.lower)
    assert heading.get_attribute("aria-sort") is None


def test_the_filter_keeps_the_rows_that_contain_the_text(page):
    page.locator("#table-files input").fill("QCD_1")

    shown = page.locator("#table-files tbody tr:visible")
    assert shown.count() == 1
    assert "QCD_1" in shown.inner_text()
    assert page.locator("#table-files .rows").inner_text() == "1 of 8"


def many_workers(count: int) -> list[dict]:
    added = {"kind": "worker_added", "t": 0.0, "nthreads": 1}
    return [
        {**added, "worker": f"tcp://10.0.0.1:{n}", "server_id": f"id-{n}", "name": str(n)}
        for n in range(count)
    ]


def test_what_is_left_to_sort_and_show_of_many_rows_is_done_before_they_are_taken_away(
    open_page, report
):
    page = open_page(report(many_workers(280), "many_workers"), accept_downloads=True)

    with page.expect_download() as download:
        # No frame is drawn between the clicks.
        page.evaluate(
            """() => {
              const table = document.querySelector("#table-workers");
              const search = table.querySelector("input");
              for (const text of ["7", ""]) {
                search.value = text;
                search.dispatchEvent(new Event("input", { bubbles: true }));
              }
              const heading = table.querySelector("th[data-column=name] button");
              for (let i = 0; i < 2; i++) heading.click();
              table.querySelector("[data-do=csv]").click();
            }"""
        )
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))

    assert [int(row["name"]) for row in rows] == list(range(280))[::-1]
    assert page.locator("#table-workers tbody tr:visible").count() == 280


def test_a_table_downloads_as_the_view_has_it(page, coffea_trace):
    rows = downloaded(page, "#table-prefixes")

    with Trace(coffea_trace) as trace:
        expected = trace.frame("prefixes")
    assert {row["prefix"]: float(row["compute_seconds"]) for row in rows} == dict(
        expected.select("prefix", "compute_seconds").iter_rows()
    )


def test_only_filtered_rows_are_downloaded(page):
    page.locator("#table-chunks input").fill("erred")

    assert [row["outcome"] for row in downloaded(page, "#table-chunks")] == ["erred"]


def test_a_figure_downloads_what_it_draws(page, coffea_trace):
    rows = downloaded(page, "#figure-memory")

    with Trace(coffea_trace) as trace:
        (held,) = trace.sql("SELECT max(managed_bytes) FROM cluster_samples").fetchall()[0]
    results = [
        float(row["managed_bytes_in_MiB"]) for row in rows if row["series"] == "results held"
    ]
    assert max(results) == pytest.approx(held / 2**20, abs=1e-3)


def test_time_spent_downloads(page):
    parts = {row["part"]: float(row["seconds"]) for row in downloaded(page, "#spent")}

    assert parts["computing, result kept"] > 0


def test_copying_gives_a_table_that_a_spreadsheet_takes(open_page, report, coffea_trace):
    page = open_page(
        report(coffea_trace, "coffea_failures"),
        permissions=["clipboard-read", "clipboard-write"],
    )

    page.locator("#table-datasets [data-do=copy]").click()
    page.get_by_text("Copied").first.wait_for()

    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[0].startswith("dataset\tfiles\tchunks")
    assert len(copied) == 1 + page.locator("#table-datasets tbody tr").count()


def test_the_sql_of_a_table_is_one_click_away(page, coffea_trace):
    tools = page.locator("#table-workers .tools details")
    tools.locator("summary").click()
    query, command = tools.locator("pre").all_inner_texts()

    assert command == "roast-analyze view coffea_failures.jsonl.zst workers"
    with Trace(coffea_trace) as trace:
        assert (
            len(trace.sql(query).fetchall()) == page.locator("#table-workers tbody tr").count()
        )
    page.keyboard.press("Escape")
    assert tools.locator("pre").first.is_hidden()


def test_a_traceback_opens(page):
    more = page.locator("#table-failures details.more").first
    assert more.locator("pre").is_hidden()

    more.locator("summary").click()

    assert "Traceback" in more.inner_text() or "File" in more.inner_text()


def colours(page) -> tuple[str, str]:
    """Colours of the paper and of the text of a figure."""
    return tuple(
        page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
            document.querySelector('#figure-memory .canvas').layout.font.color]"""
        )
    )


def test_the_theme_follows_the_system_and_the_button(open_page, report, coffea_trace):
    page = open_page(report(coffea_trace, "coffea_failures"), color_scheme="dark")
    dark = colours(page)

    page.locator("#theme").click()
    light = colours(page)

    assert dark[0] != light[0]
    assert dark[1] != light[1]
    assert page.locator("#theme").inner_text() == "Dark"
    page.emulate_media(color_scheme="light")
    page.locator("#theme").click()
    assert colours(page) == dark


@pytest.mark.parametrize("width", [400, 800, 1440])
def test_the_page_does_not_scroll_sideways(open_page, report, coffea_trace, width):
    page = open_page(
        report(coffea_trace, "coffea_failures"), viewport={"width": width, "height": 900}
    )

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_prints_all_of_its_figures(page):
    pdf = page.pdf()

    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000


IS_PAINTED = """all => all.map(one =>
  one.firstElementChild.checkVisibility({ contentVisibilityAuto: true }))"""


def test_a_page_of_many_rows_paints_what_is_in_sight_once_it_is_used(open_page, report):
    fact = {"kind": "environment", "t": 0.0, "section": "s", "value": "v"}
    facts = [{**fact, "name": f"n{n}"} for n in range(500)]
    page = open_page(report([*many_workers(300), *facts], "long_page"))
    page.locator(".scroll.long:not(.laid-out)").first.wait_for(state="detached")
    tables = page.locator(".scroll.long")

    before = tables.evaluate_all(IS_PAINTED)
    page.wait_for_function(
        "dispatchEvent(new Event('wheel')), document.documentElement.matches('.long-page')"
    )
    page.evaluate("new Promise(requestAnimationFrame)")
    after = tables.evaluate_all(IS_PAINTED)
    page.emulate_media(media="print")

    assert before == [True] * tables.count()
    assert False in after
    assert tables.evaluate_all(IS_PAINTED) == before


def test_a_page_of_few_rows_is_always_painted(page):
    page.mouse.wheel(0, 300)
    page.keyboard.press("Tab")

    assert False not in page.locator(".scroll, .canvas").evaluate_all(IS_PAINTED)


def test_figures_keep_their_place_while_they_are_not_painted(page):
    figures = page.locator("figure.plot")
    places = "all => all.map(figure => figure.getBoundingClientRect().top)"
    before = figures.evaluate_all(places)

    page.evaluate("document.documentElement.classList.add('long-page')")
    painted = page.locator("figure.plot svg.main-svg:first-child").evaluate_all(
        "all => new Promise(requestAnimationFrame).then(() => "
        "all.map(svg => svg.checkVisibility({ contentVisibilityAuto: true })))"
    )

    assert not painted[-1]
    assert figures.evaluate_all(places) == before


def test_the_keyboard_reaches_what_can_be_done(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.closest('nav') ? 'nav' : "
                          "document.activeElement.id || document.activeElement.tagName")
        )  # fmt: skip
    assert {"theme", "nav", "BUTTON", "SUMMARY", "INPUT"} <= reached


def test_headings_figures_and_tables_have_names(page):
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    unnamed = page.locator(
        "button:not([aria-label]), input, [role=img], [role=region], table, figure.plot"
    ).evaluate_all(
        """all => all.filter(e => !(e.innerText?.trim() || e.getAttribute('aria-label')
        || e.getAttribute('aria-labelledby') || e.labels?.length)).map(e => e.outerHTML)"""
    )
    assert unnamed == []


def test_hostile_strings_stay_text(open_page, report, hostile_records):
    page = open_page(report(hostile_records, "hostile"), accept_downloads=True)

    lanes = page.locator("#figure-timeline .timeline-content canvas")
    for x in range(100, 900, 20):
        lanes.hover(position={"x": x, "y": 8})
    page.locator("details").evaluate_all(
        "all => all.forEach(details => { details.open = true })"
    )
    rows = downloaded(page, "#table-failures")
    points = downloaded(page, "#figure-timeline")

    assert page.evaluate("window.__pwned") is None
    assert (
        page.locator(
            "main img, main [onload], main [onerror], main a[href^=javascript]"
        ).count()
        == 0
    )
    assert page.locator(".canvas a[href], .canvas [onerror]").count() == 0
    assert page.locator("figure.plot[data-state=drawn]").count() == 8
    assert page.locator("main > section").count() == len(SECTIONS)
    assert any("onerror=window.__pwned=1" in row["key"] for row in rows)
    assert any("<img src=x" in row["key"] for row in points)


WORKER = {"kind": "worker_added", "t": 0.0, "worker": "w1", "server_id": "i", "nthreads": 1}


def transition(t: float, states: str, **fields) -> dict:
    start, finish = states.split(">")
    moved = {"key": "a-1", "start": start, "finish": finish, "worker": "w1", "thread": 1}
    return {"kind": "transition", "t": t, "stimulus_id": "s-1", **moved, **fields}


SENT = transition(1.0, "waiting>processing")
ENDED = {"startstops": [{"action": "compute", "start": 1.0, "stop": 2.0}]}
DONE = transition(2.0, "processing>memory", **ENDED)
FAILED = transition(
    2.0, "processing>erred", stimulus_id="task-erred-1", exception="E()", **ENDED
)


@pytest.mark.parametrize(
    ("name", "records", "figures", "says"),
    [
        ("nothing", [], 0, "No task ran"),
        ("no-workers", [SENT, DONE], 4, "No worker was seen"),
        ("one-task", [WORKER, SENT, DONE], 4, "1 task in 1 s on 1 worker"),
        ("only-failures", [WORKER, SENT, FAILED], 4, "1 task failed for good"),
        ("never-ended", [WORKER, SENT], 3, "1 attempt was not finished"),
    ],
)
def test_poor_traces_make_a_sensible_page(open_page, report, name, records, figures, says):
    page = open_page(report(records, name))

    text = page.locator("main").inner_text().replace("\N{NO-BREAK SPACE}", " ")
    assert says in text
    assert page.locator("main > section").count() == len(SECTIONS)
    assert page.locator("figure.plot[data-state=drawn]").count() == figures
    # None of these was ended in order, and the page says so on top.
    assert "The trace is not whole" in page.locator("#verdict").inner_text()


def test_each_worker_has_pictures_in_its_row(page):
    pictures = page.locator("#table-workers tbody tr:first-child svg")

    assert pictures.count() == 3
    for picture in pictures.all():
        assert picture.bounding_box()["width"] == pytest.approx(60, abs=2)
        assert picture.locator("path").bounding_box()["width"] > 10
    # What a picture says is neither found nor taken away as text of the cell.
    page.locator("#table-workers input").fill(" to ")
    assert page.locator("#table-workers tbody tr:visible").count() == 0


def test_pictures_download_as_their_highest_value(page):
    rows = downloaded(page, "#table-workers")

    assert len(rows) == 4
    assert all(0 < float(row["max_memory_share"]) < 1 for row in rows)


def test_who_sent_to_whom_comes_as_rows(page, coffea_trace):
    rows = downloaded(page, "#figure-movement")

    with Trace(coffea_trace) as trace:
        (seconds,) = trace.sql("SELECT sum(transfer_seconds) FROM task_runs").fetchall()[0]
    assert {row["source"] for row in rows} <= {"worker 0", "worker 1", "worker 2"}
    told = sum(float(row["seconds_in_ms"]) for row in rows) / 1000
    assert told == pytest.approx(seconds, rel=0.01)


def test_the_script_to_run_it_again_is_copied(open_page, report, coffea_trace):
    page = open_page(
        report(coffea_trace, "coffea_failures"),
        permissions=["clipboard-read", "clipboard-write"],
    )
    page.locator("#snippet-again [data-do=copy]").click()
    page.locator("#snippet-again [data-do=copy]", has_text="Copied").wait_for()

    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip().endswith("-- python record_samples.py")
    assert "pip install dask==2026.8.0 " in copied


def test_a_browser_that_cannot_unpack_the_drawings_says_so(chromium, report, coffea_trace):
    page = chromium.new_context(offline=True).new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(report(coffea_trace, "coffea_failures").as_uri())

    page.locator("html[data-state=undrawn]").wait_for(state="attached")

    assert "DecompressionStream" in page.locator("#figure-timeline").inner_text()
    page.context.close()
