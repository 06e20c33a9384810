"""Measure time and memory of the analysis by trace size: ``make benchmark-analyze``.

One table compares DuckDB's typed scan of the same file, its table of all records on disk, a
Python loop, the reader of Polars, and roast_analyze. Each measurement is a separate process and
includes the start of Python; peak memory is reported by the system. The files are synthetic
traces (see :mod:`synthetic`), created if missing.

Cold means without roast's cache: ``ROAST_CACHE_DIR`` is a new folder each time. Warm means
with it. The page cache of the system is always warm: each file is read once beforehand.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIRST_QUERY = "SELECT start, finish, count(*) FROM transitions GROUP BY ALL"
READERS = Path(__file__).with_name("analyze_readers.py")

#: Growth is computed from this number of tasks on; below, the start of Python dominates.
GROWTH_FROM_TASKS = 100_000
#: Larger traces are measured once, because a repetition takes minutes.
REPEATED_UP_TO_TASKS = 100_000
REPETITIONS = 3


# Measurement


@dataclass(frozen=True)
class Row:
    """A row of the table: a command to measure.

    Parameters
    ----------
    name : str
    command : callable
        Returns the command line, given the trace and the scratch folder.
    cache : str
        ``fresh``: an empty cache each time; ``kept``: a filled cache; ``none``: the command
        uses no cache.
    inner : str
        Name of an additional row with the seconds that the process prints, if any.
    prepare : callable, optional
        Called once with trace and scratch folder before the measurements.
    """

    name: str
    command: Callable[[Path, Path], list[str]]
    cache: str = "none"
    inner: str = ""
    prepare: Callable[[Path, Path], None] | None = None


@dataclass(frozen=True)
class Cost:
    """Cost of a process; `failure` is the last line of its stderr if it failed."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    printed: str = ""
    failure: str = ""


def rows(memory_limit: str | None, hta_python: str | None = None) -> list[Row]:
    """Return the rows of the table; the first is the baseline."""

    limit = ("--memory-limit", memory_limit) if memory_limit else ()

    def here(name: str, *more: str) -> Callable[[Path, Path], list[str]]:
        return lambda trace, _: [sys.executable, str(READERS), name, str(trace), *more]

    def ours(*words: str) -> Callable[[Path, Path], list[str]]:
        def command(trace: Path, scratch: Path) -> list[str]:
            places = {"TRACE": str(trace), "REPORT": str(scratch / "report.html")}
            filled = [places.get(word, word) for word in words]
            return [sys.executable, "-m", "roast_analyze", *filled, *limit]

        return command

    first = ours("sql", "TRACE", FIRST_QUERY, "--format", "csv")
    compared = [
        Row("DuckDB's typed scan", here("duckdb_scan")),
        Row("DuckDB's table of all records", here("duckdb_table")),
        Row("plain orjson loop", here("orjson_loop")),
        Row("polars' scan", here("polars_scan")),
        Row("roast: first query, cold", first, "fresh"),
        Row("roast: first query, warm", first, "kept"),
        Row(
            "roast: totals of task_runs, warm",
            here("roast_aggregate", *limit),
            "kept",
            inner="… the query alone, once open",
        ),
        Row("roast: summary, cold", ours("TRACE"), "fresh"),
        Row("roast: summary, warm", ours("TRACE"), "kept"),
        Row("roast: report, cold", ours("TRACE", "--html", "REPORT"), "fresh"),
    ]
    return compared if hta_python is None else [*compared, _hta_row(hta_python)]


def _hta_row(python: str) -> Row:
    """Return the row of HolisticTraceAnalysis, on the same tasks as Chrome trace events."""

    def prepare(trace: Path, scratch: Path) -> None:
        from chrome_events import write_chrome_events

        write_chrome_events(trace, scratch / "events.json")

    def command(_: Path, scratch: Path) -> list[str]:
        return [python, str(READERS), "hta_totals", str(scratch / "events.json")]

    return Row("HTA: totals by name, converted before", command, prepare=prepare)


class Measurement:
    """Costs of all rows on one trace, with a folder for caches and reports.

    Parameters
    ----------
    trace, scratch : path
    """

    def __init__(self, trace: Path, scratch: Path) -> None:
        self._trace = trace
        self._scratch = scratch
        self._kept = scratch / "kept"
        self._primed: set[str] = set()
        self._is_cacheless = False  # versions of roast without a cache need no priming
        self.costs: defaultdict[str, list[Cost]] = defaultdict(list)

    def take(self, row: Row) -> None:
        """Measure a row once."""
        if row.cache == "kept" and row.name not in self._primed and not self._is_cacheless:
            self._primed.add(row.name)
            self._process(row, self._kept)
            self._is_cacheless = not self._kept.exists()
        with tempfile.TemporaryDirectory(dir=self._scratch) as fresh:
            cost = self._process(row, self._kept if row.cache == "kept" else Path(fresh))
        self.costs[row.name].append(cost)
        _say(f"{self._trace.name}: {row.name}: {cost.failure or _cell(cost, cost)}")
        if row.inner and not cost.failure:
            self.costs[row.inner].append(Cost(float(cost.printed), 0.0, 0))

    def _process(self, row: Row, cache: Path) -> Cost:
        command = row.command(self._trace, self._scratch)
        environment = {**os.environ, "ROAST_CACHE_DIR": str(cache)}
        with (
            tempfile.TemporaryFile(dir=self._scratch) as out,
            tempfile.TemporaryFile(dir=self._scratch) as said,
        ):
            start = time.perf_counter()
            process = subprocess.Popen(command, stdout=out, stderr=said, env=environment)
            # wait4 reports this child alone; the resource module sums up all children.
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            printed, words = _text_of(out), _text_of(said)
        failure = ""
        if process.returncode:
            failure = (words.splitlines() or [f"exit code {process.returncode}"])[-1]
        cpu_seconds = usage.ru_utime + usage.ru_stime
        return Cost(seconds, cpu_seconds, usage.ru_maxrss * 1024, printed, failure)


def _text_of(file: Any) -> str:
    file.seek(0)
    return file.read(10_000).decode(errors="replace").strip()


def measured(
    trace: Path, compared: list[Row], repetitions: int, scratch: Path
) -> dict[str, Cost]:
    """Return the median cost of each row, measured in alternating order to share noise."""
    # Fill the page cache, so that the first row does not pay for it.
    for file in sorted(trace.iterdir()) if trace.is_dir() else [trace]:
        with file.open("rb") as content:
            while content.read(2**24):
                pass
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        measurement = Measurement(trace, Path(folder))
        for row in compared:
            if row.prepare:
                row.prepare(trace, Path(folder))
        for repetition in range(repetitions):
            for row in compared[:: -1 if repetition % 2 else 1]:
                measurement.take(row)
    medians = {}
    for name, costs in measurement.costs.items():
        failed = [cost for cost in costs if cost.failure]
        medians[name] = failed[0] if failed else Cost(
            statistics.median(cost.seconds for cost in costs),
            statistics.median(cost.cpu_seconds for cost in costs),
            max(cost.peak_bytes for cost in costs),
        )  # fmt: skip
    return medians


def _say(text: str) -> None:
    """Print progress to stderr."""
    print(text, file=sys.stderr, flush=True)


# Output


def growth(seconds_by_tasks: dict[int, float]) -> float | None:
    """Return b of seconds = a · tasks^b by a least-squares fit of the logarithms."""
    points = [
        (math.log(tasks), math.log(seconds))
        for tasks, seconds in seconds_by_tasks.items()
        if tasks >= GROWTH_FROM_TASKS
    ]
    if len(points) < 2:
        return None
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def table(costs: dict[int, dict[str, Cost]], names: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the table: wall time, ratio to the baseline, CPU time, memory."""
    sizes = sorted(costs)
    names = list(names)
    yield "| | " + " | ".join(f"{tasks:,} tasks" for tasks in sizes) + " | growth |"
    yield "| --- |" + " ---: |" * (len(sizes) + 1)
    for name in names:
        of_row = {tasks: costs[tasks][name] for tasks in sizes if name in costs[tasks]}
        cells = [
            _cell(of_row[tasks], costs[tasks][names[0]]) if tasks in of_row else "–"
            for tasks in sizes
        ]
        exponent = growth({n: cost.seconds for n, cost in of_row.items() if not cost.failure})
        shown = "–" if exponent is None else f"n^{exponent:.2f}"
        yield f"| {name} | " + " | ".join(cells) + f" | {shown} |"


def _cell(cost: Cost, baseline: Cost) -> str:
    if cost.failure:
        return f"failed: {cost.failure[:60].replace('|', '/')}"
    parts = [f"{cost.seconds:.2f} s", f"{cost.seconds / baseline.seconds:.2f} ×"]
    if cost.peak_bytes:
        parts += [f"{cost.cpu_seconds:.1f} s CPU", f"{cost.peak_bytes / 2**20:,.0f} MiB"]
    return ", ".join(parts)


def ensure_trace(folder: Path, tasks: int, workers: int, ending: str) -> Path:
    """Return a trace with a number of tasks; create it if missing."""
    path = folder / f"synthetic-{tasks}-{workers}{ending}"
    if not path.exists():
        from synthetic import make_trace

        _say(f"making {path.name}")
        unfinished = path.with_name(f"unfinished-{path.name}")
        make_trace(unfinished, tasks=tasks, workers=workers)
        unfinished.rename(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--tasks", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], metavar="N"
    )
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument(
        "--folder", type=Path, help="folder of the traces: 2.6 GB per million tasks"
    )
    parser.add_argument(
        "--ending",
        default=".jsonl",
        help="suffix of the traces; .jsonl.zst takes a tenth of the space",
    )
    parser.add_argument("--memory-limit", metavar="SIZE", help="passed to roast-analyze")
    parser.add_argument(
        "--rows",
        nargs="+",
        metavar="WORD",
        help="measure only rows that contain one of the words",
    )
    parser.add_argument(
        "--repetitions",
        type=int,
        help="repetitions per row (default: 3 up to 100,000 tasks, then 1)",
    )
    parser.add_argument(
        "--hta-python", metavar="PYTHON", help="a Python with HolisticTraceAnalysis"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="roast-benchmark-") as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        _print_results(options, folder, Path(scratch))


def _print_results(options: argparse.Namespace, folder: Path, scratch: Path) -> None:
    compared = rows(options.memory_limit, options.hta_python)
    if options.rows:
        wanted = compared[1:]
        compared = compared[:1] + [
            row for row in wanted if any(word in row.name for word in options.rows)
        ]
    load = os.getloadavg()[0]
    costs: dict[int, dict[str, Cost]] = {}
    sizes = []
    for tasks in sorted(options.tasks):
        trace = ensure_trace(folder, tasks, options.workers, options.ending)
        files = list(trace.iterdir()) if trace.is_dir() else [trace]
        mebibytes = sum(file.stat().st_size for file in files) / 2**20
        sizes.append(f"{tasks:,} tasks are {mebibytes:,.0f} MiB")
        few = tasks <= REPEATED_UP_TO_TASKS
        repetitions = options.repetitions or (REPETITIONS if few else 1)
        costs[tasks] = measured(trace, compared, repetitions, scratch)
        if options.folder is None:
            shutil.rmtree(trace) if trace.is_dir() else trace.unlink()
    names = [name for row in compared for name in (row.name, row.inner) if name]
    limit = f", memory limit {options.memory_limit}" if options.memory_limit else ""
    print(
        f"{os.cpu_count()} CPUs, load {load:.1f} when it began{limit}; {options.workers} "
        f"workers; {'; '.join(sizes)}.\n"
        "Wall time of whole processes, ratio to the first row, CPU time, peak memory; growth "
        f"of the wall time from {GROWTH_FROM_TASKS:,} tasks on.\n"
        "The page cache is warm; a cold roast has no cache of its own.\n"
    )
    print("\n".join(table(costs, names)))


if __name__ == "__main__":
    main()
