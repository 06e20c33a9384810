"""A sign of life for who waits: after a while, and only where somebody can see it."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roast_analyze.open.database import Listener

#: Shorter waits need no explanation.
PATIENCE_SECONDS = 2.0


@contextlib.contextmanager
def progress(name: str, stage: str, *, is_told: bool = True) -> Iterator[Listener]:
    """Show that something is being done, and how far it has come.

    Parameters
    ----------
    name : str
        What it is done with.
    stage : str
        What is done first.
    is_told : bool
        Whether the listener will be told how far it is; if not, the bar just moves.

    Yields
    ------
    Listener
        Takes what is being done, and how much of that, from 0 to 1.
    """
    if not sys.stderr.isatty():
        yield lambda _stage, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.text import Text

    from roast_analyze.safe_text import visible

    columns = (TextColumn("{task.description}"), BarColumn())
    share = (TaskProgressColumn(),) if is_told else ()
    bars = Progress(*columns, *share, console=Console(stderr=True), transient=True)
    described = Text(visible(f"{name}: {stage}")).markup
    bar = bars.add_task(described, total=1.0 if is_told else None)

    def listener(stage: str, share: float) -> None:
        bars.update(bar, description=Text(visible(f"{name}: {stage}")).markup, completed=share)

    timer = threading.Timer(PATIENCE_SECONDS, bars.start)
    timer.daemon = True
    timer.start()
    try:
        yield listener
    finally:
        timer.cancel()
        timer.join()
        bars.stop()
