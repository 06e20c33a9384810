"""Stalls of the event loop of a scheduler or worker.

Dask's servers have a tick on their event loop every 20 ms
(``distributed.admin.tick.interval``). A late tick shows that something else occupied the
event loop, the GIL or the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from roast_recorder.scheduler.tap import Tap

#: Shortest stall that is recorded.
MIN_STALL_SECONDS: Final = 0.1


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
