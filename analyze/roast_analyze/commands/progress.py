"""Progress bar on stderr, shown after a delay and only in a terminal."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from roast_analyze.safe_text import visible
from roast_schemas.urls import safe_message

if TYPE_CHECKING:
    from rich.progress import Progress

    from roast_analyze.open.database import Listener

#: A shorter wait needs no progress bar.
DELAY_SECONDS = 2.0

#: The display shared by all active blocks, if there are any: two displays would overwrite each
#: other. Blocks can be nested and can run in several threads.
_displays: list[Progress] = []
_lock = threading.Lock()


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

    with _lock:
        if not _displays:
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
            _displays.append(Progress(*columns, console=Console(stderr=True), transient=True))
        [bars] = _displays
        description = escape(visible(safe_message(f"{name}: {stage}")))
        bar = bars.add_task(description, total=1.0 if measured else None, visible=False)

    def listener(stage: str, share: float) -> None:
        bars.update(
            bar, description=escape(visible(safe_message(f"{name}: {stage}"))), completed=share
        )

    def show() -> None:
        bars.update(bar, visible=True)
        bars.start()

    # A bar that disappears at once would only flicker.
    timer = threading.Timer(DELAY_SECONDS, show)
    timer.daemon = True
    timer.start()
    try:
        yield listener
    finally:
        timer.cancel()
        timer.join()  # it may be starting the bar
        with _lock:
            bars.remove_task(bar)
            if not bars.tasks:
                bars.stop()
                _displays.clear()
