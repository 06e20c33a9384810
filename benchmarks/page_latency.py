"""Measure how long a report takes to open in Chromium, and to respond to input.

A page is opened from a file, without network, in a new browser context without caches. Input
is sent through the browser's process, like that of a user. Times are in milliseconds. Each is
accompanied by the CPU time of the page's main thread, which depends little on other processes:
on a busy machine it distinguishes a slow page from one that waited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

NOTES = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
VIEWPORT = {"width": 1440, "height": 900}
TIMEOUT_MS = 120_000

HOVERED_PLACES = 12
WHEEL_TURNS = (-240, -240, -240, 240, 240, 240)
DRAGS = 2
#: The keys leave few rows, then none, then all of them again.
SEARCHED = ("e", "r", "~", "Backspace", "Backspace", "Backspace")
OPTIONS_CHOSEN = 3
SORTED_COLUMNS = 3


@dataclass(frozen=True)
class Opening:
    """Milliseconds from the start of the navigation until charts are displayed.

    Parameters
    ----------
    first_ms : float
        Until the first chart: computing tasks and utilization of workers.
    figure_ms : float
        Until the first complete figure: the timeline with all its lanes.
    all_ms : float
        Until all charts are drawn.
    cpu_ms : float
        CPU time of the main thread until then.
    """

    first_ms: float
    figure_ms: float
    all_ms: float
    cpu_ms: float


@dataclass(frozen=True)
class Latency:
    """Latency of an input, measured in three ways.

    Parameters
    ----------
    frame_ms : float
        From the input to the second animation frame after it, including all pending tasks.
    event_ms : float
        Longest ``event`` entry, as used by Interaction to Next Paint; 0 below 16 ms. Pointer
        moves and wheel events have none, but the ``pointerenter`` events they cause do.
    task_ms : float
        Longest ``longtask`` up to 250 ms after that frame; 0 below 50 ms.
    cpu_ms : float
        CPU time of the main thread until then.
    failure : str
        Error message if the latency could not be measured.
    """

    frame_ms: float = 0.0
    event_ms: float = 0.0
    task_ms: float = 0.0
    cpu_ms: float = 0.0
    failure: str = ""

    @property
    def worst_ms(self) -> float:
        """Longest of the three latencies (wall time)."""
        return max(self.frame_ms, self.event_ms, self.task_ms)


@dataclass(frozen=True)
class Input:
    """An input to a page.

    Parameters
    ----------
    event : str
        Type of the event that is timed.
    bring_about : callable
        Sends the input.
    before : int
        Number of events of this type that it causes before the one that is timed.
    """

    event: str
    bring_about: Callable[[], Any]
    before: int = 0


class MainThread:
    """CPU time of a page's main thread, as measured by the browser."""

    def __init__(self, page: Any) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def cpu_ms(self) -> float:
        """Return the milliseconds of CPU time in tasks since the page was created."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration") * 1e3


@contextmanager
def opened(browser: Any, path: Path) -> Iterator[tuple[Any, MainThread, Opening]]:
    """Open a page and wait until all of it is drawn."""
    context = browser.new_context(offline=True, viewport=VIEWPORT)
    try:
        context.set_default_timeout(TIMEOUT_MS)
        context.add_init_script(NOTES)
        page = context.new_page()
        thread = MainThread(page)
        before_ms = thread.cpu_ms()
        page.goto(path.as_uri())
        noted = page.evaluate("latency.opening")
        spent_ms = thread.cpu_ms() - before_ms
        took = Opening(noted["firstMs"], noted["figureMs"], noted["allMs"], spent_ms)
        yield page, thread, took
    finally:
        context.close()


def opening(browser: Any, path: Path) -> Opening:
    """Open a page once; return the times of its charts."""
    with opened(browser, path) as (_, _, took):
        return took


def interactions(browser: Any, path: Path) -> dict[str, Latency]:
    """Send the inputs of a user to a page; return the worst latency of each kind."""
    from playwright.sync_api import Error

    worst = {}
    with opened(browser, path) as (page, thread, _):
        for name, inputs in _gestures(page):
            try:
                seen = [_latency(page, thread, act) for act in inputs]
            except Error as error:
                worst[name] = Latency(failure=error.message.splitlines()[0])
                continue
            worst[name] = Latency(
                max(one.frame_ms for one in seen),
                max(one.event_ms for one in seen),
                max(one.task_ms for one in seen),
                max(one.cpu_ms for one in seen),
            )
    return worst


def _latency(page: Any, thread: MainThread, act: Input) -> Latency:
    page.evaluate(
        "([type, before]) => { latency.expect(type, before); }", [act.event, act.before]
    )
    before_ms = thread.cpu_ms()
    act.bring_about()
    frame_ms, event_ms, task_ms = page.evaluate("latency.took()")
    return Latency(frame_ms, event_ms, task_ms, thread.cpu_ms() - before_ms)


# Inputs


def _gestures(page: Any) -> Iterator[tuple[str, Iterator[Input]]]:
    place = _plotting_area(page, TIMELINE)
    # A zigzag from left to right, so that the pointer crosses many lanes.
    places = [place((i + 0.5) / HOVERED_PLACES, (i * 0.37) % 1) for i in range(HOVERED_PLACES)]
    moves = (Input("pointermove", partial(page.mouse.move, *there)) for there in places)
    yield "hover over the timeline", moves
    page.mouse.move(*place(0.5, 0.5))
    turns = (Input("wheel", partial(page.mouse.wheel, 0, turn)) for turn in WHEEL_TURNS)
    yield "wheel over the timeline", turns
    for name in _names(page, "figure.timeline, figure.plot"):
        yield f"zoom into {name} and out", _zoom(page, f"#figure-{name}")
    for name in _names(page, "figure:is(:has(select), :has(input[type=search]))"):
        yield f"controls of {name}", _controls(page, f"#figure-{name}")
    if tables := _names(page, "div.table"):
        largest = max(tables, key=lambda name: page.locator(f"#table-{name} tbody tr").count())
        yield "filter the longest table", _search(page, f"#table-{largest} input[type=search]")
        yield "sort the longest table", _sort(page, f"#table-{largest}")


#: Both selectors match the timeline, which is the first such figure of the page.
TIMELINE = "figure:is(.timeline, .plot)"


def _names(page: Any, selector: str) -> list[str]:
    return page.locator(selector).evaluate_all("all => all.map(one => one.dataset.name)")


def _zoom(page: Any, figure: str) -> Iterator[Input]:
    for _ in range(DRAGS):
        place = _plotting_area(page, figure)
        page.mouse.move(*place(0.3, 0.5))
        yield Input("pointerdown", page.mouse.down)
        for share in (0.4, 0.5, 0.6):
            yield Input("pointermove", partial(page.mouse.move, *place(share, 0.5)))
        yield Input("pointerup", page.mouse.up)
        # Plotly suppresses the browser's dblclick event: time the second pointerup instead.
        yield Input("pointerup", partial(page.mouse.dblclick, *place(0.5, 0.5)), before=1)


def _controls(page: Any, figure: str) -> Iterator[Input]:
    for chooser in page.locator(f"{figure} select").all():
        options = chooser.locator("option").count()
        # Finally choose the first option again, which selects everything.
        for i in [*range(1, min(options, OPTIONS_CHOSEN + 1)), 0]:
            yield Input("change", partial(chooser.select_option, index=i))
    if page.locator(f"{figure} input[type=search]").count():
        yield from _search(page, f"{figure} input[type=search]")


def _search(page: Any, box: str) -> Iterator[Input]:
    page.locator(box).first.click()
    for key in SEARCHED:
        yield Input("input", partial(page.keyboard.press, key))


def _sort(page: Any, table: str) -> Iterator[Input]:
    # Columns in which all rows have the same value are hidden.
    for heading in page.locator(f"{table} th button:visible").all()[:SORTED_COLUMNS]:
        # Scroll first, so that scrolling is not measured.
        heading.scroll_into_view_if_needed()
        yield Input("click", heading.click)


def _plotting_area(page: Any, figure: str) -> Callable[[float, float], tuple[float, float]]:
    """Scroll to a figure; return a function that maps shares of its visible area to pixels."""
    left, top, width, height = page.locator(figure).first.evaluate(
        """figure => {
          const size = ({ width, height }) => width * height;
          const areas = [...figure.querySelectorAll(".nsewdrag, canvas")].sort(
            (a, b) => size(b.getBoundingClientRect()) - size(a.getBoundingClientRect()));
          const area = areas[0] ?? figure;
          area.scrollIntoView({ block: "center", behavior: "instant" });
          const box = area.getBoundingClientRect();
          const top = Math.max(box.top, 0);
          return [box.left, top, box.width, Math.min(box.bottom, innerHeight) - top];
        }"""
    )
    # Avoid the edges, which contain plotly's drag handles or are covered by the navigation.
    return lambda x, y: (left + width * (0.1 + 0.8 * x), top + height * (0.1 + 0.8 * y))
