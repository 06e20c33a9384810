"""Yappi statistics: profiled functions, as records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from roast_analyze.errors import TraceError
from roast_analyze.imports.append_import import ImportData
from roast_analyze.imports.subprocess_reader import read_lines


@contextmanager
def read(path: Path, *, worker: str | None, clock: str | None) -> Iterator[ImportData]:
    """Read a file that Yappi saved on a worker; raise TraceError if it is not one.

    `clock` is Yappi's clock, ``cpu`` or ``wall``, for formats that do not contain it.
    """
    with read_lines(path, "yappi_stats", "a file saved by Yappi") as lines:
        facts: dict[str, Any] = orjson.loads(lines.readline())
        # The clock in a file takes precedence; the option is for files without it.
        recorded = facts["value"].setdefault("clock", clock)
        if clock not in (None, recorded):
            raise TraceError(
                f"{str(path)!r} was measured with the {recorded} clock: omit --clock {clock}"
            )
        records = ({"kind": "function", **orjson.loads(line)} for line in lines)
        yield ImportData("yappi", {**facts, "worker": worker}, records)
