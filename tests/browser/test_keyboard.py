"""The page by keyboard alone: every stop of Tab from top to end, and what can be done there."""

import csv
from itertools import groupby
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

#: What Tab should stop at, in the order of the page: all that can be seen and operated.
STOPS = """() => {
    window.stops = [...document.querySelectorAll(
        'a[href], button, input, select, summary, [tabindex="0"]')]
        .filter(stop => !stop.disabled && stop.checkVisibility({visibilityProperty: true}));
    window.unfocused = stops.map(stop => getComputedStyle(stop).outline);
    return stops.map(stop => `${stop.closest('section')?.id ?? stop.closest('nav, header')
        ?.tagName.toLowerCase() ?? ''} ${stop.tagName.toLowerCase()} ${
        stop.ariaLabel ?? stop.innerText.trim()}`);
}"""

#: Where the focus is: its number among the stops (-1 for the page itself), whether its
#: outline differs from when it had no focus, and whether it lies on top, in sight.
FOCUS = """() => {
    const at = document.activeElement;
    const number = stops.indexOf(at);
    if (at === document.body) return { number, isOutlined: false, isInSight: false };
    const style = getComputedStyle(at);
    const box = at.getBoundingClientRect();
    const middle = (low, high, most) => (Math.max(low, 0) + Math.min(high, most - 1)) / 2;
    const there = document.elementFromPoint(
        middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight));
    return {
        number,
        isOutlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
            && style.outline !== unfocused[number],
        isInSight: at.contains(there),
    };
}"""


@pytest.fixture
def page(open_page, report, coffea_trace):
    """The report of the recorded coffea run with failures; it scrolls without taking time."""
    return open_page(
        report(coffea_trace, "coffea_failures"), reduced_motion="reduce", accept_downloads=True
    )


def test_tab_walks_the_page_from_top_to_end(page):
    stops = page.evaluate(STOPS)
    page.emulate_media(color_scheme="dark")

    walked = [focus_after(page, "Tab") for _ in range(len(stops) + 1)]

    # All in the order of the page, and then out of it: nothing holds the focus.
    assert [focus["number"] for focus in walked] == [*range(len(stops)), -1]
    assert [stops[f["number"]] for f in walked[:-1] if not f["isOutlined"]] == []
    assert [stops[f["number"]] for f in walked[:-1] if not f["isInSight"]] == []
    assert stops[0] == " a Skip to the report"
    sections = page.locator("main > section").evaluate_all("all => all.map(one => one.id)")
    parts = [part for part, _ in groupby(stop.split(" ")[0] for stop in stops)]
    assert parts[:3] == ["", "header", "nav"]
    assert parts[3:] == [section for section in sections if section in parts]


def focus_after(page, key: str) -> dict:
    page.keyboard.press(key)
    return page.evaluate(FOCUS)


def test_tab_walks_back(page):
    stops = page.evaluate(STOPS)
    page.locator("#loss-heading").evaluate("heading => getSelection().collapse(heading, 0)")
    page.evaluate("stops.at(-1).focus()")

    walked = [focus_after(page, "Shift+Tab")["number"] for _ in range(40)]

    assert walked == [len(stops) - n for n in range(2, 42)]


def test_the_first_stop_skips_what_comes_before_the_report(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the report"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.closest('section').id") == "verdict"


def test_the_theme_can_be_chosen(page):
    def paper() -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    before = paper()
    page.locator("#theme").press("Enter")
    assert paper() != before
    page.locator("#theme").press("Space")
    assert paper() == before


def test_a_column_can_be_sorted(page):
    heading = page.locator("#table-files th[data-column=events]")

    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    heading.locator("button").press("Space")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert page.locator("#status").inner_text() == "Sorted by events, ascending"


def test_a_box_with_sql_opens_and_closes(page):
    tools = page.locator("#table-files .tools")
    box, summary = tools.locator("details"), tools.locator("summary")

    for key in ("Enter", "Space"):
        summary.press(key)
        assert box.locator("pre").first.is_visible()
        page.keyboard.press("Escape")
        assert box.locator("pre").first.is_hidden()
        # The focus is where it was, so that the way goes on from there.
        assert summary.evaluate("summary => summary === document.activeElement")


def test_a_box_that_the_focus_leaves_covers_nothing(page):
    box = page.locator("#table-files .tools details")
    box.locator("summary").press("Enter")

    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.className") == "scroll"
    assert box.locator("pre").first.is_hidden()


def test_rows_can_be_filtered(page):
    field = page.locator("#table-files input")
    rows = page.locator("#table-files tbody tr:visible")
    before = rows.count()

    field.press_sequentially("QCD_1")
    assert rows.count() == 1
    field.press("Escape")
    assert (field.input_value(), rows.count()) == ("", before)


def test_a_table_can_be_taken_away(page):
    for key in ("Enter", "Space"):
        with page.expect_download() as download:
            page.locator("#table-files [data-do=csv]").press(key)
        rows = list(csv.reader(Path(download.value.path()).read_text().splitlines()))
        assert len(rows) == 1 + page.locator("#table-files tbody tr").count()


def test_a_traceback_opens_and_can_be_scrolled(page):
    more = page.locator("#table-failures details.more").first

    more.locator("summary").press("Enter")
    page.keyboard.press("Tab")

    assert more.locator("pre").evaluate("text => text === document.activeElement")


def until(page, is_so: str, element) -> None:
    """Wait for what takes a moment; the page's policy forbids what Playwright would wait by."""
    for _ in range(200):
        if element.evaluate(is_so):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never: {is_so}")


def test_a_table_scrolls(page):
    scroll = page.locator("#table-chunks .scroll")

    scroll.press("End")

    until(page, "scroll => scroll.scrollTop > 100", scroll)


def test_buttons_of_a_figure_are_seen_when_the_focus_is_there(page):
    group = page.locator("#figure-memory .modebar-group").first
    page.mouse.move(0, 0)

    page.locator("#figure-memory .modebar-btn").first.focus()

    until(page, "group => getComputedStyle(group).opacity === '1'", group)
