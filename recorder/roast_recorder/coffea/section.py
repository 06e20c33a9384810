"""``with section("jet selection"):`` names a part of a task."""

from __future__ import annotations

import threading
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

from roast_recorder.coffea.measurement import (
    both_clocks,
    current,
    memory_bytes,
    quietly,
    tell_section,
    text_of,
)
from roast_recorder.process_state import here

if TYPE_CHECKING:
    from types import TracebackType


class section:  # noqa: N801 - it is used like a function
    """Measure a named part of a task: seconds, CPU seconds, memory, bytes read.

    Where nothing records it does nothing. Sections can be nested, and passed through as
    often as one likes, by several threads at a time as well.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> with section("jet selection"):
    ...     pass
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # One object can be in several threads at a time, and within itself.
        self._begun: dict[int, list[_Begin]] = {}

    def __enter__(self) -> None:
        if not here().listeners:
            return
        with quietly("a section is not measured"):
            bytes_read, memory = _bytes_read(), memory_bytes()
            begin = _Begin(bytes_read, memory, thread_time(), *both_clocks())
            self._begun.setdefault(threading.get_ident(), []).append(begin)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if not self._begun:
            return
        seconds, cpu_seconds = perf_counter(), thread_time()
        with quietly("a section is measured in vain"):
            begin = self._last_begin()
            if begin is not None:
                seconds, cpu_seconds = seconds - begin.seconds, cpu_seconds - begin.cpu_seconds
                self._tell(begin, seconds, cpu_seconds, exc)

    def __reduce__(self) -> tuple[Any, ...]:
        # Who is in it is no matter of another process.
        return section, (self._name,)

    def _last_begin(self) -> _Begin | None:
        """Take out what it was like when this thread came in."""
        thread = threading.get_ident()
        begun = self._begun.get(thread)
        if begun is None:
            return None
        begin = begun.pop()
        if not begun:
            del self._begun[thread]
        return begin

    def _tell(
        self, begin: _Begin, seconds: float, cpu_seconds: float, error: BaseException | None
    ) -> None:
        record = {
            "name": str(self._name),
            "thread": threading.get_ident(),
            "start_t": begin.t,
            "stop_t": begin.t + seconds,
            "cpu_seconds": cpu_seconds,
            "memory_delta": memory_bytes() - begin.memory,
        }
        before, after = begin.bytes_read, _bytes_read()
        if before is not None and after is not None:
            record["bytes_read"] = after - before
        if error is not None:
            record["exception"] = text_of(error)
        tell_section(record)


class _Begin(NamedTuple):
    """What it was like when a thread came into a section."""

    bytes_read: int | None
    memory: int
    cpu_seconds: float
    t: float
    seconds: float


def _bytes_read() -> int | None:
    measurement = current()
    return None if measurement is None else measurement.bytes_read()
