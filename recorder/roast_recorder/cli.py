# PYTHON_ARGCOMPLETE_OK
"""The command ``roast-record``.

- 0: success
- 1: a recording did not end cleanly or does not write, or the demo failed
- 2: the call is invalid
- 130: ended by Ctrl-C

``run`` returns the exit code of the program. Errors are one line on stderr.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from roast_recorder import __version__
from roast_recorder.commands import INVALID_CALL, CallError, attach, demo, run, status
from roast_schemas.urls import safe_message

#: Programs that a call to ``run`` names.
PROGRAM: Final = re.compile(r"(?:^|/)python[\d.]*$|\.py$")


class Usage(CallError):  # noqa: N818 - what is shown in its place
    """A call that the parser does not accept."""


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors."""

    def error(self, message: str) -> NoReturn:
        """Raise Usage with the parser's message."""
        raise Usage(f"{message}; see {self.prog} --help")


def _correction(words: Sequence[str], message: str) -> str | None:
    """Return what to do instead of a call that is a frequent mistake, or None."""
    if not words:
        return None
    first, *rest = words
    if first == "run":
        if "--" in rest or not message.startswith("unrecognized arguments"):
            return None
        # Options of the program, such as -c or -m of Python.
        at = next((n for n, word in enumerate(rest) if PROGRAM.search(word)), None)
        if at is None:
            return "put -- before the program and its options: roast-record run -- COMMAND …"
        corrected = shlex.join([*rest[:at], "--", *rest[at:]])
        return f"put -- before the program: roast-record run {corrected}"
    commands = {"run", "attach", "status", "demo"}
    if first[:1] == "-" and commands & {*rest}:
        return f"the command comes first: roast-record {min(commands & {*rest})} {first} …"
    if any(word.endswith((".jsonl", ".jsonl.zst", ".jsonl.gz")) for word in words[:2]):
        return f"roast-record writes traces; to read one: roast-analyze {words[-1]}"
    if first not in commands and (at := 0 if PROGRAM.search(first) else 1) < len(words):
        program = words[at:]
        if PROGRAM.search(program[0]):
            python = [] if "python" in program[0] else ["python"]
            return f"use roast-record run -- {shlex.join([*python, *program])}"
    if "://" in first:
        return f"use roast-record attach {first}"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``roast-record`` and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    parser = Parser(prog="roast-record", description="Record what happens on a Dask cluster.")
    parser.add_argument("--version", action="version", version=f"roast-trace {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (run, attach, status, demo):
        command.add_to(commands)
    if "_ARGCOMPLETE" in os.environ:  # a shell completes the command line
        import argcomplete

        argcomplete.autocomplete(parser)
    try:
        options = parser.parse_args(words)
        return int(options.run(options))
    except Usage as error:
        text = _correction(words, str(error)) or str(error)
        print(f"roast-record: {safe_message(text)}", file=sys.stderr)
        return INVALID_CALL
    except CallError as error:
        print(f"roast-record: {error}", file=sys.stderr)
        return INVALID_CALL
    except KeyboardInterrupt:
        return 130
