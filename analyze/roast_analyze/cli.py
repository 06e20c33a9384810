# PYTHON_ARGCOMPLETE_OK
"""The command ``roast-analyze``: dispatch to a command, and exit codes.

- 0: success
- 1: negative result: ``check`` found a loss, ``gate`` a regression, ``each`` or ``store add`` a
  trace that cannot be read, ``import`` one of several files that cannot, ``store check`` a
  problem, or there is nothing to export
- 2: invalid call or input
- 130: ended by Ctrl-C

Errors are one line on stderr.
"""

from __future__ import annotations

import codecs
import os
import sys

from roast_analyze.errors import (
    INSTALL_COMMAND,
    MissingExtra,
    NothingToExport,
    NotWritable,
    TraceError,
)

# Importing typing or argparse takes longer than the start of Python, so they are imported where
# they are used. Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import Any, Final, NoReturn, TextIO

#: Exit codes are decided only in this module.
SUCCESS, NO, WRONG = 0, 1, 2

#: Named commands; without one of them the command is the summary.
COMMANDS: Final = (
    "sql", "view", "explain", "why", "what-if", "each", "store", "export", "import", "check",
    "scrub", "metrics", "gate", "serve", "mcp",
)  # fmt: skip

#: Names that other programs have for a command, and the call that is meant.
MEANT: Final = {
    **dict.fromkeys(("report", "html", "page"), "roast-analyze TRACE --html"),
    **dict.fromkeys(("open", "browse", "timeline", "dashboard"), "roast-analyze TRACE --open"),
    **dict.fromkeys(
        ("summary", "summarize", "show", "info", "stats", "analyze", "describe", "print"),
        "roast-analyze TRACE",
    ),
    **dict.fromkeys(("compare", "diff"), "roast-analyze BEFORE AFTER"),
    **dict.fromkeys(("query", "select", "duckdb"), 'roast-analyze sql TRACE "SELECT …"'),
    **dict.fromkeys(
        ("views", "tables", "schema", "list", "columns"), "roast-analyze view TRACE"
    ),
    **dict.fromkeys(("findings", "diagnose", "advice"), "roast-analyze explain TRACE"),
    **dict.fromkeys(
        ("flamegraph", "flame", "profile", "speedscope"),
        "roast-analyze TRACE --open, or roast-analyze export TRACE --speedscope FILE",
    ),
    "perfetto": "roast-analyze export TRACE --perfetto FILE",
    "folded": "roast-analyze export TRACE --folded FILE",
    **dict.fromkeys(("parquet", "convert"), "roast-analyze export TRACE --parquet DIR"),
    **dict.fromkeys(("verify", "validate"), "roast-analyze check TRACE"),
    **dict.fromkeys(("predict", "simulate"), "roast-analyze what-if TRACE"),
    **dict.fromkeys(("anonymize", "redact", "share"), "roast-analyze scrub TRACE -o SHARED"),
    **dict.fromkeys(("darshan", "yappi", "dump"), "roast-analyze import TOOL FILE"),
    "history": "roast-analyze STORE",
    **dict.fromkeys(("server", "web"), "roast-analyze serve FOLDER"),
    **dict.fromkeys(("record", "run"), "roast-record run -- python PROGRAM"),
    "attach": "roast-record attach ADDRESS",
    "demo": "roast-record demo",
    "help": "roast-analyze --help",
    "version": "roast-analyze --version",
}

#: DuckDB turns Ctrl-C into a RuntimeError with this text.
_DUCKDB_INTERRUPTED: Final = "Query interrupted"

#: Libraries of the extra `analyze`, by the names of their modules.
_EXTRA: Final = (
    "argcomplete", "duckdb", "jinja2", "numpy", "platformdirs", "plotly", "polars", "psutil",
    "pyarrow", "rich", "tornado", "xxhash", "zstandard",
)  # fmt: skip

# A constant, because creating this text with argparse would dominate the start-up time.
HELP: Final = """\
usage: roast-analyze [TRACE…] [--all] [--follow] [--html [FILE]] [--open]
                     [--title TITLE] [--markdown] [--json] [--from TIME]
                     [--to TIME] [--session N] [--no-cache]
                     [--memory-limit SIZE]
       roast-analyze COMMAND TRACE… …

Summarize a trace in the terminal, or write its report with --html.

Without a trace, the newest ones in the working directory are listed. Several
traces are compared with each other. A store has a page of all its runs; with a
trace_id, the report of that run. For example:

    roast-analyze
    roast-analyze trace.jsonl.zst
    roast-analyze trace.jsonl.zst --follow
    roast-analyze trace.jsonl.zst --html report.html
    roast-analyze trace.jsonl.zst --html --from 5m --to -90s
    roast-analyze trace.jsonl.zst --markdown
    roast-analyze before.jsonl.zst after.jsonl.zst --open
    roast-analyze s3://bucket/trace.jsonl.zst
    roast-analyze store/ --html

TRACE is a trace file, a folder of segments, a quoted pattern for either, a URL
(s3://, gs://, https://, root://), - for stdin, or a store.

options:
  -h, --help     print this help and exit
  --version      print the version and exit
  --all          print all tables of the summary
  --follow       show the progress of a run while it is recorded; q leaves
  --html [FILE]  write the report, a self-contained page; the default FILE is
                 next to the trace; for a URL, in the working directory
  --open         write the report and open it in the browser
  --title TITLE  heading of the report
  --markdown     print a digest in Markdown, of at most 40 lines, for an issue, a
                 chat or an assistant
  --json         print JSON: rows of views, with the columns that `roast-analyze
                 view` describes
  --from TIME    start of the time range: seconds after the start of the run (90),
                 5m, 1h30m, 1:30:00, -10m (before the end of the run), or a date
                 (2026-08-31T14:05); attempts are cut at the ends of the range
  --to TIME      end of the time range
  --session N    time range of the N-th row of the view sessions: in which its
                 client was connected
  --no-cache     parse the trace again and do not cache its tables
  --memory-limit SIZE
                 memory limit of the database, such as 1GiB; it spills to disk
                 beyond it (default: 60 % of the free memory, at most 4GiB)

other commands:
  sql     Query traces in SQL.
  view    Print a view, the list of views, or the description of a view.
  explain Explain where the time of a run went, and what to change.
  why     Explain the difference between a run and one or more others.
  what-if Predict the wall time under other conditions.
  each    Run a query over each of many traces.
  store   Keep many runs in a store.
  export  Write traces for other programs.
  import  Import data from Darshan, Yappi or a cluster dump.
  check   Check whether traces are complete.
  scrub   Replace all names in a trace with pseudonyms, so that it can be shared.
  metrics Print the metrics of a run as JSON, for programs.
  gate    Compare new runs with base runs, and fail if a metric became worse.
  serve   Show runs, live and finished, and their reports in the browser.
  mcp     Serve runs to an assistant over the Model Context Protocol.

Run `roast-analyze COMMAND --help` for the options of a command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``roast-analyze`` with some arguments, by default those of this process.

    Returns the exit code.
    """
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(Output, streams)
    try:
        return _exit_code(sys.argv[1:] if arguments is None else list(arguments))
    finally:
        sys.stdout, sys.stderr = streams


class Output:
    """Standard output or error, which can be closed by its reader.

    What is written after that is discarded, so that the command runs on and has its own exit
    code. Raise :class:`NotWritable` if stdout cannot be written for another reason.
    """

    def __init__(self, stream: TextIO | None) -> None:
        # Python has no stream if it was closed by the shell, as in `>&-`.
        self._stream = stream or open(os.devnull, "w")  # noqa: PTH123, SIM115
        self.is_discarded = stream is None
        if hasattr(self._stream, "reconfigure"):
            # A trace may contain characters that the terminal's encoding lacks.
            self._stream.reconfigure(errors=_ESCAPED)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, unless nobody reads it."""
        self._call(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, unless nobody reads it."""
        self._call(self._stream.flush)

    def _call(self, method: Callable[..., object], *arguments: str) -> None:
        try:
            method(*arguments)
        except OSError as error:
            # Otherwise, Python would fail again when it flushes the stream at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            self.is_discarded = True
            if self is sys.stdout and not isinstance(error, BrokenPipeError):
                raise NotWritable(f"cannot write to stdout: {error.strerror}") from None


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Escape characters as in JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    text = "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
    return text, error.end


#: Name of the error handler of encodings.
_ESCAPED: Final = "roast-escaped"
codecs.register_error(_ESCAPED, _escape)


def _exit_code(words: list[str]) -> int:
    code = SUCCESS
    try:
        try:
            code = _run(words)
        finally:
            sys.stdout.flush()
    except (TraceError, OSError) as error:
        from roast_analyze.commands.messages import print_note

        code = NO if isinstance(error, NothingToExport) else WRONG
        print_note(error)
    except (KeyboardInterrupt, RuntimeError) as error:
        # Any other error is a bug, so its traceback is shown.
        if isinstance(error, RuntimeError) and str(error) != _DUCKDB_INTERRUPTED:
            raise
        from roast_analyze.open.interrupt import INTERRUPTED

        code = INTERRUPTED
    return code


def _run(words: list[str]) -> int:
    name = words[0] if words and words[0] in COMMANDS else None
    if name is None and not {"-h", "--help"}.isdisjoint(words):
        print(HELP, end="")
        return SUCCESS
    if "_ARGCOMPLETE" in os.environ:  # set by a shell that completes a command line
        _complete()
    from roast_analyze.commands.messages import warning_lines
    from roast_analyze.open.interrupt import exit_on_interrupt

    try:
        options = _parse(name, words[1:] if name else words)
        if name is None and options.version:
            from importlib import metadata

            try:
                version = metadata.version("roast-trace")
            except metadata.PackageNotFoundError:  # run from a checkout
                version = "(not installed)"
            print(f"roast-trace {version}")
            return SUCCESS
        from roast_analyze.commands.trace_args import traces_at_hand

        with exit_on_interrupt(), warning_lines(), traces_at_hand(options):
            return NO if options.run(options) is False else SUCCESS
    except ModuleNotFoundError as error:
        # A missing module of roast itself is a bug.
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        raise MissingExtra(
            f"the analysis needs {error.name}, which is not installed: {INSTALL_COMMAND}"
        ) from None
    except Exception as error:
        # Not by class: DuckDB is imported only when a command needs it.
        if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            raise
        from roast_analyze.open.database import as_trace_error

        raise as_trace_error(error) from error


def _complete() -> NoReturn:
    """Write the completions of the command line that a shell has put into variables; exit."""
    import argcomplete
    from argcomplete.completers import FilesCompleter
    from argcomplete.lexers import split_line

    line, point = os.environ["COMP_LINE"], int(os.environ["COMP_POINT"])
    *_, words, _ = split_line(line, point)
    name = words[1] if len(words) > 1 and words[1] in COMMANDS else None
    if name:
        os.environ["_ARGCOMPLETE"] = "2"  # number of the word at which the arguments begin
    files = FilesCompleter()

    def traces_or_commands(prefix: str, **_context: Any) -> list[str]:
        known = COMMANDS if len(words) == 1 else ()
        return [word for word in known if word.startswith(prefix)] + files(prefix)

    argcomplete.autocomplete(
        _parser(name),
        always_complete_options=False,
        default_completer=traces_or_commands,  # type: ignore[arg-type]
    )
    raise AssertionError("autocomplete exits")


def _parser(name: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command; without a name, of the summary."""
    import argparse
    from importlib import import_module

    # By name, so that only the libraries of this command are loaded.
    module = f"roast_analyze.commands.{(name or 'summary').replace('-', '_')}"
    command: Any = import_module(module)

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            unknown, _, words = message.partition(": ")
            hint = f"see {self.prog} --help"
            if unknown == "unrecognized arguments":
                from roast_analyze.open.views import nearest

                option = words.split()[0].partition("=")[0]
                known = {"-V": "--version", "-v": "--version", "--report": "--html"}
                if name is None:
                    known |= {"-o": "--html FILE", "--output": "--html FILE"}
                near = known.get(option) or nearest(option, [*self._option_string_actions])
                hint = f"did you mean {near}? {hint}" if near and option[0] == "-" else hint
            raise TraceError(f"{message}; {hint}")

    parser = Parser(
        prog=f"roast-analyze {name}" if name else "roast-analyze",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=name is not None,
    )
    if name is None:
        parser.add_argument("--version", action="store_true")
    command.add_arguments(parser)
    parser.set_defaults(run=command.run)
    return parser


def _parse(name: str | None, words: list[str]) -> argparse.Namespace:
    joined: list[str] = []
    for word in words:
        is_negative = word[:1] == "-" and word[1:2] in "0123456789."
        if joined and joined[-1] in ("--from", "--to") and is_negative:
            joined[-1] += f"={word}"  # argparse would take a time such as -10m for an option
        else:
            joined.append(word)
    if name == "gate":
        from roast_analyze.commands import gate

        return gate.parse(_parser(name), joined)
    # Intermixed, because options can stand between several traces.
    options = _parser(name).parse_intermixed_args(joined)
    if name is None:
        _check_command(options.traces)
    return options


def _check_command(words: list[str]) -> None:
    """Raise TraceError if a word is not a trace but a command that is unknown or misplaced."""
    from pathlib import Path

    for place, word in enumerate(words):
        path = Path(word)
        # A word with a suffix or a folder is meant as a path, which may be misspelled itself.
        if word == "-" or path.suffix or path.name != word or path.exists():
            continue
        if word in COMMANDS:
            raise TraceError(f"the command comes first: roast-analyze {word} TRACE")
        from roast_analyze.open.views import nearest

        # The name of a trace can resemble the name of a command by chance.
        near = nearest(word, [*COMMANDS, *MEANT], cutoff=0.75) if place == 0 else None
        if word in MEANT:
            raise TraceError(f"unknown command {word!r}: use {MEANT[word]}")
        if near is not None:
            use = f"use {MEANT[near]}" if near in MEANT else f"did you mean {near!r}?"
            raise TraceError(f"unknown command {word!r}; {use}")
        if place == 0 and len(words) > 1:
            raise TraceError(f"unknown command {word!r}; choose from {', '.join(COMMANDS)}")
