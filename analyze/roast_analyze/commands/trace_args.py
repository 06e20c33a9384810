"""Arguments that name traces and how to read them, and opening them."""

from __future__ import annotations

import argparse
import atexit
import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Final

from roast_analyze.commands.progress import progress
from roast_analyze.errors import TraceError
from roast_analyze.open import remote
from roast_analyze.open.discover import group_by_trace, trace_name
from roast_analyze.open.names import file_name, is_url, names_replaced
from roast_analyze.output_paths import STDIN
from roast_schemas.urls import without_secrets

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

TRACE_HELP: Final = (
    "a trace file, a folder of segments, a quoted pattern for either, a URL (s3://, gs://, "
    "https://, root://), or - for stdin; the column trace_id identifies the rows of several "
    "traces"
)


def trace_argument(word: str) -> str | Path:
    """Return the path of a trace; a URL stays as it is, which would be another as a path."""
    return word if is_url(word) else Path(word)


def add_traces(parser: argparse.ArgumentParser) -> None:
    """Declare TRACE… and the options of reading."""
    parser.add_argument(
        "traces", metavar="TRACE", nargs="+", type=trace_argument, help=TRACE_HELP
    )
    add_reading(parser)


def add_traces_and(
    parser: argparse.ArgumentParser, metavar: str, meaning: str, *, nargs: str = "+"
) -> None:
    """Declare TRACE… followed by another word, the options of reading and the time range."""
    parser.add_argument("traces", metavar="TRACE", nargs=nargs, help=TRACE_HELP)
    # argparse assigns all words to TRACE; the other one is declared only for the help text.
    parser.add_argument(metavar.lower(), metavar=metavar, nargs="?", help=meaning)
    add_reading(parser)
    add_time_range(parser)


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


def add_time_range(parser: argparse.ArgumentParser) -> None:
    """Declare --from, --to and --session."""
    parser.add_argument(
        "--from",
        metavar="TIME",
        dest="start",
        help="start of the time range: seconds after the start of the run (90), 5m, 1h30m, "
        "1:30:00, -10m (before the end of the run), or a date (2026-08-31T14:05); attempts are "
        "cut at the ends of the range",
    )
    parser.add_argument("--to", metavar="TIME", dest="stop", help="end of the time range")
    parser.add_argument(
        "--session",
        metavar="N",
        type=int,
        help="time range of the N-th row of the view sessions: in which its client was "
        "connected",
    )


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


def is_store(name: str | Path) -> bool:
    """Return whether a name is that of a store of runs: a folder or a URL with its table."""
    if isinstance(name, str) and is_url(name):
        return remote.is_store(name)
    return (Path(name) / "runs" / "_delta_log").is_dir()


#: Copies of pipes, by the name that the user gave.
_copies: dict[str, Path] = {}


@contextmanager
def traces_at_hand(options: argparse.Namespace) -> Iterator[None]:
    """Replace traces that are pipes or at URLs by copies: a trace is read more than once.

    Examples of pipes are ``/dev/stdin``, a FIFO, and ``<(zstdcat …)`` of a shell. Errors name
    the pipes and URLs. Commands that read many traces copy those at URLs themselves, because
    they go on after one that cannot be read.
    """
    with ExitStack() as copies:
        for name in ("traces", "trace", "bases", "new", "names"):
            given = getattr(options, name, None)
            if given is None:
                continue
            words = given if isinstance(given, list) else [given]
            if not getattr(options, "follow", False):  # the copy of a pipe does not grow
                words = [_copied(word) for word in words]
            if not getattr(options, "reads_many", False):
                words = [_downloaded(word, options, copies) for word in words]
            setattr(options, name, words if isinstance(given, list) else words[0])
        if _copies and hasattr(options, "cache"):
            options.cache = False  # the copies are removed at exit
        try:
            with names_replaced({str(copy): pipe for pipe, copy in _copies.items()}):
                yield
        finally:
            _copies.clear()


def is_copy(path: Path) -> bool:
    """Return whether a path is the copy of a pipe, of which nothing remains."""
    return path in _copies.values()


def _downloaded(word: str | Path, options: argparse.Namespace, copies: ExitStack) -> str | Path:
    """Return the path of the copy of a trace at a URL; other words are returned unchanged."""
    if not (isinstance(word, str) and is_url(word)) or is_store(word):
        return word
    if getattr(options, "follow", False):
        raise TraceError(
            f"--follow cannot read {without_secrets(word)!r} as it grows: leave it out for the "
            "run so far"
        )
    # After Ctrl-C, the driver's event loop would print that a task is pending.
    logging.getLogger("asyncio").addHandler(logging.NullHandler())
    with progress(file_name(word), "downloading") as listener:
        [path] = copies.enter_context(
            remote.at_hand([word], cache=getattr(options, "cache", True), listener=listener)
        )
    return path


def _copied(word: str | Path) -> str | Path:
    path = Path(word)
    try:
        if not path.is_fifo():
            return word
    except (OSError, ValueError):  # a query can be no path at all
        return word
    if str(word) not in _copies:
        with path.open("rb") as pipe:
            # Numbers of the shell's pipes are no names of traces.
            name = f"pipe-{path.name}" if path.name.isdecimal() else trace_name(path)
            _copies[str(word)] = _copy(pipe, name)
    return type(word)(_copies[str(word)])


def _copy(source: IO[bytes], name: str) -> Path:
    """Copy a stream to a file that is removed at exit, because the trace is read until then."""
    folder = TemporaryDirectory(prefix="roast-")
    atexit.register(folder.cleanup)
    copy = Path(folder.name) / f"{name}.jsonl"
    with copy.open("wb") as file:
        shutil.copyfileobj(source, file, 2**20)
    return copy


def traces_to_compare(names: Sequence[Path]) -> list[tuple[Path, ...]]:
    """Return the paths of each trace; a trace on stdin must be the only one."""
    if STDIN not in map(str, names):
        return group_by_trace(names)
    if len(names) > 1:
        raise TraceError("stdin cannot be compared with other traces: write it to a file")
    # Standard input has no header to group by before it is read.
    return [tuple(names)]


def open_trace(
    paths: Sequence[Path],
    options: argparse.Namespace,
    *,
    views: Sequence[Path] | None = (),
    unsafe: bool = False,
    limited: bool = True,
) -> Session:
    """Open traces with the options of a command, limited to its time range if `limited`.

    `views` and `unsafe` are as in :class:`roast_analyze.Trace`, and so are the errors.
    """
    # Imported here, because DuckDB would slow down the help text of a command.
    from roast_analyze.open.session import Session

    copied: Path | None = None
    if STDIN in map(str, paths):
        # To a file, because the trace is read more than once and in no fixed order.
        copied = _copy(sys.stdin.buffer, "stdin")
    try:
        return Session(
            *(copied if copied and str(path) == STDIN else path for path in paths),
            # The copy is removed at exit, so its tables would never be used again.
            cache=options.cache and copied is None,
            memory_limit=options.memory_limit,
            views=views,
            unsafe=unsafe,
            start=getattr(options, "start", None) if limited else None,
            stop=getattr(options, "stop", None) if limited else None,
            session=getattr(options, "session", None) if limited else None,
            progress=partial(progress, paths[0].name),
        )
    except TraceError as error:
        if copied is None:
            raise
        # The user does not know the path of the temporary file.
        message = str(error).replace(repr(str(copied)), "standard input")
        raise type(error)(message) from None
