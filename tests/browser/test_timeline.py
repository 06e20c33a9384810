"""The timeline in a real browser: what a reader does with it, and what it says then."""

import csv
import io
from collections import Counter
from pathlib import Path

import pytest

from roast_analyze import Trace

pytestmark = pytest.mark.browser

LANES = "#figure-timeline .timeline-content canvas"
TOP = "#figure-timeline .timeline-top canvas"


@pytest.fixture
def page(open_page, report, coffea_trace):
    opened = open_page(
        report(coffea_trace, "coffea_failures"),
        accept_downloads=True,
        viewport={"width": 1280, "height": 900},
    )
    opened.locator("#figure-timeline[data-state=drawn]").wait_for()
    opened.locator("#timeline").scroll_into_view_if_needed()
    return opened


@pytest.fixture
def trace(coffea_trace):
    with Trace(coffea_trace) as opened:
        yield opened


def shown(page) -> str:
    text = page.locator(".timeline-shown").inner_text()
    return text.replace("\N{NO-BREAK SPACE}", " ")


def detail(page) -> str:
    return page.locator(".timeline-detail").inner_text()


def downloaded(page) -> list[dict]:
    with page.expect_download() as download:
        page.locator("#figure-timeline [data-do=csv]").click()
    return list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))


def ink(page, selector: str) -> int:
    """Count the distinct colours of a canvas: one that shows nothing has one."""
    return page.locator(selector).evaluate(
        """canvas => new Set(new Uint32Array(canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""
    )


def drag(page, selector: str, start: float, stop: float, *, shift: bool = False) -> None:
    """Drag from one part of the width to another."""
    box = page.locator(selector).bounding_box()
    y = box["y"] + box["height"] / 2
    if shift:
        page.keyboard.down("Shift")
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + stop) / 2 * box["width"], y)
    page.mouse.move(box["x"] + stop * box["width"], y)
    page.mouse.up()
    if shift:
        page.keyboard.up("Shift")


def choose(page, name: str, text: str) -> None:
    page.locator(f"#figure-timeline [data-choose={name}]").select_option(label=text)


#: Notes what is drawn when the upper part of the timeline is.
NOTE = """new MutationObserver((changes) => {
  for (const { target } of changes) {
    if (!target.matches(".timeline-top")) continue;
    const pixels = target.querySelector("canvas").getContext("2d").getImageData(0, 0, 1280, 80);
    window.drawnThen = {
      ink: new Set(new Uint32Array(pixels.data.buffer)).size,
      whole: document.querySelector("figure.timeline").dataset.state ?? "not yet",
    };
  }
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-state"] });"""


#: Chooses a prefix as soon as it can be, before the page's own scripts run.
FILLED_IN = """new MutationObserver((_, observer) => {
  const select = document.querySelector("#figure-timeline [data-choose=prefix]");
  const option = select && [...select.options].find((one) => one.text === "reduce");
  if (!option) return;
  select.value = option.value;
  observer.disconnect();
}).observe(document, { subtree: true, childList: true });"""


def test_the_upper_part_is_drawn_before_the_lanes(chromium, report, coffea_trace):
    page = chromium.new_context(offline=True).new_page()
    page.add_init_script(NOTE)
    page.goto(report(coffea_trace, "coffea_failures").as_uri())
    page.locator("#figure-timeline[data-state=drawn]").wait_for()

    then = page.evaluate("drawnThen")
    page.context.close()

    assert then["whole"] == "not yet"
    assert then["ink"] > 5


def test_what_a_browser_filled_in_is_told_of_the_lanes(page, chromium, report, coffea_trace):
    choose(page, "prefix", "reduce")
    by_hand = shown(page)

    there = chromium.new_context(offline=True).new_page()
    there.add_init_script(FILLED_IN)
    there.goto(report(coffea_trace, "coffea_failures").as_uri())
    there.locator("#figure-timeline[data-state=drawn]").wait_for()
    filled_in = shown(there)
    there.context.close()

    assert filled_in == by_hand
    assert "0 s of computing" not in by_hand


def test_it_is_drawn(page):
    assert ink(page, LANES) > 5
    assert ink(page, TOP) > 5
    assert "The whole run: 92 computations" in shown(page)


def test_all_that_it_draws_can_be_downloaded(page, trace):
    rows = downloaded(page)

    expected = trace.sql(
        "SELECT run.key, run.attempt, run.outcome, run.prefix, chunk.dataset, chunk.filename, "
        "run.compute_start_t FROM task_runs AS run LEFT JOIN chunks AS chunk "
        "USING (key, attempt) WHERE run.compute_start_t IS NOT NULL"
    ).fetchall()
    told = [
        (
            row["key"], int(row["attempt"]), row["outcome"], row["prefix"],
            row["dataset"] or None, row["filename"] or None, float(row["start_t"]),
        )
        for row in rows
        if row["what"] == "computation"
    ]  # fmt: skip
    assert len(told) == len(expected)
    for one, other in zip(sorted(told), sorted(expected), strict=True):
        assert one[:-1] == other[:-1]
        assert one[-1] == pytest.approx(other[-1], abs=2e-6)
    assert Counter(row["outcome"] for row in rows if row["what"] == "failure") == Counter(
        outcome
        for (outcome,) in trace.sql(
            "SELECT outcome FROM task_runs WHERE outcome IN ('erred', 'retried', 'lost')"
        ).fetchall()
    )
    (transfers,) = trace.sql(
        "SELECT count(*) FROM task_phases WHERE action = 'transfer'"
    ).fetchall()[0]
    assert sum(row["what"] == "transfer" for row in rows) == transfers


def test_the_curve_and_the_map_can_be_downloaded_too(page, trace):
    rows = downloaded(page)

    computing = [float(row["value"]) for row in rows if row["what"] == "tasks computing"]
    expected = trace.sql("SELECT executing FROM concurrency ORDER BY t").fetchall()
    assert computing == pytest.approx([value for (value,) in expected], abs=1e-3)
    busy = [row for row in rows if row["what"] == "percent busy"]
    expected = trace.sql(
        "SELECT round(100 * utilisation) FROM utilisation WHERE thread_seconds > 0"
    ).fetchall()
    assert sorted(float(row["value"]) for row in busy) == sorted(value for (value,) in expected)


def test_a_drag_shows_a_stretch_and_a_double_click_the_whole(page):
    drag(page, LANES, 0.4, 0.6)

    assert shown(page).startswith("From ")
    keys = [row["key"] for row in downloaded(page) if row["what"] == "computation"]
    assert 0 < len(keys) < 60
    drag(page, TOP, 0.3, 0.5)
    narrower = shown(page)
    page.locator(LANES).dblclick(position={"x": 400, "y": 30})
    assert narrower != shown(page)
    assert shown(page).startswith("The whole run")


def test_a_drag_with_shift_moves_the_stretch(page):
    drag(page, LANES, 0.4, 0.6)
    before = shown(page)

    drag(page, LANES, 0.6, 0.4, shift=True)

    assert shown(page) != before
    assert shown(page).rsplit(",", 1)[1] == before.rsplit(",", 1)[1]  # as long as before


def test_buttons_wheel_and_keys_zoom(page):
    whole = page.locator("[data-zoom=all]")
    assert whole.is_disabled()
    page.locator("[data-zoom=in]").click()
    assert shown(page).startswith("From ")
    page.locator("[data-zoom=out]").click()
    assert shown(page).startswith("The whole run")

    page.locator(LANES).hover(position={"x": 600, "y": 30})
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    assert shown(page).startswith("From ")
    whole.click()

    page.locator(LANES).focus()
    page.keyboard.press("+")
    zoomed = shown(page)
    page.keyboard.press("ArrowRight")
    assert shown(page) != zoomed
    page.keyboard.press("Escape")
    assert shown(page).startswith("The whole run")


def test_the_wheel_alone_scrolls_the_page(page):
    page.locator(LANES).hover(position={"x": 600, "y": 30})
    page.mouse.wheel(0, 200)

    page.wait_for_function("() => scrollY > 100")
    assert shown(page).startswith("The whole run")


@pytest.mark.parametrize(
    ("select", "chosen", "condition"),
    [
        ("prefix", "reduce", "prefix = 'reduce'"),
        ("dataset", "QCD", "dataset = 'QCD'"),
        ("worker", "worker 0", "worker = (SELECT worker FROM workers WHERE name = '0')"),
    ],
)
def test_a_filter_leaves_what_is_chosen(page, trace, select, chosen, condition):
    choose(page, select, chosen)

    keys = [row["key"] for row in downloaded(page) if row["what"] == "computation"]
    expected = trace.sql(
        "SELECT run.key, compute_start_t FROM task_runs AS run LEFT JOIN "
        "(SELECT key, attempt, dataset FROM chunks) AS chunk USING (key, attempt) "
        f"WHERE compute_start_t IS NOT NULL AND {condition}"
    ).fetchall()
    assert Counter(keys) == Counter(key for key, _ in expected)
    assert "are chosen" in shown(page)
    # The whole of one kind is computed from the drawing; it is what the view says.
    choose(page, select, "all")
    assert shown(page).startswith("The whole run")


def test_the_time_that_is_chosen_is_that_of_the_view(page, trace):
    choose(page, "prefix", "reduce")

    count, seconds = trace.sql(
        "SELECT count(*), sum(compute_seconds) FROM task_runs WHERE prefix = 'reduce'"
    ).fetchall()[0]
    said = shown(page)
    assert said.startswith(f"{count} attempts, ")
    number, unit = said.split(", ")[1].split(" of ")[0].split()
    scale = {"ms": 1e-3, "s": 1.0}[unit]
    assert float(number) * scale == pytest.approx(seconds, rel=0.01)


def test_a_click_in_the_legend_chooses_a_prefix_and_lets_it_go(page):
    button = page.locator("#figure-timeline [data-legend]", has_text="reduce")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert (
        page.locator("#timeline [data-choose=prefix] option:checked").inner_text() == "reduce"
    )
    button.click()
    assert shown(page).startswith("The whole run")


def test_only_failures(page):
    page.locator("[data-toggle=failed]").click()

    outcomes = {row["outcome"] for row in downloaded(page) if row["what"] == "computation"}
    assert outcomes <= {"erred", "retried", "lost"}
    assert outcomes


def test_n_and_p_go_from_failure_to_failure(page, trace):
    keys = [
        key
        for (key,) in trace.sql(
            "SELECT key FROM task_runs WHERE outcome IN ('erred', 'retried', 'lost') "
            "ORDER BY coalesce(compute_stop_t, end_t)"
        ).fetchall()
    ]
    page.locator(LANES).focus()

    page.keyboard.press("n")
    assert keys[0] in detail(page)
    page.keyboard.press("n")
    assert keys[1] in detail(page)
    page.keyboard.press("p")
    assert keys[0] in detail(page)


def test_the_pointer_on_a_bar_tells_task_file_and_worker_and_a_click_keeps_it(page, trace):
    choose(page, "dataset", "QCD")
    choose(page, "worker", "worker 0")
    key, filename = trace.sql(
        "SELECT key, filename FROM task_runs INNER JOIN chunks USING (key, attempt, worker) "
        "WHERE dataset = 'QCD' AND worker = (SELECT worker FROM workers WHERE name = '0') "
        "ORDER BY task_runs.compute_seconds DESC LIMIT 1"
    ).fetchall()[0]
    canvas = page.locator(LANES)
    box = canvas.bounding_box()
    tip = page.locator(".timeline-tip")
    seen = ""
    for x in range(80, int(box["width"]) - 10, 8):
        page.mouse.move(box["x"] + x, box["y"] + box["height"] / 2)
        if tip.is_visible() and key in tip.inner_text():
            seen = tip.inner_text()
            page.mouse.click(box["x"] + x, box["y"] + box["height"] / 2)
            break

    assert f"QCD: {filename}, entries" in seen
    assert "computed" in seen
    assert "worker 0" in seen
    assert key in detail(page)


def test_the_pointer_above_tells_how_many_computed_and_how_busy_a_worker_was(page):
    box = page.locator(TOP).bounding_box()
    tip = page.locator(".timeline-tip")

    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    assert "tasks computed on" in tip.inner_text()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 95)
    assert "% busy" in tip.inner_text()


def test_short_tasks_are_put_together_and_say_so(open_page, report):
    records = [{"kind": "worker_added", "t": 0.0, "worker": "w1", "nthreads": 1}]
    for i in range(6000):
        start = 0.01 * i
        moved = {"kind": "transition", "key": f"a-{i}", "worker": "w1", "stimulus_id": "s-1"}
        part = {"action": "compute", "start": start, "stop": start + 0.004 + 1e-7 * i}
        records += [
            {**moved, "t": start, "start": "waiting", "finish": "processing"},
            {**moved, "t": start + 0.005, "start": "processing", "finish": "memory",
             "thread": 1, "startstops": [part]},
        ]  # fmt: skip
    page = open_page(report(records, "many"), accept_downloads=True)
    page.locator("#figure-timeline[data-state=drawn]").wait_for()

    rows = downloaded(page)
    single = [row for row in rows if row["what"] == "computation"]
    short = [row for row in rows if row["what"] == "short tasks"]
    total = sum(0.004 + 1e-7 * i for i in range(6000))

    assert len(single) == 5000
    assert sum(float(row["seconds"]) for row in single + short) == pytest.approx(
        total, rel=1e-3
    )
    note = page.locator("#figure-timeline figcaption").inner_text()
    assert "5,000 longest of 6,000" in note.replace("\N{NO-BREAK SPACE}", " ")


def test_it_is_drawn_anew_in_the_dark(page):
    before = page.locator(TOP).screenshot()
    page.locator("#theme").click()

    assert page.locator(TOP).screenshot() != before
