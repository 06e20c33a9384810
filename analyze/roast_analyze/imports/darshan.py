"""Logs of Darshan: what a job did to its files, as records."""

from __future__ import annotations

import importlib.util
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import orjson

from roast_analyze.errors import MissingExtra
from roast_analyze.imports.found import Found
from roast_analyze.imports.subprocess_reader import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: The command that installs what reads logs.
_INSTALL: Final = "pip install -U 'roast-trace[analyze,darshan]'"

#: Darshan names a log by the number of the job and the process id, since version 3.3.
_PID: Final = re.compile(r"_id[0-9]+-([0-9]{1,9})_")


@contextmanager
def read(path: Path) -> Iterator[Found]:
    """Read a log.

    Parameters
    ----------
    path : Path

    Raises
    ------
    MissingExtra
        If PyDarshan is not installed.
    TraceError
        If it is no log, or not whole.
    """
    if importlib.util.find_spec("darshan") is None:
        raise MissingExtra(f"darshan is not installed, which reads its logs: {_INSTALL}")
    with lines_of(path, "darshan_log", "a log of Darshan's") as lines:
        facts = orjson.loads(lines.readline())
        yield Found(
            "darshan",
            {**facts, "pid": _pid(path) if facts["value"]["processes"] == 1 else None},
            map(orjson.loads, lines),
        )


def _pid(path: Path) -> int | None:
    """Tell of which process a log is, by its name."""
    named = _PID.search(path.name)
    return int(named[1]) if named else None
