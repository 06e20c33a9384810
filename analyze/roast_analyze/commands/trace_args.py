"""Arguments that name traces and how to read them, and opening them.

Warnings about skipped views and an unusable cache are printed on stderr.
"""

from __future__ import annotations

import atexit
import contextlib
import shutil
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.progress import progress

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from roast_analyze.open.session import Session

#: Name of standard input.
STDIN: Final = "-"

TRACE_HELP: Final = (
    "a trace file, a folder of segments, a quoted pattern for either, or - for stdin; the "
    "column trace_id identifies the rows of several traces"
)

_COPIED_BYTES: Final = 2**20


def add_traces(parser: argparse.ArgumentParser) -> None:
    """Declare TRACE… and the options of reading."""
    parser.add_argument("traces", metavar="TRACE", nargs="+", type=Path, help=TRACE_HELP)
    add_reading(parser)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare the options of reading."""
    parser.add_argument(
        "--no-cache",
        action="store_false",
        dest="cache",
        help="parse the trace again and do not cache its tables",
    )
    parser.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="memory limit of the database, such as 1GiB; it spills to disk beyond it "
        "(default: 60 %% of the free memory, at most 4GiB)",
    )


def add_time_range(
    parser: argparse.ArgumentParser, ends: str = "attempts are cut at the ends of the range"
) -> None:
    """Declare --from and --to; `ends` describes what happens to attempts that cross them."""
    parser.add_argument(
        "--from",
        metavar="TIME",
        dest="start",
        help="start of the time range: seconds after the start of the run (90), 5m, 1h30m, "
        f"1:30:00, -10m (before the end of the run), or a date (2026-08-31T14:05); {ends}",
    )
    parser.add_argument("--to", metavar="TIME", dest="stop", help="end of the time range")


def add_views(parser: argparse.ArgumentParser) -> None:
    """Declare --views, the folders of the user's own views."""
    parser.add_argument(
        "--views",
        metavar="DIR",
        action="append",
        type=Path,
        help="folder of .sql files that become views, instead of $ROAST_VIEWS or "
        "~/.config/roast/views; can be repeated",
    )


def without_stdin(paths: Iterable[Path]) -> list[Path]:
    """Return the paths except that of standard input."""
    return [path for path in paths if str(path) != STDIN]


def open_trace(
    paths: Sequence[Path],
    options: argparse.Namespace,
    *,
    views: Sequence[Path] | None = (),
    unsafe: bool = False,
    limited: bool = True,
) -> Session:
    """Open traces, or parts of one, with the options of a command.

    Parameters
    ----------
    paths : sequence of Path
    options : argparse.Namespace
        With the options of :func:`add_reading` and, if `limited`, :func:`add_time_range`.
    views : sequence of Path or None
        Folders of the user's own views; None means the default folders.
    unsafe : bool
        Whether queries may do more than read the trace.
    limited : bool
        Whether to read only the time range.

    Raises
    ------
    TraceError
        As :class:`roast_analyze.Trace` does.
    """
    with progress(paths[0].name, "reading") as listener, _warnings_printed():
        from roast_analyze.errors import TraceError
        from roast_analyze.open.session import Session

        copied = _copy_stdin() if STDIN in map(str, paths) else None
        try:
            return Session(
                *(copied if copied and str(path) == STDIN else path for path in paths),
                cache=options.cache and copied is None,
                memory_limit=options.memory_limit,
                views=views,
                unsafe=unsafe,
                start=getattr(options, "start", None) if limited else None,
                stop=getattr(options, "stop", None) if limited else None,
                listener=listener,
            )
        except TraceError as error:
            if copied is None:
                raise
            # The path of the temporary file means nothing to the user.
            message = str(error).replace(repr(str(copied)), "standard input")
            raise type(error)(message) from None


def _copy_stdin() -> Path:
    """Copy standard input to a file that is removed when the process exits."""
    folder = TemporaryDirectory(prefix="roast-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "stdin.jsonl"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, _COPIED_BYTES)
    return path


@contextlib.contextmanager
def _warnings_printed() -> Iterator[None]:
    """Print warnings of roast on stderr; issue all others again."""
    from roast_analyze.errors import CacheNotUsed, ViewSkipped
    from roast_analyze.safe_text import visible

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ViewSkipped)
        warnings.simplefilter("always", CacheNotUsed)
        yield
    for warning in caught:
        if issubclass(warning.category, ViewSkipped | CacheNotUsed):
            print(f"roast-analyze: {visible(str(warning.message))}", file=sys.stderr)
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
