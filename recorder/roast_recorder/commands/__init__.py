"""The commands of ``roast-record``, one per module, and what they share.

Each has ``add_to(commands)``, which adds a parser for its arguments. The parser's default
``run`` is a function that takes the parsed arguments and returns the exit code.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import dask

from roast_recorder.settings import Settings
from roast_recorder.writer.client import checked_path, unnamed_trace
from roast_schemas.documentation import docs
from roast_schemas.urls import safe_message

Number = TypeVar("Number", int, float)

SUCCESS, FAILED, INVALID_CALL = 0, 1, 2


class CallError(Exception):
    """An invalid call; the text names the value, a URL without secrets, and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(safe_message(text))


def positive(kind: type[Number], what: str, use: str) -> Callable[[str], Number]:
    """Return a parser of positive numbers; its errors name `what` and what to `use`."""

    def parse(text: str) -> Number:
        with contextlib.suppress(ValueError):
            if (number := kind(text)) > 0:
                return number
        raise argparse.ArgumentTypeError(f"invalid {what} {text!r}: use {use}")

    return parse


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add the trace and the settings."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="TRACE",
        help="a file (.jsonl, .jsonl.zst, .jsonl.gz), or a folder for numbered segments "
        "(default: a new file roast-DATE-TIME-ID.jsonl.zst in the working directory)",
    )
    parser.add_argument("--label", help="name of the run in comparisons")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="NAME=VALUE",
        help=f"a setting, such as flush_interval_seconds=1 {docs('reference/settings')}",
    )


def trace_of(options: argparse.Namespace) -> str:
    """Return the path of the trace of the call, or raise a CallError."""
    if options.output is None:
        return unnamed_trace()
    if not options.output:
        raise CallError("invalid --output '': name a file or a folder, or leave it out")
    try:
        return checked_path(options.output)
    except ValueError as error:
        raise CallError(str(error)) from None


def unwritable(error: Exception) -> CallError:
    """Return the error of a trace that cannot be written."""
    if isinstance(error, OSError) and error.filename:
        return CallError(f"cannot write {error.filename!r}: {error.strerror}")
    return CallError(str(error))


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the call by name, or raise a CallError."""
    settings: dict[str, Any] = {} if options.label is None else {"label": options.label}
    for text in options.settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise CallError(f"invalid --set {text!r}: use NAME=VALUE")
        # As in an environment variable: true is a flag, 1 a number, and x a string.
        # A label is text.
        settings[name] = value if name == "label" else dask.config.interpret_value(value)
    try:
        checked = Settings.from_keywords(settings)
    except (TypeError, ValueError) as error:
        raise CallError(str(error)) from None
    return {name: getattr(checked, name) for name in settings}
