"""The recorder on a worker: it tells of chunks, of what the profiler saw, and of its logs.

It comes from the scheduler to all workers, to those that come later as well, and goes when
the recording ends. It travels by value, so workers need nothing installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable
from random import random
from time import time
from typing import TYPE_CHECKING, Any

import distributed.worker
from distributed import get_worker
from distributed.diagnostics.plugin import WorkerPlugin

from roast_recorder import process
from roast_recorder.coffea.instrumentation import listen, stop_listening
from roast_recorder.scheduler.wire_format import pack
from roast_recorder.worker.log_observer import WorkerLogs, after_heartbeats
from roast_recorder.worker.profiler import (
    Profiler,
    note_innermost,
    note_no_longer,
    profiler_of_worker,
)

if TYPE_CHECKING:
    from distributed import Worker

#: Workers speak to the recorder of one trace on the topic of this name.
TOPIC = "roast-worker-{trace_id}"

#: The scheduler's operation by which workers say, once, what they are.
TELL = "roast_tell_{trace_id}"

#: How long a chunk waits to be told of if its task goes on, and logs in which much waits.
SEND_INTERVAL_SECONDS = 0.5

#: What the meter of one trace is called among the plugins of a worker.
METER_NAME = "roast-recorder-{trace_id}"


class WorkerMeter(WorkerPlugin):
    """Measures the chunks of one worker, and reads its profiles and logs, for one recorder.

    Parameters
    ----------
    trace_id : str
    chunks : bool
        Whether chunks and sections are measured.
    profile_interval_seconds : float or None
        How often profiles are sent. None: never.
    facts : dict or None
        The settings by which the worker says, once, what it runs with and on. None: never.
    transfers, transitions : bool
        Whether the logs of transfers and of transitions are read.
    """

    def __init__(
        self,
        trace_id: str,
        *,
        chunks: bool,
        profile_interval_seconds: float | None,
        facts: dict[str, Any] | None = None,
        transfers: bool = False,
        transitions: bool = False,
    ) -> None:
        self.name = METER_NAME.format(trace_id=trace_id)
        self._topic = TOPIC.format(trace_id=trace_id)
        self._tell = TELL.format(trace_id=trace_id)
        self._chunks = chunks
        self._profile_interval_seconds = profile_interval_seconds
        self._facts = facts
        self._saying: asyncio.Task[None] | None = None
        self._profiler: Profiler | None = None
        self._wanted_logs = {"transfers": transfers, "transitions": transitions}
        self._logs: WorkerLogs | None = None
        self._leave_heartbeats: Callable[[], None] | None = None
        self._waiting: deque[dict[str, Any]] = deque()
        self._worker: Worker | None = None
        self._doing: list[asyncio.Task[None]] = []

    def setup(self, worker: Worker) -> None:
        """Begin to listen."""
        self._worker = worker
        do = asyncio.get_running_loop().create_task
        if self._chunks:
            listen(self._name_on(worker), _hears_chunks(worker, self._waiting))
            self._doing.append(do(self._send_now_and_then()))
        if self._profile_interval_seconds is not None:
            note_innermost(self._name_on(worker))
            self._profiler = profiler_of_worker(worker, time() + worker.scheduler_delay)
            self._doing.append(do(self._gather(worker)))
        if self._facts is not None:
            self._saying = do(self._say_what_it_is(worker, self._facts))
            self._doing.append(self._saying)
        if any(self._wanted_logs.values()):
            self._logs = WorkerLogs(worker, **self._wanted_logs)
            self._leave_heartbeats = after_heartbeats(worker, self._tell_logs)
            self._doing.append(do(self._tell_crowded_logs()))

    def teardown(self, worker: Worker) -> None:
        """Stop to listen; say what is left to be said."""
        stop_listening(self._name_on(worker))
        note_no_longer(self._name_on(worker))
        for doing in self._doing:
            doing.cancel()
        self._send()
        if told := self._last_profiles(worker):
            worker.log_event(self._topic, told)
        if self._logs is not None and self._leave_heartbeats is not None:
            self._leave_heartbeats()
            self._tell_logs()
            self._logs.leave()
            self._logs = None

    def transition(self, key: Any, start: str, finish: str, **_others: Any) -> None:  # noqa: ARG002
        """Tell of the chunk that a task has made, before the scheduler hears of its end."""
        if self._waiting:
            self._send()

    async def tell_the_rest(self, worker: Worker) -> None:
        """Tell the scheduler what is left to be told, and return when it knows."""
        if self._saying is not None:
            await asyncio.wait([self._saying])
        scheduler: Any = worker.scheduler
        last = [self._last_profiles(worker), self._logs and self._logs.take()]
        for told in filter(None, last):
            await scheduler.log_event(topic=self._topic, msg=told)

    def _send(self) -> None:
        while self._waiting and self._worker is not None:
            # As text: names that Dask cannot send would cost the worker its connection.
            text = json.dumps(self._waiting.popleft(), default=str)
            self._worker.log_event(self._topic, {"measured": text})

    async def _send_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(SEND_INTERVAL_SECONDS)
            self._send()

    async def _say_what_it_is(self, worker: Worker, settings: dict[str, Any]) -> None:
        # What reads files must not hold up the worker's event loop.
        told = await asyncio.to_thread(process.told_by_worker, settings, list(worker.plugins))
        # Not as an event: the recorder hears these only when all workers have their meter.
        tell = getattr(worker.scheduler, self._tell)
        with contextlib.suppress(OSError):  # it has gone, and takes nothing more
            await tell(**told, worker=worker.address)

    def _name_on(self, worker: Worker) -> str:
        # Several workers can share a process.
        return f"{self.name}-{worker.id}"

    async def _gather(self, worker: Worker) -> None:
        interval = self._profile_interval_seconds or 0.0
        # A thousand workers must not speak all at once.
        await asyncio.sleep(interval * random())  # noqa: S311
        while self._profiler is not None:
            if records := self._profiler.take():
                worker.log_event(self._topic, _told(worker, records))
            await asyncio.sleep(interval)

    def _tell_logs(self) -> None:
        """Tell what the logs have got, unless nobody would hear it: then it waits."""
        worker, logs = self._worker, self._logs
        if worker is None or logs is None or not _is_connected(worker):
            return
        if told := logs.take():
            worker.log_event(self._topic, told)

    async def _tell_crowded_logs(self) -> None:
        while self._logs is not None:
            await asyncio.sleep(SEND_INTERVAL_SECONDS)
            if self._logs is not None and self._logs.crowded:
                self._tell_logs()

    def _last_profiles(self, worker: Worker) -> dict[str, Any] | None:
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return None
        now = time() + worker.scheduler_delay
        records = profiler.take(going_on=(now, dict(worker.profile_keys)))
        return _told(worker, records) if records else None


def _told(worker: Worker, records: list[dict[str, Any]]) -> dict[str, Any]:
    return {"profiles": pack(records), "records": len(records), "worker": worker.address}


def _is_connected(worker: Worker) -> bool:
    """Tell whether what is sent to the scheduler gets onto its way; Dask would drop it."""
    stream: Any = worker.batched_stream
    return bool(stream and stream.comm and not stream.comm.closed())


def _hears_chunks(
    worker: Worker, waiting: deque[dict[str, Any]]
) -> Callable[[dict[str, Any]], None]:
    """Make a listener that has what it hears wait to be sent.

    To wake the event loop at once would have the task wait for it.
    """

    def hear(measured: dict[str, Any]) -> None:
        try:
            here = get_worker()
        except ValueError:
            return  # no task's thread
        if here is not worker:
            return
        # The module, since what holds a thread's state cannot travel by value.
        threads: Any = distributed.worker
        key = threads.thread_state.key
        task = worker.state.tasks.get(key)
        told = {
            "key": str(key),
            "run_id": getattr(task, "run_id", None),
            "worker": worker.address,
        }

        def complete(record: dict[str, Any]) -> dict[str, Any]:
            # As Dask does it: times are told on the scheduler's clock.
            return {
                **record,
                **told,
                "start_t": record["start_t"] + worker.scheduler_delay,
                "stop_t": record["stop_t"] + worker.scheduler_delay,
            }

        chunk = measured["chunk"] and complete(measured["chunk"])
        if chunk:
            # The scheduler has read it off the task.
            chunk.pop("usermeta", None)
        sections = list(map(complete, measured["sections"]))
        waiting.append({**measured, "chunk": chunk, "sections": sections})

    return hear
