"""The commands of ``roast-record``, one a module, and what they share.

Each has ``add_to(commands)``, which adds a parser for its arguments. The parser's default
``run`` is a function that takes the parsed arguments and returns the exit code.
"""

from __future__ import annotations

import argparse
import ast
from typing import Any

from roast_recorder.settings import Settings

SUCCESS, FAILED, INVALID_CALL = 0, 1, 2


class CallError(Exception):
    """An invalid call; the text names the value and what to do."""


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add the trace and the settings."""
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="TRACE",
        help="a file (.jsonl, .jsonl.zst, .jsonl.gz), or a folder for numbered segments",
    )
    parser.add_argument("--label", help="name of the run, by which it is shown beside others")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="NAME=VALUE",
        help="a setting, such as flush_interval_seconds=1 (see docs/reference/settings.md)",
    )


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the call by name, or raise a CallError."""
    settings: dict[str, Any] = {} if options.label is None else {"label": options.label}
    for text in options.settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise CallError(f"invalid --set {text!r}: use NAME=VALUE")
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = value
    try:
        Settings.from_keywords(settings)
    except (TypeError, ValueError) as error:
        raise CallError(str(error)) from None
    return settings
