"""Interactions with pages of large traces: long tables, deep stacks, many short tasks."""

import pytest

from browser.pages import IS_PAINTED, downloaded, drag
from browser.records import task, worker
from browser.test_flame import (
    MINE,
    RECORDS,
    ROW_PX,
    STRIP,
    boxes,
    click,
    detail,
    frame,
    profile,
    shown,
)
from roast_analyze import Trace

pytestmark = pytest.mark.browser


def test_a_long_table_is_sorted_and_filtered_fully_and_painted_if_visible(open_page, report):
    facts = [
        {"kind": "environment", "t": 0.0, "section": "s", "name": f"n{n}", "value": "v"}
        for n in range(500)
    ]
    workers = [worker(f"tcp://10.0.0.1:{n}", name=str(n)) for n in range(300)]
    page = open_page(report([*workers, *facts], "long"))
    page.locator(".scroll.long:not(.laid-out)").first.wait_for(state="detached")
    tables = page.locator(".scroll.long")
    assert tables.evaluate_all(IS_PAINTED) == [True] * tables.count()

    # No frame is drawn between these steps, so most rows have not been updated yet.
    with page.expect_download() as download:
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
    lines = download.value.path().read_text().splitlines()[1:]
    assert [int(line.partition(",")[0]) for line in lines] == list(range(300))[::-1]

    page.mouse.wheel(0, 10)
    page.locator("html.long-page").wait_for(state="attached")
    page.evaluate("new Promise(requestAnimationFrame)")
    assert False in tables.evaluate_all(IS_PAINTED)


def test_short_tasks_are_drawn_by_time_bucket(open_page, report):
    records = [worker()]
    for i in range(6000):
        records += task(f"a-{i}", 0.01 * i, 0.01 * i + 0.004 + 1e-7 * i)[1:]
    page = open_page(report(records, "short"))
    rows = downloaded(page, "#figure-timeline")
    seconds = {what: [float(row["seconds"]) for row in rows if row["what"] == what]
               for what in ("computation", "short tasks")}  # fmt: skip

    assert len(seconds["computation"]) == 5000
    assert sum(map(sum, seconds.values())) == pytest.approx(
        sum(0.004 + 1e-7 * i for i in range(6000)), rel=1e-3
    )


#: Measured by Yappi: main took 1.5 s itself, and 1 s in work, which nothing else called.
MEASURED = [
    {"kind": "import", "t": 9.0, "name": "yappi", "source": "Y", "filename": "w.ystat",
     "value": {"clock": "cpu"}, "records_by_kind": {"function": 2}},
    {"kind": "function", "t": 9.0, "source": "Y", "name": "main", "filename": MINE,
     "value": {"index": 0, "line_number": 1, "calls": 1, "self_seconds": 1.5,
               "total_seconds": 2.5, "callees": [
                   {"index": 1, "calls": 4, "actual_calls": 4, "self_seconds": 1.0,
                    "total_seconds": 1.0}]}},
    {"kind": "function", "t": 9.0, "source": "Y", "name": "work", "filename": MINE,
     "value": {"index": 1, "line_number": 9, "calls": 4, "self_seconds": 1.0,
               "total_seconds": 1.0, "callees": []}},
]  # fmt: skip


@pytest.mark.parametrize("sampled", [RECORDS, []], ids=["beside samples", "alone"])
def test_a_file_from_yappi_is_selected_in_the_place_of_workers(open_page, report, sampled):
    page = open_page(report([*sampled, *MEASURED], f"measured-{len(sampled)}"))
    if sampled:
        # The measurements have no times, so the selected time range does not apply to them.
        page.locator(STRIP).press("ArrowRight")
        page.locator(".flame [data-choose=worker]").select_option("Yappi: w.ystat")

    assert boxes(page) == [("main", 250, 150), ("main/work", 100, 100)]
    assert shown(page) == "2.5 s, measured by Yappi."
    assert page.locator(STRIP).is_hidden()


def test_a_deep_stack_scrolls(open_page, report):
    chain = [frame(f"level_{i}", line=i) for i in range(300)]
    page = open_page(report([profile(chain, {0: 5}, worker="w", prefix="p")], "deep"))
    canvas, scroller = page.locator(".flame-content canvas"), page.locator(".flame-scroll")
    canvas.focus()
    for _ in range(100):
        page.keyboard.press("ArrowDown")

    assert detail(page).startswith("level_98 ")
    top = scroller.evaluate("s => s.scrollTop")
    assert top > 50 * ROW_PX
    canvas.hover(position={"x": 50, "y": 100})
    function = f"level_{int((top + 100) // ROW_PX) - 1}\n"
    assert page.locator(".flame-tip").inner_text().startswith(function)


def test_a_recorded_run_is_searched_zoomed_and_cut(open_page, report, coffea_trace):
    with Trace(coffea_trace) as trace:
        [(samples, of_analysis)] = trace.sql(
            """
            SELECT sum(n)::INT, sum(n) FILTER (
                list_bool_or(list_transform(frames, lambda f: f.filename LIKE '%dijet.py'))
            )::INT
            FROM (
                SELECT *, samples + ambiguous_samples AS n
                FROM profile_stacks
                WHERE worker IS NOT NULL
            )
            """
        ).fetchall()
    page = open_page(report(coffea_trace, "coffea_failures"))
    page.locator("figure.flame").scroll_into_view_if_needed()

    assert f"{samples:,} samples." in shown(page)
    page.locator(".flame input").fill("dijet.py")
    assert f"in {100 * of_analysis / samples:.0f} % of the time" in shown(page)
    click(page, 0.5, 3)
    assert page.locator(".flame-crumbs li").count() == 4
    drag(page, STRIP, 0.3, 0.6)
    page.locator(".flame-shown", has_text="of the total").wait_for()
    part = int(shown(page).split(", ")[1].split(" ")[0].replace(",", ""))
    assert 0 < part < samples
