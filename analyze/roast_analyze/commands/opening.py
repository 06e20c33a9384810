"""Opening the trace that a command was given, with a sign of life if it takes long."""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from roast_analyze.trace import Trace

#: Shorter waits need no explanation.
PATIENCE_SECONDS = 2.0


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Declare the argument TRACE."""
    parser.add_argument(
        "trace", metavar="TRACE", type=Path, help="a trace file, or a folder of segments"
    )


def open_trace(path: Path) -> Trace:
    """Open a trace.

    Raises
    ------
    TraceError
        As :class:`roast_analyze.trace.Trace` does.
    """
    with _sign_of_life(f"reading {path.name}"):
        from roast_analyze.trace import Trace

        return Trace(path)


@contextlib.contextmanager
def _sign_of_life(text: str) -> Iterator[None]:
    """Turn a spinner on stderr, after a while and only if somebody can see it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    from roast_analyze.figures.labels import visible

    status = Console(stderr=True).status(Text(visible(text)))
    timer = threading.Timer(PATIENCE_SECONDS, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
