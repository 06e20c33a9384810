"""The context manager ``section("jet selection")``, which names a part of a task."""

from __future__ import annotations

import threading
from time import perf_counter, thread_time
from typing import Any

from roast_recorder.coffea.measurement import (
    current_measurement,
    errors_logged,
    memory_bytes,
    publish_section,
    read_clocks,
)
from roast_recorder.exception_text import exception_text
from roast_recorder.process_state import here


class section:  # noqa: N801 - it is used like a function
    """Measure a named part of a task: seconds, CPU seconds, memory, bytes read.

    Without a recording, and in a coroutine, it does nothing. Sections can be nested and
    repeated, and one object can be used by several threads at a time.

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
        self._starts: dict[int, list[tuple[Any, ...]]] = {}

    def __enter__(self) -> None:
        if not here().listeners:
            return
        with errors_logged("begin a section"):
            start = _bytes_read(), memory_bytes(), thread_time(), *read_clocks()
            self._starts.setdefault(threading.get_ident(), []).append(start)

    def __exit__(self, exc_type: object, exc: BaseException | None, tb: object) -> None:
        thread = threading.get_ident()
        if thread not in self._starts:
            return
        seconds, cpu_seconds = perf_counter(), thread_time()
        bytes_before, memory_before, cpu_before, start_t, started_at = self._starts[
            thread
        ].pop()
        if not self._starts[thread]:
            del self._starts[thread]
        with errors_logged("measure a section"):
            bytes_read = _bytes_read()
            fields = {
                "name": str(self._name),
                "thread": thread,
                "start_t": start_t,
                "stop_t": start_t + (seconds - started_at),
                "cpu_seconds": cpu_seconds - cpu_before,
                "memory_delta": memory_bytes() - memory_before,
                "exception": None if exc is None else exception_text(exc),
            }
            # The chunk's file may be opened, or the chunk end, within the section.
            if bytes_before is not None and bytes_read is not None:
                fields["bytes_read"] = bytes_read - bytes_before
            publish_section(fields)

    def __reduce__(self) -> tuple[Any, ...]:
        # The threads inside belong to this process.
        return section, (self._name,)


def _bytes_read() -> int | None:
    measurement = current_measurement()
    return None if measurement is None else measurement.requested()
