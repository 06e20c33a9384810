"""Stalls of the event loop of a scheduler or worker.

Dask's servers have a tick on their event loop every 20 ms
(``distributed.admin.tick.interval``). A late tick shows that something else occupied the
event loop, the GIL or the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final

from roast_recorder.probes import SchedulerProbe, WorkerProbe
from roast_recorder.scheduler.wire_format import Row, pack

if TYPE_CHECKING:
    from roast_recorder.scheduler.tap import Tap

#: Shortest stall that is recorded.
MIN_STALL_SECONDS: Final = 0.1


class OnScheduler(SchedulerProbe):
    """Record the stalls of the scheduler."""

    def _install(self) -> None:
        core = self.core
        observe_stalls(core.tap, core.scheduler, partial(core.record, "stall"))


class OnWorker(WorkerProbe):
    """Report the stalls of a worker, on the scheduler's clock."""

    def _install(self) -> None:
        core = self.core
        self._stalls: list[dict[str, Any]] = []
        observe_stalls(core.tap, core.worker, lambda **fields: self._stalls.append(fields))

    def take(self) -> list[Row]:
        """Return the stalls since the last call."""
        stalls, self._stalls = self._stalls, []
        delay = self.core.median_delay() if stalls else 0.0
        for stall in stalls:
            stall["worker"] = self.core.read("stall", "address")
            stall["start_t"] += delay
            stall["stop_t"] += delay
        return [("stall", len(stalls), pack(stalls))] if stalls else []


def observe_stalls(tap: Tap, server: Any, listener: Callable[..., None]) -> None:
    """Call `listener` with the fields of each stall by name, until the tap is closed.

    A stall lasts from the time at which a tick was due until it ran, on the clock of this
    process.
    """
    ticks = server.periodic_callbacks["tick"]
    interval_seconds, server_id = ticks.callback_time / 1000, server.id
    last: float | None = None

    def on_tick(_message: Any) -> None:
        nonlocal last
        now = monotonic()
        late_seconds = 0.0 if last is None else now - last - interval_seconds
        last = now
        if late_seconds >= MIN_STALL_SECONDS:
            t = time()
            listener(server_id=server_id, start_t=t - late_seconds, stop_t=t)

    tap.method("stall", ticks, "callback", on_tick)
