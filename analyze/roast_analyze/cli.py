"""The command ``roast-analyze``: which command was meant, and what its end means.

This is the only place where errors become exit codes. 0: well. 1: the answer is no, such
as a loss that ``check`` found. 2: the call or the input is wrong; one line on stderr names
the value and the way out.
"""

from __future__ import annotations

import os
import sys

from roast_analyze.errors import INSTALL_COMMAND, MissingExtra, TraceError
from roast_analyze.usage import HELP

# Importing typing, argparse and the like takes longer than Python's own start, so that each is
# imported where it is used. Type checkers know the name and take it for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any, Final, TextIO

WELL, NO, WRONG = 0, 1, 2

#: Modules of the database's own errors.
_DATABASE: Final = ("duckdb", "_duckdb")

#: What DuckDB makes of Ctrl-C: a RuntimeError with this text.
_DUCKDB_INTERRUPTED: Final = "Query interrupted"

#: Commands that are named; without a name the summary is meant.
COMMANDS: Final = ("sql", "view", "export", "import", "check")

_EXTRA: Final = (
    "duckdb", "jinja2", "numpy", "platformdirs", "plotly", "polars", "psutil", "pyarrow",
    "rich", "xxhash", "zstandard",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``roast-analyze`` and give its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words of the command line after the name; those of this process if not given.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A trace may hold what the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    code = WELL
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except TraceError as error:
        return _complain(error)
    except BrokenPipeError:
        # Who reads, such as `head`, has seen enough; what was decided before stands.
        _silence(sys.stdout)
        return code
    except KeyboardInterrupt:
        return _interrupted()
    except RuntimeError as error:
        if str(error) == _DUCKDB_INTERRUPTED:
            return _interrupted()
        raise
    except OSError as error:
        return _complain(error)
    return code


def _complain(error: Exception) -> int:
    from roast_analyze.safe_text import visible

    try:
        # What a trace says can be in it.
        print(visible(f"roast-analyze: {error}"), file=sys.stderr, flush=True)
    except BrokenPipeError:
        _silence(sys.stderr)
    return WRONG


def _interrupted() -> int:
    from roast_analyze.open.interrupt import INTERRUPTED

    return INTERRUPTED


def _silence(stream: TextIO) -> None:
    """Let a stream that nobody reads lead nowhere: Python flushes once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(words: list[str]) -> int:
    named = words[0] if words and words[0] in COMMANDS else None
    if named is None and not {"-h", "--help"}.isdisjoint(words):
        print(HELP, end="")
        return WELL
    from importlib import import_module

    from roast_analyze.open.interrupt import listening

    command: Any = import_module(f"roast_analyze.commands.{named or 'summary'}")
    options = _parsed(command, named, words[1:] if named else words)
    if named is None and options.version:
        _print_version()
        return WELL
    try:
        with listening():
            return int(command.run(options))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        raise MissingExtra(
            f"{error.name} is not installed, which the analysis needs: {INSTALL_COMMAND}"
        ) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _DATABASE:
            raise
        from roast_analyze.open.database import trouble

        raise trouble(error) from error


def _parsed(command: Any, named: str | None, words: list[str]) -> argparse.Namespace:
    parser = _parser(command, named)
    options, rest = parser.parse_known_intermixed_args(_joined(words))
    if named is None and len(options.traces) > 1:
        _refuse_misspelt_command(options.traces[0])
    if rest:
        if named == "check" and not any(word.startswith("-") for word in rest):
            traces = " and ".join(repr(str(trace)) for trace in (options.trace, *rest))
            raise TraceError(f"one trace at a time, not {traces}")
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def _joined(words: list[str]) -> list[str]:
    """Join --from and --to with a time before the end, -10m, which looks like an option."""
    joined: list[str] = []
    for word in words:
        if (
            joined
            and joined[-1] in ("--from", "--to")
            and word[:1] == "-"
            and word[1:2] in "0123456789."
        ):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _refuse_misspelt_command(word: Path) -> None:
    """Refuse the first of several words if it looks more like a command than like a trace."""
    name = str(word)
    if word.exists() or word.suffix or word.name != name or name == "-":
        return
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}"
    raise TraceError(f"there is no command {name!r}; {hint}")


def _parser(command: Any, named: str | None) -> argparse.ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(
        prog=f"roast-analyze {named}" if named else "roast-analyze",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=named is not None,
    )
    if named is None:
        parser.add_argument("--version", action="store_true")
    command.add_arguments(parser)
    return parser


def _print_version() -> None:
    from importlib import metadata

    try:
        version = metadata.version("roast-trace")
    except metadata.PackageNotFoundError:
        version = "(not installed)"
    print(f"roast-trace {version}")
