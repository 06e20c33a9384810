"""Options of all commands that record."""

from __future__ import annotations

import argparse
import ast
from typing import Any

from roast_recorder.commands import CallError
from roast_recorder.settings import Settings
from roast_recorder.writer.segments import Segments


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add the trace and the settings."""
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="TRACE",
        help="a file (.jsonl, .jsonl.zst, .jsonl.gz), or a folder for numbered segments",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="NAME=VALUE",
        help="a setting, such as flush_interval_seconds=1 (recorder/README.md lists them)",
    )


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the call by name.

    Raises
    ------
    CallError
        If a setting is invalid.
    """
    settings: dict[str, Any] = {}
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


def check_target(target: str, settings: dict[str, Any]) -> None:
    """Check that a trace can be written.

    Raises
    ------
    CallError
        If it cannot.
    """
    values = Settings.from_keywords(settings).as_dict()
    try:
        Segments(target, {}, values, warn=print).abandon()
    except (OSError, ValueError) as error:
        raise CallError(str(error)) from None
