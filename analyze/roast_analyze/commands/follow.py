"""A page in the terminal that follows a run while it is recorded: ``TRACE --follow``."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from roast_analyze.algorithms.progress import Progress
from roast_analyze.errors import TraceError
from roast_analyze.open.growing import GrowingTrace
from roast_analyze.report import live as texts
from roast_analyze.report import quantities as q
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roast_analyze.algorithms.progress import Amount

#: Time between two reads of the trace.
_INTERVAL_SECONDS: Final = 0.5

#: Number of rows of each table, and width of the bars.
_ROWS: Final = 8
_BAR: Final = 20


def follow(path: Path) -> None:
    """Show the progress of a run until its recording ends or the user presses q."""
    console = Console(highlight=False)
    if not (console.is_terminal and sys.stdin.isatty()):
        raise TraceError("--follow needs a terminal: leave it out for a summary")
    trace, progress = GrowingTrace(path), Progress()
    # What is there already was written before.
    changed_at, is_first = time.monotonic() - _age_seconds(path), True
    with _keys(), Live(console=console, auto_refresh=False, screen=False) as live:
        while True:
            for record in trace.records():
                if record is None:
                    progress = Progress()
                    continue
                progress.add(record)
                if not is_first:
                    changed_at = time.monotonic()
            is_first = False
            live.update(page(path, progress, time.monotonic() - changed_at), refresh=True)
            if progress.end_reason is not None or _is_pressed(b"q", _INTERVAL_SECONDS):
                return


def _age_seconds(path: Path) -> float:
    """Return the time since the last change of a file, or of the files in a folder."""
    try:
        files = [*path.iterdir()] if path.is_dir() else [path]
        return max(time.time() - max(file.stat().st_mtime for file in files), 0.0)
    except (OSError, ValueError):  # not there yet, or an empty folder
        return 0.0


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
    name, text = texts.state(run, silent_seconds)
    yield name, text if run.end_reason is not None else f"{text}; q leaves"
    yield from texts.facts(run)


def _amounts(name: str, amounts: Mapping[str, Amount], run: Progress) -> Table:
    """Return the table of those that are not done, and then of the largest others."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(name, overflow="fold")
    done, of, *others = texts.HEADINGS
    for heading in (done, of, "", *others):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    for row in islice(texts.amounts(amounts, run), _ROWS):
        filled = round(_BAR * row.share)
        bar = "█" * filled + "·" * (_BAR - filled)
        table.add_row(
            _text(row.name, 60), row.done, row.total, bar, row.failed, row.rate, row.left
        )
    if (more := len(amounts) - _ROWS) > 0:
        table.add_row(f"and {q.count(more)} more")
    return table
