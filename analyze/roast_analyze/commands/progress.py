"""Progress bar on stderr, shown after a delay and only in a terminal."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roast_analyze.open.database import Listener

#: A shorter wait needs no progress bar.
DELAY_SECONDS = 2.0


@contextlib.contextmanager
def progress(name: str, stage: str, *, measured: bool = True) -> Iterator[Listener]:
    """Show the progress of the block.

    Parameters
    ----------
    name : str
        Name of the trace.
    stage : str
        Name of the first stage.
    measured : bool
        Whether the listener will be called; if not, the bar only pulses.

    Yields
    ------
    Listener
        To be called with the stage and its finished share, from 0 to 1.
    """
    if not sys.stderr.isatty():
        yield lambda _stage, _share: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from roast_analyze.safe_text import visible

    columns = (TextColumn("{task.description}"), BarColumn())
    share = (TaskProgressColumn(),) if measured else ()
    bars = Progress(*columns, *share, console=Console(stderr=True), transient=True)
    bar = bars.add_task(escape(visible(f"{name}: {stage}")), total=1.0 if measured else None)

    def listener(stage: str, share: float) -> None:
        bars.update(bar, description=escape(visible(f"{name}: {stage}")), completed=share)

    timer = threading.Timer(DELAY_SECONDS, bars.start)
    timer.daemon = True
    timer.start()
    try:
        yield listener
    finally:
        timer.cancel()
        timer.join()
        bars.stop()
