"""The context manager ``section("jet selection")``, which names a part of a task."""

from __future__ import annotations

import threading
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

from roast_recorder.coffea.measurement import (
    current_measurement,
    errors_logged,
    exception_text,
    memory_bytes,
    publish_section,
    read_clocks,
)
from roast_recorder.process_state import here

if TYPE_CHECKING:
    from types import TracebackType


class section:  # noqa: N801 - it is used like a function
    """Measure a named part of a task: seconds, CPU seconds, memory, bytes read.

    Without a recording it does nothing. Sections can be nested and repeated, and one object
    can be used by several threads at a time.

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
        #: By thread, because several threads can be inside; a list, because of nesting.
        self._starts: dict[int, list[_Start]] = {}

    def __enter__(self) -> None:
        if not here().listeners:
            return
        with errors_logged("begin a section"):
            bytes_read, memory = _bytes_read(), memory_bytes()
            start = _Start(bytes_read, memory, thread_time(), *read_clocks())
            self._starts.setdefault(threading.get_ident(), []).append(start)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        thread = threading.get_ident()
        if thread not in self._starts:
            return
        seconds, cpu_seconds = perf_counter(), thread_time()
        start = self._starts[thread].pop()
        if not self._starts[thread]:
            del self._starts[thread]
        with errors_logged("measure a section"):
            fields = {
                "name": str(self._name),
                "thread": thread,
                "start_t": start.t,
                "stop_t": start.t + (seconds - start.seconds),
                "cpu_seconds": cpu_seconds - start.cpu_seconds,
                "memory_delta": memory_bytes() - start.memory,
            }
            before, after = start.bytes_read, _bytes_read()
            if before is not None and after is not None:
                fields["bytes_read"] = after - before
            if exc is not None:
                fields["exception"] = exception_text(exc)
            publish_section(fields)

    def __reduce__(self) -> tuple[Any, ...]:
        # The threads inside belong to this process.
        return section, (self._name,)


class _Start(NamedTuple):
    """Values at the start of a section."""

    bytes_read: int | None
    memory: int
    cpu_seconds: float
    t: float
    seconds: float


def _bytes_read() -> int | None:
    measurement = current_measurement()
    return None if measurement is None else measurement.requested()
