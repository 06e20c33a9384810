"""Darshan logs: the file accesses of a job, as records."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import orjson

from roast_analyze.errors import MissingExtra
from roast_analyze.imports.append_import import ImportData
from roast_analyze.imports.subprocess_reader import read_lines

#: Since version 3.3 the name of a log contains the job and the process id.
_PID: Final = re.compile(r"_id[0-9]+-([0-9]{1,9})_")


@contextmanager
def read(path: Path) -> Iterator[ImportData]:
    """Read a log; raise MissingExtra without PyDarshan, and TraceError if it is not a log."""
    if importlib.util.find_spec("darshan") is None:
        raise MissingExtra(
            "reading Darshan logs needs darshan: "
            "pip install -U '.[analyze,darshan]' in a clone of roast"
        )
    with read_lines(path, "darshan_log", "a Darshan log") as lines:
        facts = orjson.loads(lines.readline())
        # The name of a log of several processes contains the id of only one of them.
        pid = _PID.search(path.name) if facts["value"]["processes"] == 1 else None
        facts["pid"] = int(pid[1]) if pid else None
        yield ImportData("darshan", facts, map(orjson.loads, lines))
