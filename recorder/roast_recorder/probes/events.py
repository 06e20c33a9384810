"""Dask's events, of all topics: what its scheduler, its plugins and users log."""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import Any, Final

from roast_recorder.probes import SchedulerProbe
from roast_recorder.scheduler.buffer import estimated_bytes
from roast_recorder.scheduler.wire_format import MAX_CHARACTERS, Row, plain_in_steps

#: Estimated size of an event beyond which it is made plain in steps.
LARGE_EVENT_BYTES: Final = 50_000


class OnScheduler(SchedulerProbe):
    """Record every event that no other probe has recorded."""

    def on_event(self, topic: Any, message: Any) -> bool:
        """Record an event, with the worker if it is about one."""
        worker = message.get("worker") if isinstance(message, dict) else None
        if not isinstance(worker, str):
            worker = topic if topic in self.core.workers else None
        fields = {"topic": topic, "worker": worker, "payload": message}
        nbytes = estimated_bytes(message)
        if nbytes > LARGE_EVENT_BYTES:
            # Dask keeps the event as well.
            rows = _event_rows(time(), fields)
            self.core.defer("event", rows, min(nbytes, MAX_CHARACTERS))
        else:
            self.core.record("event", **fields)
        return True


def _event_rows(t: float, fields: dict[str, Any]) -> Iterator[Row | None]:
    """Yield the row of a large event after the steps that make it plain."""
    plain_fields = yield from plain_in_steps(fields)
    yield "event", t, 1, (plain_fields,)
