"""The command ``roast-analyze``: dispatch to a command, and exit codes.

Exit codes are decided only here: 0 for success, 1 if the answer is no (``check`` found a loss),
2 if the call or the input is wrong, with one line on stderr, and 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys

from roast_analyze.errors import INSTALL_COMMAND, MissingExtra, TraceError
from roast_analyze.usage import HELP

# Importing typing or argparse takes longer than the start of Python, so they are imported where
# they are used. Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any, Final, TextIO

SUCCESS, NO, WRONG = 0, 1, 2

#: Modules that define the errors of DuckDB.
_DATABASE: Final = ("duckdb", "_duckdb")

#: DuckDB turns Ctrl-C into a RuntimeError with this text.
_DUCKDB_INTERRUPTED: Final = "Query interrupted"

#: Named commands; without one of them the command is the summary.
COMMANDS: Final = ("sql", "view", "export", "import", "check")

_EXTRA: Final = (
    "duckdb", "jinja2", "numpy", "platformdirs", "plotly", "polars", "psutil", "pyarrow",
    "rich", "xxhash", "zstandard",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``roast-analyze`` and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments of the command line; the default is those of this process.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A trace may contain characters that the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    code = SUCCESS
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except (TraceError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader, such as `head`, stopped; the result of the command still counts.
            _redirect_to_devnull(sys.stdout)
            return code
        return _print_error(error)
    except (KeyboardInterrupt, RuntimeError) as error:
        if isinstance(error, RuntimeError) and str(error) != _DUCKDB_INTERRUPTED:
            raise
        from roast_analyze.open.interrupt import INTERRUPTED

        return INTERRUPTED
    return code


def _print_error(error: Exception) -> int:
    from roast_analyze.safe_text import visible

    try:
        print(visible(f"roast-analyze: {error}"), file=sys.stderr, flush=True)
    except BrokenPipeError:
        _redirect_to_devnull(sys.stderr)
    return WRONG


def _redirect_to_devnull(stream: TextIO) -> None:
    """Discard further output to a closed stream, which Python flushes again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(words: list[str]) -> int:
    name = words[0] if words and words[0] in COMMANDS else None
    if name is None and not {"-h", "--help"}.isdisjoint(words):
        print(HELP, end="")
        return SUCCESS
    from importlib import import_module

    from roast_analyze.open.interrupt import exit_on_interrupt

    command: Any = import_module(f"roast_analyze.commands.{name or 'summary'}")
    options = _parse(command, name, words[1:] if name else words)
    if name is None and options.version:
        from importlib import metadata

        try:
            version = metadata.version("roast-trace")
        except metadata.PackageNotFoundError:
            version = "(not installed)"
        print(f"roast-trace {version}")
        return SUCCESS
    try:
        with exit_on_interrupt():
            return NO if command.run(options) is False else SUCCESS
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        raise MissingExtra(
            f"the analysis needs {error.name}, which is not installed: {INSTALL_COMMAND}"
        ) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _DATABASE:
            raise
        from roast_analyze.open.database import as_trace_error

        raise as_trace_error(error) from error


def _parse(command: Any, name: str | None, words: list[str]) -> argparse.Namespace:
    import argparse

    parser = argparse.ArgumentParser(
        prog=f"roast-analyze {name}" if name else "roast-analyze",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=name is not None,
    )
    if name is None:
        parser.add_argument("--version", action="store_true")
    command.add_arguments(parser)
    options = parser.parse_intermixed_args(_join_negative_times(words))
    if name is None and len(options.traces) > 1:
        _refuse_misspelled_command(options.traces[0])
    return options


def _join_negative_times(words: list[str]) -> list[str]:
    """Join --from and --to with a time such as -10m, which argparse takes for an option."""
    joined: list[str] = []
    for word in words:
        is_negative = word[:1] == "-" and word[1:2] in "0123456789."
        if joined and joined[-1] in ("--from", "--to") and is_negative:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _refuse_misspelled_command(word: Path) -> None:
    """Raise if the first of several arguments resembles a command rather than a path."""
    name = str(word)
    if word.exists() or word.suffix or word.name != name or name == "-":
        return
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(COMMANDS)}"
    raise TraceError(f"unknown command {name!r}; {hint}")
