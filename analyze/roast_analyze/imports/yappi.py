"""Functions that Yappi measured, as records."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson

from roast_analyze.errors import TraceError
from roast_analyze.imports.found import Found
from roast_analyze.imports.subprocess_reader import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def read(path: Path, *, worker: str | None, clock: str | None) -> Iterator[Found]:
    """Read what Yappi saved.

    Parameters
    ----------
    path : Path
    worker : str or None
        Address of the worker that was measured.
    clock : {'cpu', 'wall', None}
        By which it was measured, if the file does not say it.

    Raises
    ------
    TraceError
        If it is not what Yappi saves, or says another clock.
    """
    with lines_of(path, "yappi_stats", "a file of Yappi's") as lines:
        facts: dict[str, Any] = orjson.loads(lines.readline())
        said = facts["value"].setdefault("clock", clock)
        if clock not in (None, said):
            raise TraceError(
                f"{str(path)!r} was measured by the {said} clock, not by --clock {clock}"
            )
        records = ({"kind": "function", **orjson.loads(line)} for line in lines)
        yield Found("yappi", {**facts, "worker": worker}, records)


def worker_named(trace: Path, name: str | None) -> str | None:
    """Give the address of a worker of a trace.

    Parameters
    ----------
    trace : Path
    name : str or None
        Its address or name.

    Raises
    ------
    TraceError
        If there is no such worker, or several.
    """
    if name is None:
        return None
    from roast_analyze.open.session import Session

    with Session(trace) as opened:
        rows = opened.sql("SELECT DISTINCT worker, name FROM workers ORDER BY ALL").fetchall()
    found = sorted({address for address, called in rows if name in (address, called)})
    if len(found) == 1:
        return str(found[0])
    if found:
        raise TraceError(f"several workers are {name!r}: {', '.join(found)}; give the address")
    there = ", ".join(str(called or address) for address, called in rows[:10])
    raise TraceError(f"no worker is {name!r}; there are {there or 'none in this trace'}")
