"""Compare our report with Dask's for one run: ``make benchmark-performance-report``.

A cluster of worker processes computes several thousand interdependent tasks of five prefixes,
within ``distributed.performance_report`` and recorded. Both pages are opened in Chromium
without network. Their totals are compared with the true values: the client counts its results,
and each task returns the time that it measured itself.

Dask's page loads bokeh from a CDN. To show that it fails for this reason only, it is opened a
second time with those scripts served from the installed bokeh. Its totals cover only the last
tasks that the task stream keeps (``distributed.scheduler.dashboard.tasks.
task-stream-length``), rounded as displayed.
"""

from __future__ import annotations

import argparse
import html
import itertools
import logging
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import distributed
from distributed import Client, Future, LocalCluster

import roast_recorder
from page_latency import MainThread
from roast_analyze import Trace

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from chromium import launched

WORKERS, THREADS = 4, 2
TASK_SECONDS = 0.002
#: CPU time per second below which a page's main thread counts as idle.
RESTING_MS = 20.0
STREAM_LENGTH = "distributed.scheduler.dashboard.tasks.task-stream-length"


@dataclass(frozen=True)
class Totals:
    """Task counts of a run, and the compute time summed over all threads."""

    tasks: int
    compute_seconds: float
    tasks_by_prefix: dict[str, int] | None = None


@dataclass(frozen=True)
class Run:
    """Both pages of a run, and the totals that the client measured."""

    dask_page: Path
    our_page: Path
    truth: Totals


@dataclass(frozen=True)
class Shown:
    """Requests and contents of a page in the browser.

    Parameters
    ----------
    requests, failed_requests : int
        Network requests, without that of the file.
    characters : int
        Length of the visible text.
    charts : int
        Charts of at least 100 by 100 pixels, on the first tab that has any.
    """

    requests: int
    failed_requests: int
    characters: int
    charts: int


# Run


def read(_: int) -> float:
    return _busy()


def select(_: float) -> float:
    return _busy()


def merge(*_: float) -> float:
    return _busy()


def fit(_: float) -> float:
    return _busy()


def plot(_: float) -> float:
    return _busy()


def _busy() -> float:
    """Sleep, and return the measured seconds."""
    begun = time.time()
    time.sleep(TASK_SECONDS)
    return time.time() - begun


def submitted(client: Client, tasks: int) -> dict[str, list[Future]]:
    """Submit `tasks` tasks by prefix: 40 % read, 40 % select, the rest merge, fit and plot."""
    reads = client.map(read, range(tasks * 2 // 5), pure=False)
    selects = client.map(select, reads, pure=False)
    merges = client.map(merge, *(selects[first::4] for first in range(4)), pure=False)
    fits = client.map(fit, merges[::2], pure=False)
    left = tasks - sum(map(len, (reads, selects, merges, fits)))
    plots = client.map(plot, list(itertools.islice(itertools.cycle(fits), left)), pure=False)
    return {"read": reads, "select": selects, "merge": merges, "fit": fits, "plot": plots}


def recorded_run(tasks: int, folder: Path) -> Run:
    """Compute the tasks, recorded by roast and by Dask's report."""
    trace, dask_page = folder / "trace.jsonl.zst", folder / "dask.html"
    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=THREADS,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
        roast_recorder.record(client, trace),
        distributed.performance_report(filename=str(dask_page)),
    ):
        seconds = {
            prefix: client.gather(futures)
            for prefix, futures in submitted(client, tasks).items()
        }
    our_page = folder / "roast.html"
    with Trace(trace) as opened:
        opened.report(our_page)
    by_prefix = {prefix: len(results) for prefix, results in seconds.items()}
    truth = Totals(sum(by_prefix.values()), sum(map(sum, seconds.values())), by_prefix)
    return Run(dask_page, our_page, truth)


# Totals of the pages


def totals_of_dask(page: Path) -> Totals:
    """Read the totals of the summary, which is in the text of a script of the page."""
    text = html.unescape(page.read_text(encoding="utf-8"))
    tasks = re.search(r"number of tasks: (\d+)", text)
    compute = re.search(r"compute time: ([\d.]+[^<\\]*)", text)
    if tasks is None or compute is None:
        raise ValueError(f"{page.name} has no totals where other pages of Dask have them")
    return Totals(int(tasks[1]), seconds_of(compute[1]))


def seconds_of(text: str) -> float:
    """Parse a time as written by ``dask.utils.format_time``, like 1hr 2m or 3.50 ms."""
    of = {"d": 86400, "hr": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6}
    return sum(float(n) * of[unit] for n, unit in re.findall(r"([\d.]+) ?([a-z]+)", text))


def totals_of_ours(browser: Any, path: Path) -> Totals:
    """Read the task count of the verdict, and the counts and sums of the prefix table."""
    with _opened(browser) as page:
        page.goto(path.as_uri())
        tiles = dict(
            zip(
                page.locator(".tiles dt").all_inner_texts(),
                page.locator(".tiles b").all_inner_texts(),
                strict=True,
            )
        )
        columns = {
            name: page.locator("#table-prefixes tbody tr").evaluate_all(
                """(rows, name) => {
                  const heads = [...document.querySelectorAll("#table-prefixes th")];
                  const place = heads.findIndex((head) => head.dataset.column === name);
                  const cells = rows.map((row) => row.cells[place]);
                  return cells.map((cell) => cell.dataset.v ?? cell.innerText);
                }""",
                name,
            )
            for name in ("prefix", "tasks", "compute_seconds")
        }
    by_prefix = dict(zip(columns["prefix"], map(int, columns["tasks"]), strict=True))
    tasks = int(tiles["Tasks"].replace(",", ""))
    return Totals(tasks, sum(map(float, columns["compute_seconds"])), by_prefix)


# Rendering


def shown(browser: Any, path: Path, *, scripts_served: bool = False) -> Shown:
    """Open a page without network; if `scripts_served`, serve bokeh's scripts locally."""
    asked: list[str] = []
    failed: list[str] = []
    with _opened(browser) as page:
        if scripts_served:
            import bokeh

            scripts = Path(bokeh.__file__).parent / "server" / "static" / "js"

            def serve(route: Any) -> None:
                name = re.sub(r"-\d[\d.]*\d(?=\.)", "", route.request.url.rpartition("/")[2])
                headers = {"Access-Control-Allow-Origin": "*"}
                route.fulfill(path=scripts / name, headers=headers)

            page.route("https://cdn.bokeh.org/**", serve)
        page.on("request", lambda request: asked.append(request.url))
        page.on("requestfailed", lambda request: failed.append(request.url))
        page.goto(path.as_uri())
        _wait_for_rest(page)
        characters = page.evaluate(VISIBLE_CHARACTERS)
        charts = _charts(page)
        for tab in page.locator(".bk-tab").all():
            if not charts:
                tab.click()
                _wait_for_rest(page)
                charts = _charts(page)
    remote = [url for url in asked if url.startswith("http")]
    failed = [url for url in failed if url.startswith("http")]
    return Shown(len(remote), len(failed), characters, charts)


#: Includes the text of shadow trees, which bokeh uses and innerText ignores.
VISIBLE_CHARACTERS = """() => {
  const length = (node) => {
    if (node instanceof Text) return node.data.trim().length;
    if (node instanceof Element && !node.checkVisibility()) return 0;
    return [...node.childNodes, ...(node.shadowRoot ? [node.shadowRoot] : [])]
      .reduce((sum, child) => sum + length(child), 0);
  };
  return length(document.body);
}"""


def _charts(page: Any) -> int:
    boxes = [one.bounding_box() for one in page.locator("canvas, svg").all()]
    large = [box for box in boxes if box and min(box["width"], box["height"]) >= 100]
    # Both libraries draw a chart as several layers with the same bounding box.
    return len({tuple(box.values()) for box in large})


def _wait_for_rest(page: Any) -> None:
    """Wait until the main thread has been idle for two seconds.

    Polling is necessary because the pages have no common event for it.
    """
    thread = MainThread(page)
    resting = 0
    while resting < 2:
        before_ms = thread.cpu_ms()
        page.wait_for_timeout(1_000)
        resting = resting + 1 if thread.cpu_ms() - before_ms < RESTING_MS else 0


@contextmanager
def _opened(browser: Any) -> Iterator[Any]:
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    try:
        yield context.new_page()
    finally:
        context.close()


# Output


def table(browser: Any, run: Run) -> Iterator[str]:
    """Yield the lines of the table."""
    measured = [totals_of_dask(run.dask_page), totals_of_ours(browser, run.our_page), run.truth]
    theirs, ours = shown(browser, run.dask_page), shown(browser, run.our_page)
    helped = shown(browser, run.dask_page, scripts_served=True)
    yield "| | Dask's performance_report | roast's report | the client's count |"
    yield "| --- | ---: | ---: | ---: |"
    rows = [
        ("size of the page", _megabytes(run.dask_page), _megabytes(run.our_page), ""),
        ("requests to the network", theirs.requests, ours.requests, ""),
        (
            "… that failed without a network",
            theirs.failed_requests,
            ours.failed_requests,
            "",
        ),
        ("characters shown", theirs.characters, ours.characters, ""),
        ("charts drawn", theirs.charts, ours.charts, ""),
        ("… if bokeh's scripts were available", helped.charts, ours.charts, ""),
        ("tasks it can count", dask.config.get(STREAM_LENGTH), "all", ""),
        ("tasks", *(totals.tasks for totals in measured)),
        ("compute time", *(_seconds(totals, run.truth) for totals in measured)),
        ("tasks of each prefix", *(_prefixes(totals, run.truth) for totals in measured)),
    ]
    for name, *cells in rows:
        yield f"| {name} | " + " | ".join(map(_cell, cells)) + " |"


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _megabytes(page: Path) -> str:
    return f"{page.stat().st_size / 1e6:.2f} MB"


def _seconds(totals: Totals, truth: Totals) -> str:
    # Exceeds the time that the tasks measured by the overhead of calling them.
    more = totals.compute_seconds / truth.compute_seconds - 1
    return f"{totals.compute_seconds:.2f} s" + (f", {more:+.1%}" if totals is not truth else "")


def _prefixes(totals: Totals, truth: Totals) -> str:
    known = truth.tasks_by_prefix or {}
    if totals.tasks_by_prefix is None:
        return "not reported"
    right = sum(totals.tasks_by_prefix.get(name) == count for name, count in known.items())
    return f"{right} of {len(known)} right" if totals is not truth else f"{len(known)} prefixes"


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="roast-benchmark-") as folder:
        run = recorded_run(options.tasks, Path(folder))
        with sync_playwright() as playwright:
            browser = launched(playwright)
            lines = list(table(browser, run))
            browser.close()
    print(
        f"{options.tasks:,} tasks on {WORKERS} worker processes of {THREADS} threads; "
        f"distributed {distributed.__version__}.\n"
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
