"""Opening the trace that a command was given.

What was left out on the way, or done without, is said on stderr.
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
    from collections.abc import Iterator, Sequence

    from roast_analyze.open.session import Session

#: The name under which a trace is read from standard input.
STDIN: Final = "-"

_COPIED_BYTES: Final = 2**20


def add_trace(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Declare the argument TRACE, and how traces are read.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    several : bool
        Whether the command can take more than one trace.
    """
    parser.add_argument(
        "trace",
        metavar="TRACE",
        type=Path,
        help="a trace file, a folder of segments, a pattern for either in quotes, or - for "
        "stdin",
    )
    if several:
        parser.add_argument(
            "--with",
            metavar="TRACE",
            action="append",
            default=[],
            type=Path,
            dest="others",
            help="open another trace too; trace_id tells them apart; can be given again",
        )
    add_reading(parser)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare the options of how traces are read."""
    parser.add_argument(
        "--no-cache",
        action="store_false",
        dest="cache",
        help="parse the trace anew, and keep nothing of it",
    )
    parser.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="what the database may take of the memory, such as 1GiB; more goes to the disk "
        "(default: 60 %% of what is free, at most 4GiB)",
    )


def add_excerpt(parser: argparse.ArgumentParser) -> None:
    """Declare --from and --to, for commands that can tell of a stretch of the run."""
    parser.add_argument(
        "--from",
        metavar="WHEN",
        dest="since",
        help="tell only of what came after this: seconds after the start of the run (90), 5m, "
        "1h30m, 1:30:00, the same before its end (-10m), or a date (2026-08-31T14:05); "
        "attempts that cross it are cut off",
    )
    parser.add_argument(
        "--to", metavar="WHEN", dest="until", help="tell only of what came before this"
    )


def named_traces(options: argparse.Namespace) -> list[Path]:
    """List the traces that a command was given, but for standard input."""
    return [trace for trace in _paths(options) if str(trace) != STDIN]


def _paths(options: argparse.Namespace) -> list[Path]:
    return [options.trace, *getattr(options, "others", ())]


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


def open_trace(
    options: argparse.Namespace, *, views: Sequence[Path] | None = (), unsafe: bool = False
) -> Session:
    """Open the traces that a command was given.

    Parameters
    ----------
    options : argparse.Namespace
        With what :func:`add_trace` declared.
    views, unsafe
        As :func:`open_paths` takes them.

    Raises
    ------
    TraceError
        As :class:`roast_analyze.open.session.Session` does.
    """
    return open_paths(_paths(options), options, views=views, unsafe=unsafe)


def open_paths(
    paths: Sequence[Path],
    options: argparse.Namespace,
    *,
    views: Sequence[Path] | None = (),
    unsafe: bool = False,
) -> Session:
    """Open traces, or parts of one, in the way that a command's options say.

    Parameters
    ----------
    paths : sequence of Path
    options : argparse.Namespace
        With what :func:`add_reading` declared.
    views : sequence of Path or None
        Folders of the user's own views; where they usually are if None.
    unsafe : bool
        Whether queries may do more than read the trace.

    Raises
    ------
    TraceError
        As :class:`roast_analyze.open.session.Session` does.
    """
    with progress(paths[0].name, "reading") as listener, _warnings_said():
        from roast_analyze.errors import TraceError
        from roast_analyze.open.session import Session

        kept = _standard_input() if STDIN in map(str, paths) else None
        try:
            return Session(
                *(kept if kept and str(path) == STDIN else path for path in paths),
                cache=options.cache and kept is None,
                memory_limit=options.memory_limit,
                views=views,
                unsafe=unsafe,
                start=getattr(options, "since", None),
                stop=getattr(options, "until", None),
                listener=listener,
            )
        except TraceError as error:
            if kept is None:
                raise
            # The user does not know of that file.
            said = str(error).replace(repr(str(kept)), "what came from stdin")
            raise type(error)(said) from None


def _standard_input() -> Path:
    """Write what comes from standard input to a file, which is there until the process ends."""
    folder = TemporaryDirectory(prefix="roast-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "stdin.jsonl"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, _COPIED_BYTES)
    return path


@contextlib.contextmanager
def _warnings_said() -> Iterator[None]:
    """Say on stderr what was left out, or done without; leave other warnings be."""
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
