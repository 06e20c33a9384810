"""The recorder's worker plugin: sends what it records on a worker to the scheduler.

The scheduler registers the plugin on all workers, including those that join later, and
unregisters it when the recording ends. It is pickled by value, so workers need nothing
installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from functools import partial
from random import random
from time import time
from typing import TYPE_CHECKING, Any

import distributed.worker
from distributed import get_worker
from distributed.core import rpc
from distributed.diagnostics.plugin import WorkerPlugin

from roast_recorder import environment
from roast_recorder.coffea.instrumentation import add_listener, remove_listener
from roast_recorder.event_loop import observe_stalls
from roast_recorder.host import HostSampler
from roast_recorder.scheduler.tap import Tap
from roast_recorder.scheduler.wire_format import Row, loss, pack
from roast_recorder.settings import recorded_kinds
from roast_recorder.worker.log_observer import LogObserver
from roast_recorder.worker.profiler import (
    ProfileReader,
    count_innermost,
    stop_counting_innermost,
    time_samples,
)

if TYPE_CHECKING:
    from distributed import Worker

    from roast_recorder.coffea.measurement import Records

#: Name of the plugin of one recording.
PLUGIN_NAME = "roast-recorder-{trace_id}"

#: Topic of the events that workers send to the recorder of one trace.
TOPIC = "roast-worker-{trace_id}"

#: Interval at which pending stalls and chunks are sent, and the size of the logs is checked.
SEND_INTERVAL_SECONDS = 0.5


def operation_name(operation: str, trace_id: str) -> str:
    """Return the name of a recorder's operation among the scheduler's handlers."""
    return f"roast_{operation}_{trace_id}"


class WorkerRecorder(WorkerPlugin):
    """Measure the chunks of one worker, and read its profiles and logs, for one recording.

    `settings` are those of :meth:`roast_recorder.settings.Settings.as_dict`.
    """

    def __init__(self, trace_id: str, settings: dict[str, Any]) -> None:
        self.name = PLUGIN_NAME.format(trace_id=trace_id)
        self._trace_id = trace_id
        self._topic = TOPIC.format(trace_id=trace_id)
        self._process_operation = operation_name("process", trace_id)
        self._settings = settings
        # Filled by the threads of tasks and emptied by the event loop: a deque needs no lock.
        self._measured: deque[Records] = deque()
        self._stalls: list[dict[str, Any]] = []
        self._host: HostSampler | None = None
        self._host_samples: list[dict[str, Any]] = []
        self._delays: deque[float] = deque(maxlen=120)
        self._profiles: ProfileReader | None = None
        self._logs: LogObserver | None = None
        # Records by kind and reason, 0 if their number is unknown.
        self._losses: Counter[tuple[str, str]] = Counter()
        self._describing: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def setup(self, worker: Worker) -> None:
        """Subscribe to everything that is recorded on this worker."""
        self._worker = worker
        tap = self._tap = Tap(self._lose)
        self._read = tap.read
        # Several workers can share a process.
        name = self._listener_name = f"{self.name}-{id(worker)}"
        settings, kinds = self._settings, recorded_kinds(self._settings)
        if settings["measure_chunks"] and not kinds.isdisjoint({"chunk", "section"}):
            with tap.source("chunk", "section"):
                tap.until_closed(lambda: remove_listener(name))
                add_listener(name, self._on_measured)
        if "profile" in kinds:
            with tap.source("profile"):
                tap.until_closed(lambda: stop_counting_innermost(name))
                count_innermost(name)
                time_samples(tap, worker)
                self._profiles = ProfileReader.of_worker(worker, time() + self._delay())
                interval = settings["profile_interval_seconds"]
                # Spread the messages of a thousand workers over the interval.
                first = interval * random()  # noqa: S311
                send = lambda: self._send(self._take_profiles())  # noqa: E731
                self._start(repeat(tap, "profile", send, interval, first))
        if "environment" in kinds:
            self._describing = self._start(self._describe_process())
        if "stall" in kinds:
            with tap.source("stall"):
                observe_stalls(tap, worker, lambda **fields: self._stalls.append(fields))
        if "host_sample" in kinds:
            with tap.source("host_sample"):
                host = self._host = HostSampler(self._trace_id)
                tap.until_closed(host.close)
                interval = settings["host_interval_seconds"]
                self._start(repeat(tap, "host_sample", self._sample_host, interval))
        transfers, transitions = settings["transfers"], settings["worker_transitions"]
        if transfers or transitions:
            self._logs = LogObserver(worker, tap, transfers=transfers, transitions=transitions)
            with tap.source():  # without it, they are sent when many are pending
                heartbeats, send_logs = worker.periodic_callbacks["heartbeat"], self._send_logs
                tap.method("transfer", heartbeats, "callback", after=lambda _: send_logs())
        self._start(repeat(tap, "stall", self._send_pending, SEND_INTERVAL_SECONDS))

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - Dask's signature
        """Send what is pending, and restore everything."""
        for task in self._tasks:
            task.cancel()
        self._sample_host()
        self._tap.close()
        self._send_pending()
        self._send(self._take_profiles(is_last=True))
        self._send_logs()
        self._logs = None

    def transition(self, *_arguments: Any, **_others: Any) -> None:
        """Send the chunk of a task before the scheduler is informed of the task's end."""
        if self._measured:
            self._send(self._take_measured())

    async def flush(self) -> None:
        """Send what is pending, and return when the scheduler has received it.

        It is called once, at the end of the recording: no profiles and host samples follow.
        """
        if self._describing is not None:
            await asyncio.wait([self._describing])
        self._sample_host()
        self._host = None
        rows = self._take_measured() + self._take_stalls() + self._take_profiles(is_last=True)
        rows += self._take_host_samples() + self._take_logs() + self._take_losses()
        if rows:
            # `Worker.log_event` returns before the message is sent.
            await self._call_with(rows)

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.append(task)
        return task

    def _send(self, rows: list[Row]) -> None:
        """Send rows without their time, which the scheduler adds."""
        rows += self._take_losses()
        if not rows:
            return
        try:
            self._worker.log_event(self._topic, {"rows": rows})
        except Exception:  # noqa: BLE001 - of an unknown version, which may have the other way
            self._start(self._send_by_call(rows))

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
                    self._tap.failed(kind, error, records)

    async def _call_with(self, rows: list[Row]) -> None:
        """Send rows, and return when the scheduler has received them."""
        scheduler: Any = self._worker.scheduler
        await scheduler.log_event(topic=self._topic, msg={"rows": rows})

    def _send_pending(self) -> None:
        """Send what waits for neither a heartbeat nor the interval of profiles."""
        self._send(self._take_measured() + self._take_stalls() + self._take_host_samples())
        if self._logs and self._logs.crowded:
            self._send_logs()

    def _lose(self, kind: str, reason: str, records: int) -> None:
        self._losses[kind, reason] += records

    def _take_losses(self) -> list[Row]:
        """Return the losses since the last call."""
        losses, self._losses = self._losses, Counter()
        t = time() + (self._delay() if losses else 0.0)
        return [
            ("loss", 1, loss(reason, kind, records, t, t))
            for (kind, reason), records in losses.items()
        ]

    def _delay(self) -> float:
        """Return what must be added to this worker's clock for the scheduler's."""
        return float(self._read("stall", self._worker, "scheduler_delay", 0.0))

    def _take_stalls(self) -> list[Row]:
        """Return the stalls since the last call."""
        self._delays.append(self._delay())
        stalls, self._stalls = self._stalls, []
        if not stalls:
            return []
        delay = self._median_delay()
        for stall in stalls:
            stall["worker"] = self._read("stall", self._worker, "address")
            stall["start_t"] += delay
            stall["stop_t"] += delay
        return [("stall", len(stalls), pack(stalls))]

    def _median_delay(self) -> float:
        """Return a delay without the effect of a stall, which distorts Dask's estimate."""
        delays = self._delays or [self._delay()]
        return sorted(delays)[len(delays) // 2]

    def _sample_host(self) -> None:
        """Sample the host, if this is the worker that does."""
        if self._host is None:
            return
        with self._tap.guard("host_sample"):
            sample = self._host.take()
            if sample is not None:
                self._host_samples.append({"t": time(), **sample})

    def _take_host_samples(self) -> list[Row]:
        """Return the samples of the host since the last call."""
        samples, self._host_samples = self._host_samples, []
        if not samples:
            return []
        read, delay = partial(self._read, "host_sample", self._worker), self._median_delay()
        for sample in samples:
            sample["t"] = round(sample["t"] + delay, 6)
            sample |= {"worker": read("address"), "server_id": read("id")}
        return [("host_sample", len(samples), pack(samples))]

    def _take_logs(self) -> list[Row]:
        """Return the entries of logs since the last call."""
        rows: list[Row] = []
        if self._logs:
            with self._tap.guard("transfer"):
                rows = self._logs.take()
        return rows

    def _on_measured(self, records: Records) -> None:
        """Queue the records of a chunk or section of this worker.

        This runs in the task's thread. Waking the event loop here would delay the task.
        """
        with self._tap.guard("chunk"):
            self._queue_measured(records)

    def _queue_measured(self, records: Records) -> None:
        worker, delay, read = self._worker, self._delay(), partial(self._read, "chunk")
        try:
            if get_worker() is not worker:
                return
            # Through the module: a `threading.local` cannot be pickled by value.
            threads: Any = distributed.worker
            key: Any = getattr(threads.thread_state, "key", None)
            if threading.get_ident() == read(worker, "thread_id"):
                return  # a coroutine on the event loop
        except ValueError:
            if threading.current_thread() is threading.main_thread():
                return  # the program's own section
            key = None  # a thread that a task started
        task = (read(worker, "state.tasks") or {}).get(key)
        address = read(worker, "address")
        # Without a run id, a record would be one of a task instead of an attempt. Dask's are
        # positive.
        unknown = -int(1e6 * time())
        run_id = None if task is None else read(task, "run_id", unknown)
        attempt = {"key": str(key), "run_id": run_id, "worker": address}
        completed = []
        for kind, fields in records:
            # Convert to the scheduler's clock; Dask estimates the offset at each heartbeat.
            times = {name: fields[name] + delay for name in ("start_t", "stop_t")}
            if kind == "loss":
                completed.append((kind, {**fields, **times}))
            elif key is None:
                reason = "measured in a thread that a task started"
                completed.append(("loss", loss(reason, kind, 1, **times)))
            else:
                complete = {**fields, **times, **attempt}
                # The scheduler has already read it from the task.
                complete.pop("usermeta", None)
                completed.append((kind, complete))
        self._measured.append(completed)

    def _take_measured(self) -> list[Row]:
        """Return the chunks and sections since the last call."""
        by_kind: dict[str, list[dict[str, Any]]] = {}
        while self._measured:
            for kind, fields in self._measured.popleft():
                by_kind.setdefault(kind, []).append(fields)
        # Packed: Dask closes the connection when it cannot encode a name.
        return [(kind, len(several), pack(several)) for kind, several in by_kind.items()]

    async def _describe_process(self) -> None:
        # Without a connection, the scheduler has gone.
        with self._tap.guard("environment"), contextlib.suppress(OSError):
            worker, read = self._worker, partial(self._read, "environment", self._worker)
            about = {"worker": read("address"), "server_id": read("id")}
            # In a thread, because it reads files.
            facts = await environment.call_in_thread(
                environment.packed_facts, "worker", self._settings, read("plugins"), about
            )
            # Not an event: it would be dropped until the connection for events is open.
            # A separate connection: an idle one in the worker's pool would change how the
            # worker's next request is sent.
            async with rpc(
                worker.scheduler.address, connection_args=worker.connection_args
            ) as scheduler:
                operation = getattr(scheduler, self._process_operation)
                await operation(facts=facts)

    def _take_profiles(self, *, is_last: bool = False) -> list[Row]:
        """Return the profiles since the last call; none follow the last."""
        if self._profiles is None:
            return []
        with self._tap.guard("profile"):
            read, running = partial(self._read, "profile", self._worker), None
            if is_last and (trees := read("profile_keys")) is not None:
                running = time() + self._delay(), dict(trees)
            reader, self._profiles = self._profiles, None
            records = reader.take(running)
            if not is_last:
                self._profiles = reader
            if records:
                content = read("address"), read("id"), pack(records)
                return [("profile", len(records), content)]
        return []

    def _send_logs(self) -> None:
        if not self._logs:
            return
        try:
            stream: Any = self._worker.batched_stream
            is_connected = stream and stream.comm and not stream.comm.closed()
        except Exception:  # noqa: BLE001 - it is not known
            is_connected = True
        # Without a connection Dask would drop the message; the log entries stay pending.
        if is_connected:
            self._send(self._take_logs())


async def repeat(
    tap: Tap, kind: str, call: Callable[[], None], interval: float, first: float = 0.0
) -> None:
    """Call a guarded function in intervals, the first time after `first` seconds."""
    await asyncio.sleep(first)
    while True:
        with tap.guard(kind, 0):
            call()
        await asyncio.sleep(interval)
