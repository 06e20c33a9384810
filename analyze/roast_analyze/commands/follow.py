"""A page in the terminal that follows a run while it is recorded: ``TRACE --follow``."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from roast_analyze.algorithms.progress import RATE_SECONDS, Amount, Progress
from roast_analyze.errors import TraceError
from roast_analyze.open.growing import GrowingTrace
from roast_analyze.report import quantities as q
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Time between two reads of the trace.
_INTERVAL_SECONDS: Final = 0.5

#: Time without a record after which the page says so: a recording has samples every second.
_SILENT_SECONDS: Final = 5.0

#: Number of rows of each table, and width of the bars.
_ROWS: Final = 8
_BAR: Final = 20


def follow(path: Path) -> None:
    """Show the progress of a run until its recording ends or the user presses q."""
    console = Console(highlight=False)
    if not (console.is_terminal and sys.stdin.isatty()):
        raise TraceError("--follow needs a terminal: leave it out for a summary")
    trace, progress, read_at = GrowingTrace(path), Progress(), time.monotonic()
    with _keys(), Live(console=console, auto_refresh=False, screen=False) as live:
        while True:
            for record in trace.records():
                if record is None:
                    progress = Progress()
                    continue
                progress.add(record)
                read_at = time.monotonic()
            live.update(page(path, progress, time.monotonic() - read_at), refresh=True)
            if progress.end_reason is not None or _is_pressed(b"q", _INTERVAL_SECONDS):
                return


@contextlib.contextmanager
def _keys() -> Iterator[None]:
    """Read keys as they are pressed, without showing them."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _is_pressed(key: bytes, seconds: float) -> bool:
    """Wait for some time; return early, and True, if a key is pressed."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        keyboard = sys.stdin.fileno()
        if select.select([keyboard], [], [], left)[0] and key in os.read(keyboard, 64):
            return True
    return False


def page(path: Path, run: Progress, silent_seconds: float = 0.0) -> RenderableType:
    """Return the page of a run."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in _facts(path, run, silent_seconds):
        grid.add_row(name, _text(text))
    parts: list[RenderableType] = [grid]
    if run.datasets:
        parts += ["", _amounts("dataset", run.datasets, run)]
    if run.prefixes:
        parts += ["", _amounts("prefix", run.prefixes, run)]
    for t, key, text in run.failures:
        after = q.seconds(t - run.start_t)
        parts.append(Text.assemble(("failed ", "red"), _text(f"{after} {key}: {text}", 150)))
    return Group(*parts)


def _text(text: str, limit: int = 400) -> Text:
    """Return text of a trace, which is not trusted: without control characters and markup."""
    return Text(one_line(text, limit))


def _facts(path: Path, run: Progress, silent_seconds: float) -> Iterator[tuple[str, str]]:
    yield "Trace", path.name or str(path)
    if not run.start_t:
        yield "", "no record yet; q leaves"
        return
    seconds = q.seconds(run.now - run.start_t)
    if run.end_reason is not None:
        yield "Ended", f"after {seconds}: {run.end_reason}"
    elif silent_seconds > _SILENT_SECONDS:
        yield (
            "Running",
            f"{seconds}; nothing was written for {q.seconds(silent_seconds)}; q leaves",
        )
    else:
        yield "Running", f"{seconds}; q leaves"
    tasks = run.tasks
    text = f"{q.count(tasks.done)} of {q.count(tasks.total)} done"
    numbers = (
        (tasks.failed, "failed"),
        (run.retried, "retried"),
        (len(run.processing), "assigned"),
    )
    text += "".join(f", {q.count(number)} {name}" for number, name in numbers if number)
    yield "Tasks", text + _rest(tasks, run)
    if run.datasets:
        events = sum(amount.rates(run.now, _begun(run))[1] for amount in run.datasets.values())
        done, total = (
            sum(getattr(amount, name) for amount in run.datasets.values())
            for name in ("done_events", "events")
        )
        yield "Events", f"{q.count(done)} of {q.count(total)}, {q.rate(events, 'events')} now"
    workers = list(run.workers.values())
    text = (
        f"{q.count(len(workers))} with {q.counted(sum(w.nthreads for w in workers), 'thread')}"
    )
    if run.left:
        text += f"; {q.count(run.joined)} joined, {q.count(run.left)} left"
    yield "Workers", text
    if memory := sum(worker.memory for worker in workers):
        limit = sum(worker.memory_limit for worker in workers)
        fullest = max(workers, key=lambda w: w.memory / (w.memory_limit or float("inf")))
        text = q.byte_size(memory) + (f" of {q.byte_size(limit)}" if limit else "")
        if fullest.memory_limit:
            share = q.share(fullest.memory / fullest.memory_limit)
            text += f"; the fullest worker, {fullest.name}, {share}"
        yield "Memory", text
    if run.processing and run.end_reason is None:
        key, assigned_t = next(iter(run.processing.items()))
        yield "Longest", f"{key} was assigned {q.seconds(run.now - assigned_t)} ago"
    if run.lost:
        yield (
            "Lost",
            f"{q.counted(run.lost.total(), 'record')} of {', '.join(sorted(run.lost))}",
        )


def _begun(run: Progress) -> float:
    return run.work_t if run.work_t is not None else run.start_t


def _rest(amount: Amount, run: Progress) -> str:
    """Return the rate and the expected end, while there is one."""
    if run.end_reason is not None or amount.done + amount.failed >= amount.total:
        return ""
    rate, _ = amount.rates(run.now, _begun(run))
    left = amount.left_seconds(run.now, _begun(run))
    end = f", {q.seconds(left)} left at the rate of the last {RATE_SECONDS:g} s" if left else ""
    return f"; {q.rate(rate, 'tasks')}{end}"


def _amounts(name: str, amounts: dict[str, Amount], run: Progress) -> Table:
    """Return the table of those that are not done, and then of the largest others."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(name, overflow="fold")
    for heading in ("done", "of", "", "failed", "per s", "left"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    in_order: Sequence[tuple[str, Amount]] = sorted(
        amounts.items(), key=lambda item: (item[1].done >= item[1].total, -item[1].total)
    )
    for of, amount in in_order[:_ROWS]:
        rate, _ = amount.rates(run.now, _begun(run))
        is_open = amount.done + amount.failed < amount.total and run.end_reason is None
        left = amount.left_seconds(run.now, _begun(run)) if is_open else None
        filled = round(_BAR * amount.done / max(amount.total, 1))
        table.add_row(
            _text(of, 60),
            q.count(amount.done),
            q.count(amount.total),
            "█" * filled + "·" * (_BAR - filled),
            q.count(amount.failed) if amount.failed else "",
            q.number(rate) if is_open and rate else "",
            "" if left is None else q.seconds(left),
        )
    if (more := len(in_order) - _ROWS) > 0:
        table.add_row(f"and {q.count(more)} more")
    return table
