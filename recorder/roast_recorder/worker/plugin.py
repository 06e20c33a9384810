"""The recorder's worker plugin: sends what its probes record on a worker to the scheduler.

The scheduler registers the plugin on all workers, including those that join later, and
unregisters it when the recording ends. It is pickled by value, so workers need nothing
installed.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Coroutine
from time import time
from typing import TYPE_CHECKING, Any

from distributed.core import rpc
from distributed.diagnostics.plugin import WorkerPlugin

from roast_recorder.probes import WorkerProbe, load
from roast_recorder.scheduler.tap import Tap
from roast_recorder.scheduler.wire_format import Row, loss
from roast_recorder.settings import recorded_kinds

if TYPE_CHECKING:
    from distributed import Worker

#: Name of the plugin of one recording.
PLUGIN_NAME = "roast-recorder-{trace_id}"

#: Topic of the events that workers send to the recorder of one trace.
TOPIC = "roast-worker-{trace_id}"

#: Interval at which pending rows are sent.
SEND_INTERVAL_SECONDS = 0.5


def operation_name(operation: str, trace_id: str) -> str:
    """Return the name of a recorder's operation among the scheduler's handlers."""
    return f"roast_{operation}_{trace_id}"


class WorkerRecorder(WorkerPlugin):
    """The probes of one recording on one worker.

    `settings` are those of :meth:`roast_recorder.settings.Settings.as_dict`. The attributes
    without an underscore are for probes.
    """

    def __init__(self, trace_id: str, settings: dict[str, Any]) -> None:
        self.name = PLUGIN_NAME.format(trace_id=trace_id)
        self.trace_id = trace_id
        self.settings = settings
        self.kinds = recorded_kinds(settings)
        #: Kinds and class of each probe.
        self.sources = load("OnWorker", self.kinds, settings)
        self._topic = TOPIC.format(trace_id=trace_id)
        self._probes: list[tuple[tuple[str, ...], WorkerProbe]] = []
        self._delays: deque[float] = deque(maxlen=120)
        # Records by kind and reason, 0 if their number is unknown.
        self._losses: Counter[tuple[str, str]] = Counter()
        self._running: list[asyncio.Task[None]] = []
        self._sending: list[asyncio.Task[None]] = []

    def setup(self, worker: Worker) -> None:
        """Install the probes on this worker."""
        self.worker = worker
        self.tap = Tap(self._lose)
        # Several workers can share a process.
        self.name_here = f"{self.name}-{id(worker)}"
        for kinds, create in self.sources:
            with self.tap.source(*kinds):
                self._probes.append((kinds, create(self)))
        self.tap.every("stall", SEND_INTERVAL_SECONDS, self._send_pending)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - Dask's signature
        """Send what is pending, and restore everything."""
        for task in self._running:
            task.cancel()
        rows = self._take("take_last")
        self.tap.close()
        self.send(rows)

    async def flush(self) -> None:
        """Send what is pending, and return when the scheduler has received it.

        It is called once, at the end of the recording.
        """
        if self._running:
            await asyncio.wait(self._running)
        rows = self._take("take_last") + self._take_losses()
        if rows:
            # `Worker.log_event` returns before the message is sent.
            await self._call_with(rows)

    def _take(self, method: str) -> list[Row]:
        rows: list[Row] = []
        for kinds, probe in self._probes:
            with self.tap.guard(kinds):
                rows += getattr(probe, method)()
        return rows

    # -- for probes ----------------------------------------------------------------------

    def read(self, kind: str, path: str, default: Any = None) -> Any:
        """Return an attribute of the worker, as :meth:`Tap.read`."""
        return self.tap.read(kind, self.worker, path, default)

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine, whose end the end of the recording waits for."""
        self._running.append(asyncio.get_running_loop().create_task(coroutine))

    def delay(self, kind: str = "stall") -> float:
        """Return what must be added to this worker's clock for the scheduler's."""
        return float(self.read(kind, "scheduler_delay", 0.0))

    def median_delay(self) -> float:
        """Return a delay without the effect of a stall, which distorts Dask's estimate."""
        delays = self._delays or [self.delay()]
        return sorted(delays)[len(delays) // 2]

    async def call(self, operation: str, **arguments: Any) -> None:
        """Call one of the recorder's operations on the scheduler."""
        worker: Any = self.worker
        # Not an event: it would be dropped until the connection for events is open.
        # A separate connection: an idle one in the worker's pool would change how the worker's
        # next request is sent.
        async with rpc(
            worker.scheduler.address, connection_args=worker.connection_args
        ) as scheduler:
            await getattr(scheduler, operation_name(operation, self.trace_id))(**arguments)

    def send(self, rows: list[Row]) -> None:
        """Send rows without their time, which the scheduler adds."""
        rows += self._take_losses()
        if not rows:
            return
        try:
            self.worker.log_event(self._topic, {"rows": rows})
        except Exception:  # noqa: BLE001 - of an unknown version, which may have the other way
            loop = asyncio.get_running_loop()
            self._sending.append(loop.create_task(self._send_by_call(rows)))

    # -- sending -------------------------------------------------------------------------

    async def _send_by_call(self, rows: list[Row]) -> None:
        try:
            await self._call_with(rows)
        except OSError:  # the scheduler has gone
            pass
        except Exception as error:  # noqa: BLE001 - the losses are sent with the next rows
            for kind, records, content in rows:
                if kind == "loss" and type(content) is dict:
                    lost = content.get("records", 0)
                    self._losses[content["record_kind"], content["reason"]] += lost
                else:
                    self.tap.failed(kind, error, records)

    async def _call_with(self, rows: list[Row]) -> None:
        """Send rows, and return when the scheduler has received them."""
        scheduler: Any = self.worker.scheduler
        await scheduler.log_event(topic=self._topic, msg={"rows": rows})

    def _send_pending(self) -> None:
        self._delays.append(self.delay())
        self.send(self._take("take"))

    def _lose(self, kind: str, reason: str, records: int) -> None:
        self._losses[kind, reason] += records

    def _take_losses(self) -> list[Row]:
        """Return the losses since the last call."""
        losses, self._losses = self._losses, Counter()
        t = time() + (self.delay() if losses else 0.0)
        return [
            ("loss", 1, loss(reason, kind, records, t, t))
            for (kind, reason), records in losses.items()
        ]
