"""Text and downloads of the timeline after each input, compared with the views."""

from collections import Counter

import pytest

from browser.pages import COLORS, downloaded, drag
from browser.records import task, worker
from roast_analyze.report.topics import memory
from roast_analyze.report.topics.timeline import task_stream

pytestmark = pytest.mark.browser

LANES = "#figure-timeline .timeline-content canvas"
TOP = "#figure-timeline .timeline-top canvas"
WHOLE_RUN = "94 task attempts in 18.8 s."


@pytest.fixture(scope="module")
def opened(open_page, report, coffea_trace):
    return open_page(
        report(coffea_trace, "coffea_failures"),
        folded=True,
        viewport={"width": 1280, "height": 900},
    )


@pytest.fixture(scope="module")
def bounded(open_page, report, coffea_trace):
    """The same run with lower limits, so that most of it is added up, merged or left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_stream, "MOST_KINDS", 2)
        patch.setattr(task_stream, "MOST_TRANSFERS", 2)
        patch.setattr(memory, "MAP_ROWS", 2)
        patch.setitem(task_stream.query.__kwdefaults__, "most_bars", 20)
        patch.setitem(task_stream.query.__kwdefaults__, "most_rows", 2)
        path = report(coffea_trace, "coffea_bounded")
    return open_page(path, folded=True)


@pytest.fixture
def page(opened):
    """Reset the page to the whole run, without filters."""
    opened.locator("#timeline").scroll_into_view_if_needed()
    for name in ("prefix", "dataset", "worker"):
        choose(opened, name, "all")
    choose(opened, "color", "prefix")
    opened.locator(LANES).press("Escape")
    opened.mouse.move(0, 0)
    return opened


def shown(page) -> str:
    return page.locator(".timeline-shown").inner_text().replace("\N{NO-BREAK SPACE}", " ")


def detail(page) -> str:
    return page.locator(".timeline-detail").inner_text()


def computations(page) -> list[dict]:
    rows = downloaded(page, "#figure-timeline")
    return [row for row in rows if row["what"] == "computation"]


def choose(page, name: str, text: str) -> None:
    page.locator(f"#figure-timeline [data-choose={name}]").select_option(label=text)


@pytest.mark.exhaustive
def test_everything_that_is_drawn_is_downloaded(page, trace):
    rows = downloaded(page, "#figure-timeline")
    of = {what: [row for row in rows if row["what"] == what] for what in
          {row["what"] for row in rows}}  # fmt: skip

    expected = trace.rows(
        "SELECT run.key, run.attempt, run.outcome, run.prefix, chunk.dataset, chunk.filename, "
        "run.compute_start_t FROM task_runs AS run LEFT JOIN chunks AS chunk "
        "USING (key, attempt) WHERE run.compute_start_t IS NOT NULL"
    )
    names = ("key", "attempt", "outcome", "prefix", "dataset", "filename")
    found = {tuple(row[name] for name in names): float(row["start_t"])
             for row in of["computation"]}  # fmt: skip
    assert found == {
        tuple("" if value is None else str(value) for value in about):
            pytest.approx(start_t, abs=2e-6)
        for *about, start_t in expected
    }  # fmt: skip
    [(failures, transfers, computing, busy)] = trace.rows(
        "SELECT (SELECT list(outcome) FROM task_runs "
        "WHERE outcome IN ('erred', 'retried', 'lost')), "
        "(SELECT count(*) FROM task_phases WHERE action = 'transfer'), "
        "(SELECT list(executing ORDER BY t) FROM concurrency), "
        "(SELECT list_sort(list(round(100 * utilization))) FROM utilization "
        "WHERE thread_seconds > 0)"
    )
    assert Counter(row["outcome"] for row in of["failure"]) == Counter(failures)
    assert len(of["transfer"]) == transfers
    values = [float(row["value"]) for row in of["tasks computing"]]
    assert values == pytest.approx(computing, abs=1e-3)
    assert sorted(float(row["value"]) for row in of["percent busy"]) == busy


@pytest.mark.exhaustive
def test_what_is_added_up_is_downloaded_and_filtered_too(bounded, trace):
    rows = downloaded(bounded, "#figure-timeline")
    workers = list({row["worker"] for row in rows if row["what"] == "computation"})
    moved = [row for row in rows if row["what"] in {"transfer", "short transfers"}]

    [(seconds,)] = trace.rows(
        "SELECT sum(transfer_seconds) FROM task_runs WHERE worker IN $workers",
        {"workers": workers},
    )
    assert sum(float(row["seconds"]) for row in moved) == pytest.approx(seconds, rel=0.01)
    assert {row["prefix"] for row in moved} == {""}
    names = {row["worker"] for row in rows if row["what"] == "percent busy"}
    assert names == {"worker 0 and 1 more", "worker 1 and 1 more"}
    # Transfers have no prefix, and are drawn only without filters.
    choose(bounded, "prefix", "SlowProcessor")
    kept = {row["what"] for row in downloaded(bounded, "#figure-timeline")}
    assert kept & {"transfer", "short transfers", "short tasks"} == {"short tasks"}
    choose(bounded, "prefix", "all")


def test_both_canvases_are_drawn_and_follow_the_theme_and_the_color_scheme(page):
    pictures = [page.locator(LANES).screenshot()]
    assert min(page.locator(canvas).evaluate(COLORS) for canvas in (LANES, TOP)) > 5

    choose(page, "color", "dataset")
    pictures.append(page.locator(LANES).screenshot())
    choose(page, "color", "prefix")
    page.locator("#theme").click()
    pictures.append(page.locator(LANES).screenshot())
    page.locator("#theme").click()

    assert len(set(pictures)) == 3


def test_a_drag_selects_a_time_range_and_a_double_click_the_whole_run(page):
    assert shown(page) == WHOLE_RUN
    assert page.locator("[data-zoom=all]").is_disabled()
    drag(page, LANES, 0.4, 0.6)
    selected = shown(page)
    assert selected.startswith("From ")
    assert 0 < len(computations(page)) < 60

    page.keyboard.down("Shift")
    drag(page, LANES, 0.6, 0.4)
    page.keyboard.up("Shift")
    moved = shown(page)
    assert moved != selected
    assert moved.rsplit(",", 1)[1] == selected.rsplit(",", 1)[1]  # the same duration

    drag(page, TOP, 0.3, 0.5)
    assert shown(page).startswith("From ")
    page.locator(LANES).dblclick(position={"x": 400, "y": 30})
    assert shown(page) == WHOLE_RUN


def test_buttons_keys_and_the_wheel_zoom_and_pan(page):
    page.locator("[data-zoom=in]").click()
    assert shown(page).startswith("From ")
    page.locator("[data-zoom=out]").click()
    assert shown(page) == WHOLE_RUN

    lanes = page.locator(LANES)
    seen = set()
    for key in ("+", "ArrowRight", "d", "w", "a", "-"):
        lanes.press(key)
        seen.add(shown(page))
    assert len(seen) == 6
    lanes.press("Escape")
    assert shown(page) == WHOLE_RUN

    # Letters work below the pointer too, and zoom around it.
    page.evaluate("document.activeElement.blur()")
    lanes.hover(position={"x": 300, "y": 30})
    page.keyboard.press("w")
    page.keyboard.press("w")
    assert shown(page).startswith("From 3.")
    page.keyboard.press("s")
    page.keyboard.press("s")
    assert shown(page) == WHOLE_RUN

    lanes.hover(position={"x": 600, "y": 30})
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.locator("[data-zoom=all]:enabled").click()
    assert shown(page) == WHOLE_RUN
    # Without Ctrl the wheel scrolls the page.
    before = page.evaluate("scrollY")
    lanes.hover(position={"x": 600, "y": 30})
    page.mouse.wheel(0, 200)
    page.wait_for_function("before => scrollY > before", arg=before)
    assert shown(page) == WHOLE_RUN


@pytest.mark.parametrize(
    ("select", "chosen", "condition"),
    [
        ("prefix", "reduce", "prefix = 'reduce'"),
        ("dataset", "QCD", "dataset = 'QCD'"),
        ("worker", "worker 0", "worker = (SELECT worker FROM workers WHERE name = '0')"),
    ],
)
def test_a_filter_selects_the_attempts_of_the_view(page, trace, select, chosen, condition):
    choose(page, select, chosen)

    expected = trace.rows(
        "SELECT run.key, compute_seconds FROM task_runs AS run LEFT JOIN "
        "(SELECT key, attempt, dataset FROM chunks) AS chunk USING (key, attempt) "
        f"WHERE compute_start_t IS NOT NULL AND {condition}"
    )
    assert Counter(row["key"] for row in computations(page)) == Counter(k for k, _ in expected)
    parts = shown(page).removeprefix("Selected: ").removesuffix(" of the total.").split(", ")
    if select != "worker":
        assert parts.pop(0) == f"{len(expected)} attempts"
    [number, unit] = parts[0].removesuffix(" of compute time").split()
    seconds = float(number) * {"ms": 1e-3, "s": 1.0}[unit]
    assert seconds == pytest.approx(sum(s for _, s in expected), rel=0.01)


@pytest.mark.exhaustive
def test_a_filter_of_attempts_that_are_not_drawn_is_exact_or_a_lower_bound(bounded, trace):
    [(attempts, seconds)] = trace.rows(
        "SELECT count(*), sum(compute_seconds) FROM task_runs WHERE prefix = 'SlowProcessor'"
    )
    choose(bounded, "prefix", "SlowProcessor")
    counted = f"Selected: {attempts} attempts, {seconds:.1f} s of compute time, "
    assert shown(bounded).startswith(counted)
    # Some of its attempts may be of a kind with several datasets.
    choose(bounded, "dataset", "TTbar")
    assert shown(bounded).startswith("Selected: at least 24 attempts, ")

    # Outcomes are not recorded of what is added up.
    choose(bounded, "prefix", "all")
    choose(bounded, "dataset", "all")
    bounded.locator("[data-toggle=failed]").click()
    assert shown(bounded).startswith("Selected: at least ")
    bounded.locator(TOP).hover(position={"x": 600, "y": 60})
    assert "at least 0 of the selected tasks" in bounded.locator(".timeline-tip").inner_text()
    bounded.locator("[data-toggle=failed]").click()


@pytest.mark.parametrize(
    ("color", "entry", "entries"),
    [
        ("prefix", "reduce", ["SlowProcessor", "automatic_retries", "reduce", "lambda"]),
        ("dataset", "QCD", ["TTbar", "DYJets", "QCD"]),
    ],
)
def test_the_legend_names_and_filters_what_has_colors(page, color, entry, entries):
    choose(page, "color", color)
    shown_entries = page.locator("#figure-timeline [data-legend]:visible")
    assert shown_entries.all_inner_texts() == entries

    button = shown_entries.filter(has_text=entry)
    select = page.locator(f"#figure-timeline [data-choose={color}]")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert select.locator("option:checked").inner_text() == entry
    button.click()
    assert (button.get_attribute("aria-pressed"), shown(page)) == ("false", WHOLE_RUN)


@pytest.mark.parametrize(
    ("color", "entry", "condition"),
    [
        ("file", "QCD_1.root", lambda row: row["filename"].endswith("QCD_1.root")),
        ("outcome", "retried", lambda row: row["outcome"] == "retried"),
    ],
)
def test_the_legend_of_files_and_outcomes_filters_attempts(page, color, entry, condition):
    expected = [row["key"] for row in computations(page) if condition(row)]
    choose(page, "color", color)
    page.locator("#figure-timeline [data-legend]:visible", has_text=entry).click()

    assert expected
    assert [row["key"] for row in computations(page)] == expected
    choose(page, "color", "prefix")
    assert shown(page) == WHOLE_RUN


def test_a_link_shows_the_same_view_in_another_browser(page, chromium):
    choose(page, "dataset", "QCD")
    choose(page, "color", "file")
    drag(page, LANES, 0.7, 0.9)
    page.locator(LANES).press("n")
    page.wait_for_url("**#timeline:*mark=*")

    # And a malformed view, which is the first one.
    other = chromium.new_context(offline=True, viewport={"width": 1280, "height": 900})
    for address, expected in (
        (page.url, (shown(page), detail(page), computations(page))),
        (f"{page.url.partition('#')[0]}#timeline:from=x&worker=99&color=no&bar=-1", None),
    ):
        copy = other.new_page()
        copy.goto(address)
        copy.locator("html[data-state=drawn]").wait_for(state="attached")
        if expected:
            assert (shown(copy), detail(copy), computations(copy)) == expected
            drawn = "canvas => canvas.toDataURL()"
            assert copy.locator(LANES).evaluate(drawn) == page.locator(LANES).evaluate(drawn)
        else:
            assert shown(copy) == WHOLE_RUN
    other.close()


@pytest.mark.exhaustive
def test_dependencies_and_states_of_workers_are_drawn(open_page, report):
    first, second = task("a-1", 0.0, 2.0), task("b-1", 3.0, 4.0)
    second[0]["dependencies"] = ["a-1"]
    paused = {"action": "worker-status-change", "status": "paused"}
    pause = {"kind": "event", "t": 2.5, "topic": "w1", "worker": "w1", "payload": paused}
    records = [worker(), *first, pause, *second]
    page = open_page(report(records, "paused"), folded=True)
    plain = page.locator(LANES).screenshot()
    for x, lines in ((250, "dashed to 1 dependent"), (1000, "from 1 dependency")):
        page.locator(LANES).click(position={"x": x, "y": 10})
        assert f"lines {lines} in view" in detail(page)
    page.locator(LANES).press("Escape")
    assert page.locator(LANES).screenshot() != plain  # the outline of the focus

    choose(page, "color", "worker state")
    legend = page.locator("#figure-timeline [data-legend]:visible")
    assert legend.all_inner_texts() == ["running", "paused"]
    legend.last.click()
    assert [row["key"] for row in computations(page)] == ["b-1"]


def test_failed_attempts_are_filtered_and_visited(page, trace):
    failed = "outcome IN ('erred', 'retried', 'lost')"
    toggle = page.locator("[data-toggle=failed]")
    toggle.click()
    outcomes = {row["outcome"] for row in computations(page)}
    assert outcomes
    assert outcomes <= {"erred", "retried", "lost"}
    toggle.click()

    keys = trace.rows(
        f"SELECT key FROM task_runs WHERE {failed} ORDER BY coalesce(compute_stop_t, end_t)"
    )
    for key, failure in (("n", 0), ("n", 1), ("p", 0)):
        page.locator(LANES).press(key)
        assert keys[failure][0] in detail(page)


def test_a_bar_shows_task_file_and_worker_and_a_click_keeps_them(page, trace):
    choose(page, "dataset", "QCD")
    choose(page, "worker", "worker 0")
    [(key, filename)] = trace.rows(
        "SELECT key, chunks.filename "
        "FROM task_runs INNER JOIN chunks USING (key, attempt, worker) "
        "WHERE dataset = 'QCD' AND worker = (SELECT worker FROM workers WHERE name = '0') "
        "ORDER BY task_runs.compute_seconds DESC LIMIT 1"
    )
    box = page.locator(LANES).bounding_box()
    tip = page.locator(".timeline-tip")
    for x in range(80, int(box["width"]) - 10, 8):
        page.mouse.move(box["x"] + x, box["y"] + box["height"] / 2)
        if tip.is_visible() and key in tip.inner_text():
            break

    for text in (f"QCD: {filename}, entries", "compute time", "worker 0"):
        assert text in tip.inner_text()
    page.mouse.down()
    page.mouse.up()
    assert key in detail(page)


@pytest.mark.exhaustive
def test_the_later_of_bars_that_overlap_is_described_with_days_and_dates(open_page, report):
    day = 86400.0
    records = [worker(), *task("outer-1", 0.0, 4 * day), *task("inner-1", day, 3 * day)]
    page = open_page(report(records, "days"), viewport={"width": 1280, "height": 900})
    page.locator(LANES).hover(position={"x": 640, "y": 8})

    assert page.locator(".timeline-tip").inner_text().splitlines()[:3] == [
        "inner",
        "inner-1",
        "compute time 2 d, started at 1 d (1970-01-02 00:00:00 UTC), attempt 1",
    ]


def test_paper_has_the_lanes_that_were_drawn_and_no_space_for_others(page):
    content, canvas = (page.locator(name) for name in (".timeline-content", LANES))
    page.emulate_media(media="print")
    # As if most lanes were scrolled out of a view that is wider than the paper.
    content.evaluate("content => { content.style.height = '3000px'; }")
    canvas.evaluate("canvas => { canvas.style.width = '3000px'; }")

    for side in ("width", "height"):
        drawn = canvas.bounding_box()[side]
        assert content.bounding_box()[side] == pytest.approx(drawn, abs=1)
    page.emulate_media(media="screen")


def test_the_overview_shows_tasks_computing_and_utilization(page):
    box = page.locator(TOP).bounding_box()
    for y, text in ((60, "tasks computing on"), (95, "% busy")):
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + y)
        assert text in page.locator(".timeline-tip").inner_text()


#: Selects a prefix before the page's own scripts run, as a browser does that restores a page;
#: and records what has been drawn when the overview is.
RESTORED = """new MutationObserver((changes) => {
  const select = document.querySelector("#figure-timeline [data-choose=prefix]");
  const option = select && [...select.options].find((one) => one.text === "reduce");
  if (option && !window.overview) select.value = option.value;
  for (const { target } of changes) {
    if (window.overview || !target.matches?.(".timeline-top[data-state]")) continue;
    const pixels = target.querySelector("canvas").getContext("2d").getImageData(0, 0, 900, 80);
    window.overview = {
      colors: new Set(new Uint32Array(pixels.data.buffer)).size,
      whole: document.querySelector("figure.timeline").dataset.state ?? "",
    };
  }
}).observe(document, { subtree: true, childList: true, attributeFilter: ["data-state"] });"""


@pytest.mark.exhaustive
def test_the_overview_is_drawn_first_and_restored_filters_apply_to_the_lanes(
    page, open_page, report, coffea_trace
):
    choose(page, "prefix", "reduce")
    restored = open_page(report(coffea_trace, "coffea_failures"), script=RESTORED)

    assert restored.evaluate("overview.whole") == ""
    assert restored.evaluate("overview.colors") > 5
    assert shown(restored) == shown(page)
