"""Measure time and memory of reports by trace size: ``make benchmark-report``.

One table for synthetic traces of each size (see :mod:`synthetic`), with limits:

- The size of the page.
- The time and memory to create it without roast's cache, compared with DuckDB's typed scan of
  the same trace (see :mod:`analyze_speed`).
- The time to open it in Chromium, from a file and without network: medians of new contexts,
  alternately with the page of the smallest trace.
- The latency of inputs: the maximum of several inputs of each kind, measured in three ways
  (see :class:`page_latency.Latency`), of which the longest counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analyze_speed import (
    GROWTH_FROM_TASKS,
    REPEATED_UP_TO_TASKS,
    REPETITIONS,
    Cost,
    Row,
    ensure_trace,
    measured,
    rows,
)
from page_latency import Latency, Opening, interactions, opening

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from chromium import launched

# Bounds of a report.
PAGE_BYTES = 4_000_000
MADE_SCANS, MADE_SCANS_AIM = 8.0, 5.0
OPENING_RATIO = 1.3
#: Web Vitals rates an Interaction to Next Paint up to this value as good.
INTERACTION_MS = 200.0

OPENINGS = 5


@dataclass
class Report:
    """Measurements of the report of one trace.

    Parameters
    ----------
    tasks, page_bytes : int
    scan, made : Cost
        Costs of DuckDB's scan of the trace and of creating the page.
    openings : list of Opening
    latencies : dict
        Worst latency by kind of input.
    """

    tasks: int
    page_bytes: int
    scan: Cost
    made: Cost
    openings: list[Opening] = field(default_factory=list)
    latencies: dict[str, Latency] = field(default_factory=dict)

    @property
    def first_ms(self) -> float:
        """Median time to the first chart."""
        return statistics.median(one.first_ms for one in self.openings)

    @property
    def figure_ms(self) -> float:
        """Median time to the first complete figure."""
        return statistics.median(one.figure_ms for one in self.openings)

    @property
    def all_ms(self) -> float:
        """Median time until all is drawn."""
        return statistics.median(one.all_ms for one in self.openings)

    @property
    def opening_cpu_ms(self) -> float:
        """Median CPU time of the main thread until all is drawn."""
        return statistics.median(one.cpu_ms for one in self.openings)


# Measurement


def make_report(trace: Path, tasks: int, page: Path, repetitions: int, scratch: Path) -> Report:
    """Create the page of a trace; measure that and DuckDB's scan.

    Raises
    ------
    RuntimeError
        If one of the two processes failed.
    """
    scan = rows(memory_limit=None)[0]
    make = Row(
        "roast: report, cold",
        lambda trace, _: [
            sys.executable, "-m", "roast_analyze", str(trace), "--html", str(page)
        ],
        "fresh",
    )  # fmt: skip
    costs = measured(trace, [scan, make], repetitions, scratch)
    for name, cost in costs.items():
        if cost.failure:
            raise RuntimeError(f"{trace.name}: {name}: {cost.failure}")
    return Report(tasks, page.stat().st_size, costs[scan.name], costs[make.name])


def read_reports(browser: Any, reports: dict[Path, Report], openings: int) -> None:
    """Open the pages, in alternating order to share noise, and measure their inputs."""
    for page in reports:
        opening(browser, page)  # the first opening includes the start of the browser
    for turn in range(openings):
        for page in list(reports)[:: -1 if turn % 2 else 1]:
            reports[page].openings.append(opening(browser, page))
    for page, report in reports.items():
        _say(f"{report.tasks:,} tasks: {report.all_ms:,.0f} ms to open; measuring interactions")
        report.latencies = interactions(browser, page)


def _say(text: str) -> None:
    """Print progress to stderr."""
    print(text, file=sys.stderr, flush=True)


# Output


@dataclass(frozen=True)
class Line:
    """A line of the table.

    Parameters
    ----------
    name, bound : str
    shown : callable
        Returns the text of a report's cell.
    kept : callable, optional
        Whether a report is within the bound; None if the bound does not apply.
    """

    name: str
    bound: str
    shown: Callable[[Report], str]
    kept: Callable[[Report], bool | None] = lambda _: None


def table(reports: list[Report]) -> Iterator[str]:
    """Yield the lines of the table; ✗ marks a value beyond its limit."""
    yield "| | limit | " + " | ".join(f"{one.tasks:,} tasks" for one in reports) + " | passed |"
    yield "| --- | --- |" + " ---: |" * len(reports) + " --- |"
    for line in _lines(reports):
        kept = [line.kept(one) for one in reports]
        cells = [
            line.shown(one) + (" ✗" if is_kept is False else "")
            for one, is_kept in zip(reports, kept, strict=True)
        ]
        judged = [is_kept for is_kept in kept if is_kept is not None]
        holds = ("yes" if all(judged) else "no") if judged else ""
        yield f"| {line.name} | {line.bound} | {' | '.join(cells)} | {holds} |"


def _lines(reports: list[Report]) -> Iterator[Line]:
    smallest = min(reports, key=lambda one: one.tasks)
    yield Line(
        "size of the page",
        f"≤ {PAGE_BYTES / 1e6:.0f} MB",
        lambda one: f"{one.page_bytes / 1e6:.2f} MB",
        lambda one: one.page_bytes <= PAGE_BYTES,
    )
    yield Line("DuckDB's typed scan", "", lambda one: _cost(one.scan))
    largest = max(reports, key=lambda one: one.tasks)
    yield Line(
        "making the page",
        "≤ the largest",
        lambda one: _cost(one.made),
        lambda one: one.made.seconds <= largest.made.seconds,
    )
    yield Line(
        "… times the scan",
        f"≤ {MADE_SCANS:.0f} ×, aim {MADE_SCANS_AIM:.0f} ×",
        lambda one: (
            f"{_scans(one):.1f} ×, {one.made.cpu_seconds / one.scan.cpu_seconds:.1f} × CPU"
        ),
        lambda one: _scans(one) <= MADE_SCANS if one.tasks >= GROWTH_FROM_TASKS else None,
    )
    for name, milliseconds in OPENED.items():
        base = milliseconds(smallest)
        yield Line(
            name,
            f"≤ {OPENING_RATIO:.1f} × the smallest",
            lambda one, of=milliseconds, base=base: (
                f"{of(one):,.0f} ms, {of(one) / base:.2f} ×"
            ),
            lambda one, of=milliseconds, base=base: of(one) <= OPENING_RATIO * base,
        )
    cpu_ms = smallest.opening_cpu_ms
    yield Line(
        "… CPU of its main thread",
        "",
        lambda one: f"{one.opening_cpu_ms:,.0f} ms, {one.opening_cpu_ms / cpu_ms:.2f} ×",
    )
    for name in dict.fromkeys(name for one in reports for name in one.latencies):
        yield Line(
            name,
            f"≤ {INTERACTION_MS:.0f} ms",
            lambda one, name=name: _latency(one.latencies.get(name)),
            lambda one, name=name: (
                (seen := one.latencies.get(name))
                and not seen.failure
                and seen.worst_ms <= INTERACTION_MS
            ),
        )
    yield Line(
        "Interaction to Next Paint, the worst",
        f"≤ {INTERACTION_MS:.0f} ms",
        lambda one: f"{_paint_ms(one):.0f} ms",
        lambda one: _paint_ms(one) <= INTERACTION_MS,
    )


#: Times of an opening, by row of the table.
OPENED: dict[str, Callable[[Report], float]] = {
    "opening, first chart": lambda one: one.first_ms,
    "opening, all of the timeline": lambda one: one.figure_ms,
    "opening, all drawn": lambda one: one.all_ms,
}


def _cost(cost: Cost) -> str:
    memory = f"{cost.peak_bytes / 2**20:,.0f} MiB"
    return f"{cost.seconds:.2f} s, {cost.cpu_seconds:.1f} s CPU, {memory}"


def _scans(report: Report) -> float:
    return report.made.seconds / report.scan.seconds


def _latency(latency: Latency | None) -> str:
    if latency is None:
        return "–"
    if latency.failure:
        return f"failed: {latency.failure[:60].replace('|', '/')}"
    return f"{latency.worst_ms:,.0f} ms, {latency.cpu_ms:,.0f} ms CPU"


def _paint_ms(report: Report) -> float:
    return max((one.event_ms for one in report.latencies.values()), default=0.0)


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--tasks", type=int, nargs="+", default=[1_000, 100_000, 1_000_000], metavar="N"
    )
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument(
        "--folder", type=Path, help="folder of the traces: 2.6 GB per million tasks"
    )
    parser.add_argument(
        "--repetitions",
        type=int,
        help="repetitions of creating a report (default: 3 up to 100,000 tasks, then 1)",
    )
    parser.add_argument("--openings", type=int, default=OPENINGS)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="roast-benchmark-") as folder,
        sync_playwright() as playwright,
    ):
        browser = launched(playwright)
        reports = _reports(options, Path(folder))
        read_reports(browser, reports, options.openings)
        chromium = browser.version
        browser.close()
    print(
        f"{os.cpu_count()} CPUs, load {load:.1f} when it began; {options.workers} workers; "
        f"Chromium {chromium}, from a file, no network.\n"
        f"Openings are medians of {options.openings} fresh contexts; of inputs the worst "
        "counts. CPU is of the page's\nmain thread and depends little on other load; "
        "the bounds are on wall times.\n"
        f"The bound relative to the scan applies from {GROWTH_FROM_TASKS:,} tasks on: below, "
        "most of the time is the start of Python.\n"
    )
    print("\n".join(table(list(reports.values()))))


def _reports(options: argparse.Namespace, scratch: Path) -> dict[Path, Report]:
    folder = options.folder or scratch
    folder.mkdir(parents=True, exist_ok=True)
    reports = {}
    for tasks in sorted(options.tasks):
        trace = ensure_trace(folder, tasks, options.workers, ".jsonl")
        few = tasks <= REPEATED_UP_TO_TASKS
        repetitions = options.repetitions or (REPETITIONS if few else 1)
        page = scratch / f"report-{tasks}.html"
        reports[page] = make_report(trace, tasks, page, repetitions, scratch)
        if options.folder is None:
            trace.unlink()
    return reports


if __name__ == "__main__":
    main()
