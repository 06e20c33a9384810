"""A page in the terminal that follows a run while it is recorded: ``TRACE --follow``."""

from __future__ import annotations

import contextlib
import glob
import math
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

from roast_analyze.commands.trace_args import is_store
from roast_analyze.errors import NotATrace, TraceError, TraceNotFound
from roast_analyze.open.discover import group_by_trace, read_segment, segment_paths
from roast_analyze.open.foreign import describe
from roast_analyze.open.names import SUFFIXES
from roast_analyze.output_paths import STDIN
from roast_analyze.report import live as texts
from roast_analyze.report import quantities as q
from roast_analyze.safe_text import one_line
from roast_analyze.server.following import Following

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roast_analyze.algorithms.progress import Amount, Progress

#: Time between two reads of the trace.
_INTERVAL_SECONDS: Final = 0.5

#: Number of rows of each table, and width of the bars.
_ROWS: Final = 8
_BAR: Final = 20


def follow(name: str) -> None:
    """Show the progress of a run until its recording has ended or the user presses q.

    Raises
    ------
    TraceError
        If the name is not that of one trace, or of one that can begin there.
    """
    console = Console(highlight=False)
    paths = paths_of(name)
    if not (console.is_terminal and sys.stdin.isatty()):
        raise TraceError("--follow needs a terminal: leave it out for a summary")
    path, following = Path(name), Following(*paths)
    # What is there already was written before.
    changed_at = time.monotonic() - min(map(_age_seconds, paths))
    following.read(math.inf)
    with _keys(), Live(console=console, auto_refresh=False, screen=False) as live:
        while True:
            if not following.progress.start_t:
                require_record(paths)
            silence = following.silence(time.monotonic() - changed_at)
            live.update(page(path, following.progress, silence), refresh=True)
            has_ended = following.has_ended or silence.has_writer is False
            if has_ended or _is_pressed(b"q", _INTERVAL_SECONDS):
                return
            known = following.records
            following.read(math.inf)
            if following.records > known:
                changed_at = time.monotonic()


def paths_of(name: str) -> tuple[Path, ...]:
    """Return the paths of the only trace with a name; it need not exist yet.

    Raises
    ------
    TraceError
        If the name is that of something else, or of several traces.
    """
    path = Path(name)
    if name == STDIN or path.is_fifo():
        shown = "standard input" if name == STDIN else repr(name)
        raise TraceError(
            f"--follow cannot read {shown} as it grows: name the file that is recorded, or "
            "leave --follow out"
        )
    if is_store(name):
        raise TraceError(f"{name!r} is a store: name a trace that is recorded for --follow")
    # Without a path, `http://` is no URL that is downloaded.
    if not (path.exists() or glob.has_magic(name) or "://" in name):
        if not path.absolute().parent.is_dir():
            raise TraceNotFound(
                f"--follow waits for {name!r}, but the folder {str(path.parent)!r} does not "
                "exist: create it, or correct the name"
            )
        return (path,)
    entries = [path] if path.is_file() else [*path.iterdir()] if path.is_dir() else []
    files = [file for file in entries if file == path or file.name.endswith(SUFFIXES)]
    if path.exists() and not any(file.stat().st_size for file in files or entries):
        return (path,)  # nothing was written yet
    traces = group_by_trace([path])
    if len(traces) > 1:
        raise TraceError(
            f"{name!r} is {len(traces)} traces: name one for --follow, such as "
            f"{str(traces[-1][0])!r}"
        )
    return traces[0] if path.exists() else tuple(segment_paths(path))


def require_record(paths: tuple[Path, ...]) -> None:
    """Raise NotATrace if a file without a record is not the beginning of a trace."""
    for path in paths:
        if path.is_file():
            segment = read_segment(path, path)
            if segment.schema_version is None and not (segment.begins_well or segment.empty):
                what = describe(path) or "contains no records: name a trace recorded by roast"
                raise NotATrace(f"{str(path)!r} {what}")


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


def page(path: Path, run: Progress, silence: texts.Silence) -> RenderableType:
    """Return the page of a run."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in _facts(path, run, silence):
        grid.add_row(name, _text(text))
    parts: list[RenderableType] = [grid]
    if run.datasets:
        parts += ["", _amounts("dataset", run.datasets, run, silence)]
    if run.prefixes:
        parts += ["", _amounts("prefix", run.prefixes, run, silence)]
    for t, key, text in run.failures:
        after = q.seconds(t - run.start_t)
        parts.append(Text.assemble(("failed ", "red"), _text(f"{after} {key}: {text}", 150)))
    return Group(*parts)


def _text(text: str, limit: int = 400) -> Text:
    """Return text of a trace, which is not trusted: without control characters and markup."""
    return Text(one_line(text, limit))


def _facts(path: Path, run: Progress, silence: texts.Silence) -> Iterator[tuple[str, str]]:
    yield "Trace", path.name or str(path)
    if not run.start_t:
        missing = (
            "" if path.exists() or glob.has_magic(str(path)) else ": there is no such file"
        )
        yield "", f"no record yet{missing}; q leaves"
        return
    name, text = texts.state(run, silence)
    yield name, text if name == "Ended" else f"{text}; q leaves"
    yield from texts.facts(run, silence)


def _amounts(
    name: str, amounts: Mapping[str, Amount], run: Progress, silence: texts.Silence
) -> Table:
    """Return the table of those that are not done, and then of the largest others."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(name, overflow="fold")
    done, of, *others = texts.HEADINGS
    for heading in (done, of, "", *others):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    for row in islice(texts.amounts(amounts, run, silence), _ROWS):
        filled = round(_BAR * row.share)
        bar = "█" * filled + "·" * (_BAR - filled)
        table.add_row(
            _text(row.name, 60), row.done, row.total, bar, row.failed, row.rate, row.left
        )
    if (more := len(amounts) - _ROWS) > 0:
        table.add_row(f"and {q.count(more)} more")
    return table
