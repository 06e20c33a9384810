"""Progress bar on stderr, shown after a delay and only in a terminal."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from roast_analyze.safe_text import visible

if TYPE_CHECKING:
    from roast_analyze.open.database import Listener

#: A shorter wait needs no progress bar.
DELAY_SECONDS = 2.0


@contextlib.contextmanager
def progress(name: str, stage: str, *, measured: bool = True) -> Iterator[Listener]:
    """Show the progress of the block; yield a listener for the stage and its share, 0 to 1.

    If the progress is not `measured`, the listener is never called, and the bar only pulses.
    """
    if not sys.stderr.isatty():
        yield lambda _stage, _share: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn())
    share = (TaskProgressColumn(),) if measured else ()
    bars = Progress(*columns, *share, console=Console(stderr=True), transient=True)
    bar = bars.add_task(escape(visible(f"{name}: {stage}")), total=1.0 if measured else None)

    def listener(stage: str, share: float) -> None:
        bars.update(bar, description=escape(visible(f"{name}: {stage}")), completed=share)

    # A bar that disappears at once would only flicker.
    timer = threading.Timer(DELAY_SECONDS, bars.start)
    timer.daemon = True
    timer.start()
    try:
        yield listener
    finally:
        timer.cancel()
        timer.join()  # it may be starting the bar
        bars.stop()
