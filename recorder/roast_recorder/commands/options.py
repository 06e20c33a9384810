"""Arguments that the commands which record have in common."""

from __future__ import annotations

import argparse
import ast
from typing import Any

from roast_recorder.commands import CallError


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Describe where the trace goes, and the settings."""
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
    """Give the settings of the call.

    Raises
    ------
    CallError
        If a setting cannot be used.
    """
    from roast_recorder.settings import Settings

    settings = dict(map(_setting, options.settings))
    try:
        Settings.from_keywords(settings)
    except (TypeError, ValueError) as error:
        raise CallError(str(error)) from None
    return settings


def check_target(target: str, settings: dict[str, Any]) -> None:
    """See that a trace can be written.

    Raises
    ------
    CallError
        If it cannot.
    """
    from roast_recorder.settings import Settings
    from roast_recorder.writer.segments import Segments

    values = Settings.from_keywords(settings)
    try:
        Segments(target, {}, values.as_dict(), warn=print).abandon()
    except (OSError, ValueError) as error:
        raise CallError(str(error)) from None


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CallError(f"--set {text!r}: give NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
