"""Names of many traces, some of which cannot be read."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from roast_analyze.errors import TraceError
from roast_analyze.open.discover import group_by_trace, parts_of
from roast_analyze.open.names import NOTE_SUFFIX
from roast_analyze.open.remote import at_hand, path_of, shown_name
from roast_schemas.urls import without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class TraceFailure(NamedTuple):
    """A name or a file that is not a trace, or cannot be read, and the reason."""

    path: str
    reason: str


def readable_traces(
    names: Sequence[str | os.PathLike[str]],
) -> tuple[list[tuple[Path, ...]], list[TraceFailure]]:
    """Return the paths to open each trace with, and the names and files that are not traces.

    The paths of traces at URLs are those of copies. Notes of the recorder, which a pattern for
    all files of a folder matches as well, are left out.
    """
    failures: list[TraceFailure] = []
    paths = []
    for name in names:
        if os.fspath(name).endswith(NOTE_SUFFIX):
            continue
        try:
            paths.append(path_of(name))
        except TraceError as error:
            failures.append(TraceFailure(without_secrets(str(name)), str(error)))
    try:
        return group_by_trace(paths), failures
    except TraceError:
        pass  # a name, or a file that it refers to, is the reason
    readable = [path for name in paths for path in _readable_parts(name, failures)]
    return group_by_trace(readable), failures


def _readable_parts(name: Path, failures: list[TraceFailure]) -> list[Path]:
    """Return a name if it can be read, or else those of its parts that can."""
    try:
        with at_hand([name]):
            group_by_trace([name])
    except TraceError as error:
        with suppress(TraceError):  # the same error
            if (parts := parts_of(name)) != [name]:
                return [path for part in parts for path in _readable_parts(part, failures)]
        failures.append(TraceFailure(shown_name(name), str(error)))
        return []
    return [name]
