"""Opening the trace that a command was given, with a sign of life if it takes long.

What was left out on the way, of the user's own views, is said on stderr.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from roast_analyze.trace import Trace

#: Shorter waits need no explanation.
PATIENCE_SECONDS = 2.0


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Declare the argument TRACE."""
    parser.add_argument(
        "trace", metavar="TRACE", type=Path, help="a trace file, or a folder of segments"
    )


def add_views(parser: argparse.ArgumentParser) -> None:
    """Declare the option --views, for commands in which the user's own views can be meant."""
    parser.add_argument(
        "--views",
        metavar="DIR",
        action="append",
        type=Path,
        help="folder of .sql files that become views too, instead of $ROAST_VIEWS or "
        "~/.config/roast/views; can be given again",
    )


def open_trace(path: Path, *, views: Sequence[Path] | None = (), unsafe: bool = False) -> Trace:
    """Open a trace.

    Parameters
    ----------
    path : Path
    views : sequence of Path or None
        Folders of the user's own views; where they usually are if None.
    unsafe : bool
        Whether queries may do more than read the trace.

    Raises
    ------
    TraceError
        As :class:`roast_analyze.trace.Trace` does.
    """
    with _sign_of_life(f"reading {path.name}"), _warnings_said():
        from roast_analyze.trace import Trace

        return Trace(path, views=views, unsafe=unsafe)


@contextlib.contextmanager
def _warnings_said() -> Iterator[None]:
    """Say on stderr which of the user's own views are left out; leave other warnings be."""
    from roast_analyze.errors import ViewLeftOut
    from roast_analyze.figures.labels import visible

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ViewLeftOut)
        yield
    for warning in caught:
        if issubclass(warning.category, ViewLeftOut):
            print(f"roast-analyze: {visible(str(warning.message))}", file=sys.stderr)
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


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
