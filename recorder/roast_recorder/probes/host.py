"""Load of each host, by the counters of :mod:`roast_recorder.host_counters`.

One process of a recording samples each host: the first worker that binds a name there. When
it ends, the system releases the name, and the next worker to try takes over. The scheduler
samples its host while no worker does.
"""

from __future__ import annotations

import errno
import socket
import sys
from pathlib import Path
from time import time
from typing import Any, Final

from roast_recorder.host_counters import Counters
from roast_recorder.probes import SchedulerProbe, WorkerProbe
from roast_recorder.scheduler.wire_format import Row, pack

#: Name that the sampling process of a host binds: an abstract address of a Unix socket, which
#: no other host or network namespace sees, and which leaves no file.
TURN: Final = "\0roast-host-{trace_id}"

#: Only Linux has abstract addresses. Elsewhere, the scheduler alone samples its host.
HAS_TURNS: Final = sys.platform == "linux"

#: Time after which the scheduler samples its host for the first time, unless a worker does.
FIRST_SAMPLE_SECONDS: Final = 1.0


class OnScheduler(SchedulerProbe):
    """Sample the scheduler's host while no worker of it does."""

    def _install(self) -> None:
        core = self.core
        self._host = HostSampler(core.trace_id, is_scheduler=True)
        interval = core.settings["host_interval_seconds"]
        first = min(interval, FIRST_SAMPLE_SECONDS)
        core.tap.every("host_sample", interval, self.finish, first)

    def finish(self) -> None:
        """Record a sample."""
        if (sample := self._host.take()) is not None:
            server_id = self.core.tap.read("host_sample", self.core.scheduler, "id")
            self.core.record("host_sample", server_id=server_id, **sample)


class OnWorker(WorkerProbe):
    """Sample the host, if this is the worker that does."""

    def _install(self) -> None:
        core = self.core
        self._samples: list[dict[str, Any]] = []
        self._host: HostSampler | None = HostSampler(core.trace_id)
        core.tap.until_closed(self._host.close)
        core.tap.every("host_sample", core.settings["host_interval_seconds"], self._sample)

    def _sample(self) -> None:
        if self._host is not None and (sample := self._host.take()) is not None:
            self._samples.append({"t": time(), **sample})

    def take(self) -> list[Row]:
        """Return the samples since the last call, on the scheduler's clock."""
        samples, self._samples = self._samples, []
        if not samples:
            return []
        about = {"worker": self.core.read("host_sample", "address")}
        about["server_id"] = self.core.read("host_sample", "id")
        delay = self.core.median_delay()
        samples = [{**one, "t": round(one["t"] + delay, 6), **about} for one in samples]
        return [("host_sample", len(samples), pack(samples))]

    def take_last(self) -> list[Row]:
        """Return the last samples: none follow."""
        self._sample()
        self._host = None
        return self.take()


class HostSampler:
    """Samples the host of one process, while it is the turn of this process.

    A worker keeps its turn until it is closed. The scheduler, with ``is_scheduler``, takes it
    for one sample, so that a worker which joins later becomes the sampling process.
    """

    def __init__(
        self, trace_id: str, *, is_scheduler: bool = False, root: Path = Path("/")
    ) -> None:
        self._name = TURN.format(trace_id=trace_id)
        self._is_scheduler = is_scheduler
        self._turn: socket.socket | None = None
        self._host = socket.gethostname()
        self._counters = Counters(root)

    def take(self) -> dict[str, Any] | None:
        """Return the fields of a sample; None while another process samples this host."""
        if not self._is_my_turn():
            return None
        try:
            return {"host": self._host, "metrics": self._counters.read()}
        finally:
            if self._is_scheduler:
                self.close()

    def close(self) -> None:
        """Leave the sampling of the host to another process."""
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.close()

    def _is_my_turn(self) -> bool:
        if not HAS_TURNS:
            return self._is_scheduler
        if self._turn is None:
            turn = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                turn.bind(self._name)
            except OSError as error:
                turn.close()
                if error.errno == errno.EADDRINUSE:
                    return False
                raise
            self._turn = turn
        return True
