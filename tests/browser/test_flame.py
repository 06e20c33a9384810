"""Boxes of the flame graph after each input, as ``figure.shownRows()`` returns them."""

import pytest

from browser.pages import COLORS, downloaded, drag
from browser.records import worker

pytestmark = pytest.mark.browser

ROW_PX = 19
GRAPH = ".flame-content canvas"
STRIP = ".flame-strip canvas"
DASK = "/env/lib/python3.11/site-packages/distributed/worker.py"
NUMPY = "/env/lib/python3.11/site-packages/numpy/core.py"
MINE = "/home/me/analysis.py"


def frame(name: str, filename: str = MINE, line: int = 1) -> dict:
    return {"name": name, "filename": filename, "line_number": line}


def profile(chain: list[dict], counts: dict[int, int], leaves: int = 1, **about) -> dict:
    """Return a profile of one stack; `counts` has the number of samples in each second.

    On workers, Dask does not count innermost functions: with two leaves, it is not recorded
    which was sampled. On the scheduler, it counts them.
    """
    inner = len(chain) - leaves
    counted = inner if "worker" in about else len(chain)
    depth = range(1, len(chain) + 1)
    nodes = [0, *depth]
    parents = [None, *(min(node - 1, inner) for node in depth)]
    return {
        "kind": "profile", "t": 9.0, "start_t": 0.0, "stop_t": 9.0,
        "interval_seconds": 0.01, "server_id": "i", **about,
        "tree": {
            "frames": chain, "parents": parents, "node_frames": [0, *range(len(chain))],
            "slices": [
                {"start_t": second, "stop_t": second + 1, "nodes": nodes,
                 "counts": [count if node <= counted else 0 for node in nodes]}
                for second, count in counts.items()
            ],
        },
    }  # fmt: skip


EXECUTE, KERNEL = frame("execute", DASK, 2900), frame("kernel", NUMPY, 7)
#: 100 samples of two workers: 60 in spin_a, 30 in spin_b, 10 in mixed; and 5 of the scheduler.
RECORDS = [
    worker("w1"),
    worker("w2"),
    profile([EXECUTE, frame("spin_a"), KERNEL], {0: 30, 1: 30}, worker="w1", prefix="first"),
    profile(
        [EXECUTE, frame("spin_b", line=5), KERNEL], {2: 20, 3: 10}, worker="w2", prefix="second"
    ),
    profile(
        [EXECUTE, frame("mixed", line=9), frame("left"), frame("right")], {3: 10}, 2,
        worker="w2", prefix="third",
    ),
    profile([frame("loop", DASK), frame("poll", "<frozen select>")], {0: 5}),
]  # fmt: skip
SPIN_A = [("execute/spin_a", 60, 0), ("execute/spin_a/kernel", 60, 60)]
ALL = [
    ("execute", 100, 0),
    ("execute/mixed", 10, 8),
    ("execute/spin_a", 60, 0),
    ("execute/spin_b", 30, 0),
    ("execute/mixed/(one of several)", 8, 8),
    ("execute/mixed/left", 1, 1),
    ("execute/mixed/right", 1, 1),
    ("execute/spin_a/kernel", 60, 60),
    ("execute/spin_b/kernel", 30, 30),
]


@pytest.fixture(scope="module")
def opened(open_page, report):
    return open_page(report(RECORDS, "flame"), viewport={"width": 1280, "height": 900})


@pytest.fixture
def page(opened):
    """Reset the page to all samples of the workers."""
    opened.locator("figure.flame[data-state=drawn]").scroll_into_view_if_needed()
    opened.locator(".flame [data-choose=worker]").select_option("all workers")
    opened.locator(".flame [data-choose=prefix]").select_option("all prefixes")
    for button in opened.locator(".flame [data-toggle][aria-pressed=true]").all():
        button.click()
    opened.locator(".flame input").fill("")
    opened.locator(STRIP).press("Escape")
    opened.evaluate("document.querySelector('.flame-crumbs button')?.click()")
    opened.mouse.move(0, 0)
    assert boxes(opened) == ALL
    return opened


def boxes(page) -> list[tuple]:
    """Return names with times in hundredths of a second, that is, samples.

    The times are total and self time; in the inverted graph, only total time.
    """
    rows = page.evaluate("document.querySelector('figure.flame').shownRows()")[1:]
    return [
        ("/".join(part.split(" (")[0] or part for part in row[0].split(";")),
         *(round(seconds * 100) for seconds in row[3:]))
        for row in rows
    ]  # fmt: skip


def names(page) -> list[str]:
    return [name for name, *_ in boxes(page)]


def shown(page) -> str:
    return page.locator(".flame-shown").inner_text()


def crumbs(page) -> list[str]:
    return page.locator(".flame-crumbs li").all_inner_texts()


def detail(page) -> str:
    return page.locator(".flame-detail").inner_text()


def at(page, across: float, row: int) -> dict:
    box = page.locator(GRAPH).bounding_box()
    return {"x": box["width"] * across, "y": row * ROW_PX + ROW_PX / 2}


def click(page, across: float, row: int) -> None:
    page.locator(GRAPH).click(position=at(page, across, row))


def toggle(page, name: str) -> None:
    page.locator(f".flame [data-toggle={name}]").click()


def picture(page) -> str:
    return page.evaluate("document.querySelector('.flame-content canvas').toDataURL()")


@pytest.mark.exhaustive
def test_a_worker_a_prefix_and_the_scheduler_are_selected(page):
    workers, prefixes = (
        page.locator(f".flame [data-choose={n}]") for n in ("worker", "prefix")
    )
    assert shown(page) == "1 s, 100 samples."
    assert workers.locator("option").all_inner_texts() == [
        "all workers", "w1", "w2", "scheduler",
    ]  # fmt: skip

    workers.select_option("w2")
    assert shown(page) == "400 ms, 40 samples."
    prefixes.select_option("second")
    assert shown(page) == "300 ms, 30 samples."
    assert boxes(page)[-1] == ("execute/spin_b/kernel", 30, 30)
    prefixes.select_option("first")
    assert (shown(page), boxes(page)) == ("No samples in this selection.", [])
    workers.select_option("scheduler")
    assert boxes(page) == [("loop", 5, 0), ("loop/poll", 5, 5)]
    assert prefixes.is_disabled()
    toggle(page, "fold")
    assert boxes(page) == [("(none of your code)", 5, 5)]
    workers.select_option("all workers")


@pytest.mark.exhaustive
def test_a_time_range_is_selected_and_cleared(page):
    drag(page, STRIP, 0.05, 0.45)
    assert shown(page) == "600 ms, 60 samples; 60 % of the total, from 0 s to 2 s."
    assert boxes(page) == [("execute", 60, 0), *SPIN_A]

    drag(page, STRIP, 0.9, 0.6)
    assert shown(page) == "400 ms, 40 samples; 40 % of the total, from 2 s to 4 s."
    page.locator(STRIP).dblclick(position={"x": 30, "y": 10})
    assert shown(page) == "1 s, 100 samples."


def test_a_click_zooms_and_the_breadcrumbs_zoom_out(page):
    click(page, 0.4, 2)
    assert boxes(page) == [("execute", 100, 0), *SPIN_A]
    assert crumbs(page) == ["all", "execute", "spin_a"]
    # The zoomed function fills the width.
    page.locator(GRAPH).hover(position=at(page, 0.95, 3))
    assert page.locator(".flame-tip").inner_text().startswith("kernel")

    # The zoom is kept when other samples are selected, if they contain the function.
    drag(page, STRIP, 0.05, 0.2)
    assert names(page) == ["execute", "execute/spin_a", "execute/spin_a/kernel"]
    drag(page, STRIP, 0.8, 0.9)
    assert "execute/spin_b" in names(page)
    page.locator(STRIP).press("Escape")
    page.locator(".flame-crumbs button").first.click()
    assert boxes(page) == ALL


def test_a_search_counts_and_highlights_what_it_finds(page):
    plain = picture(page)
    field = page.locator(".flame input")
    field.fill("SPIN_")
    assert shown(page) == "1 s, 100 samples; 2 functions found, in 90 % of the time (900 ms)."
    assert picture(page) != plain
    field.fill("numpy")
    assert "1 function found, in 90 % of the time" in shown(page)
    field.fill("spin_[b")
    assert "0 functions found" in shown(page)
    toggle(page, "regex")
    assert shown(page) == "1 s, 100 samples; invalid regular expression."
    assert field.get_attribute("aria-invalid") == "true"
    field.fill("^spin_[b]|^left")
    assert "2 functions found, in 31 % of the time (310 ms)" in shown(page)
    field.fill("")
    assert picture(page) == plain


def test_inverted_puts_the_innermost_functions_on_top(page):
    toggle(page, "inverted")
    assert boxes(page) == [
        ("(one of several)", 8), ("kernel", 90), ("left", 1), ("right", 1),
        ("(one of several)/mixed", 8), ("kernel/spin_a", 60), ("kernel/spin_b", 30),
        ("left/mixed", 1), ("right/mixed", 1),
        ("(one of several)/mixed/execute", 8), ("kernel/spin_a/execute", 60),
        ("kernel/spin_b/execute", 30), ("left/mixed/execute", 1), ("right/mixed/execute", 1),
    ]  # fmt: skip
    click(page, 0.5, 1)
    assert crumbs(page) == ["all", "kernel"]
    assert names(page) == [
        "kernel", "kernel/spin_a", "kernel/spin_b", "kernel/spin_a/execute",
        "kernel/spin_b/execute",
    ]  # fmt: skip
    page.locator(GRAPH).hover(position=at(page, 0.3, 2))
    tip = page.locator(".flame-tip").inner_text()
    assert "self time of the innermost function, called from here 600 ms: 60 %" in tip


def test_a_sandwich_has_callers_above_and_callees_below(page):
    # Of no selected function, that with the most self time.
    toggle(page, "sandwich")
    assert shown(page) == "Callers above and callees below kernel; 1 s, 100 samples."
    assert boxes(page) == [
        ("execute/spin_a/kernel", 60), ("execute/spin_b/kernel", 30),
        ("spin_a/kernel", 60), ("spin_b/kernel", 30), ("kernel", 90),
    ]  # fmt: skip
    page.locator(GRAPH).hover(position=at(page, 0.3, 1))
    tip = page.locator(".flame-tip").inner_text()
    assert "time of kernel, called through here 600 ms: 60 %" in tip

    # From one function to the next: up to a caller, and down to a callee.
    canvas = page.locator(GRAPH)
    for key, center in (("Enter", "kernel"), ("ArrowUp", ""), ("Enter", "spin_a")):
        if center != "kernel":
            canvas.press(key)
        assert center in crumbs(page)[0]
    assert boxes(page) == [("execute/spin_a", 60), ("spin_a", 60), ("spin_a/kernel", 60)]
    click(page, 0.5, 0)
    assert crumbs(page) == ["execute"]
    toggle(page, "sandwich")
    click(page, 0.05, 2)
    toggle(page, "sandwich")
    assert boxes(page)[:2] == [("execute/mixed", 10), ("mixed", 10)]


def test_functions_are_sorted_by_time_and_libraries_folded(page):
    toggle(page, "heavy")
    assert names(page)[1:4] == ["execute/spin_a", "execute/spin_b", "execute/mixed"]
    click(page, 0.1, 2)
    assert boxes(page) == [("execute", 100, 0), *SPIN_A]
    page.locator(".flame-crumbs button").first.click()
    toggle(page, "heavy")

    toggle(page, "fold")
    assert boxes(page) == [
        ("mixed", 10, 8), ("spin_a", 60, 60), ("spin_b", 30, 30),
        ("mixed/(one of several)", 8, 8), ("mixed/left", 1, 1), ("mixed/right", 1, 1),
    ]  # fmt: skip


def test_the_tooltip_reports_total_self_and_ambiguous_time(page):
    canvas, tip = page.locator(GRAPH), page.locator(".flame-tip")
    canvas.hover(position=at(page, 0.05, 2))
    assert tip.inner_text().splitlines() == [
        "mixed",
        f"{MINE}:9",
        "total time 100 ms: 10 % of what is shown",
        (
            "self time 80 ms: 8.0 %; "
            "80 ms of it is ambiguous: in one of several functions that it calls"
        ),
        "all calls of this function: total time 100 ms, self time 80 ms",
    ]
    canvas.hover(position=at(page, 0.04, 3))
    assert tip.inner_text().startswith("(one of several)")
    page.mouse.move(0, 0)
    assert tip.is_hidden()


def test_the_keyboard_moves_zooms_and_selects_a_time_range(page):
    canvas, strip = page.locator(GRAPH), page.locator(STRIP)
    for key, function in (
        ("ArrowDown", "all"),
        ("ArrowDown", "execute"),
        ("ArrowDown", "spin_a"),
        ("ArrowRight", "spin_b"),
        ("ArrowUp", "execute"),
        ("ArrowDown", "spin_a"),
    ):
        canvas.press(key)
        assert detail(page).startswith(function)
    assert f"spin_a ({MINE}:1): total time 600 ms: 60 % of what is shown" in detail(page)
    canvas.press("Enter")
    assert boxes(page) == [("execute", 100, 0), *SPIN_A]
    canvas.press("Escape")
    canvas.press("Escape")
    assert boxes(page) == ALL

    for key, selected in (
        ("ArrowRight", "from 0 s to 1 s."),
        ("ArrowRight", "from 1 s to 2 s."),
        ("Shift+ArrowRight", "from 1 s to 3 s."),
        ("ArrowLeft", "from 0 s to 2 s."),
        ("Escape", "1 s, 100 samples."),
    ):
        strip.press(key)
        assert shown(page).endswith(selected)


def test_boxes_and_functions_are_listed(page):
    rows = downloaded(page, "#figure-flame")
    assert len(rows) == len(ALL)
    assert rows[0] == {
        "stack": "execute (worker.py:2900)", "function": "execute", "file": f"{DASK}:2900",
        "total_seconds": "1", "self_seconds": "0",
    }  # fmt: skip
    functions = downloaded(page, "#table-functions")
    assert functions[0]["function"] == f"kernel ({NUMPY}:7)"
    assert float(functions[0]["self_seconds"]) == pytest.approx(0.9)


@pytest.mark.exhaustive
def test_it_is_drawn_in_the_colors_of_the_theme(page):
    before = picture(page)
    page.locator("#theme").click()
    dark = picture(page)
    page.locator("#theme").click()

    assert page.locator(GRAPH).evaluate(COLORS) > 5
    assert before != dark
