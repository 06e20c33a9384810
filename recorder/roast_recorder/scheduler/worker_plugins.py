"""Registration of the recorder's worker plugins, and receipt of their records."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from time import time
from typing import TYPE_CHECKING, Any, Final

import cloudpickle
from distributed.comm.core import connect
from distributed.core import send_recv

from roast_recorder.scheduler.tap import (
    CANNOT_INSTALL,
    FAILED,
    MAX_REASON_LENGTH,
    Tap,
    describe,
)
from roast_recorder.worker.plugin import PLUGIN_NAME, TOPIC

if TYPE_CHECKING:
    from distributed import Scheduler

    from roast_recorder.scheduler.wire_format import Row

logger = logging.getLogger("roast_recorder")

#: How long to wait for workers to set up or tear down their plugin.
ANSWER_TIMEOUT_SECONDS = 3.0

#: How long a worker may take to send its last measurements, how much longer all may take for
#: each of them, and how many send them at a time.
FLUSH_TIMEOUT_SECONDS = 2.0
FLUSH_TIMEOUT_PER_WORKER_SECONDS = 0.005
FLUSHES_AT_ONCE = 20

#: Beginnings of the texts of errors of a worker that closes, or has lost its connection.
_ENDED_CONNECTION: Final = (
    "CommClosedError(", "StreamClosedError(", "OSError(", "Connection", "BrokenPipeError(",
    "TimeoutError(", "CancelledError(",
)  # fmt: skip


class WorkerPlugins:
    """Registers a plugin on every worker, and appends the rows that the plugins send.

    `pickled` is a :class:`roast_recorder.worker.plugin.WorkerRecorder`, or None if workers
    have nothing to record. `kinds` are those that it records.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        trace_id: str,
        pickled: bytes | None,
        append: Callable[[Row], None],
        tap: Tap,
        kinds: Iterable[str] = (),
    ) -> None:
        self._scheduler = scheduler
        self._name = PLUGIN_NAME.format(trace_id=trace_id)
        self._topic = TOPIC.format(trace_id=trace_id)
        self._pickled = pickled
        self._append = append
        self._tap = tap
        self._kinds = sorted(kinds)
        self._request: asyncio.Task[None] | None = None
        self._registered = False

    async def register(self) -> None:
        """Register the plugin on all workers, also on those that join later."""
        if self._pickled is None:
            return
        with self._tap.source(*self._kinds):
            scheduler: Any = self._scheduler
            # What could not be removed is not installed.
            _ = scheduler.unregister_worker_plugin
            request = scheduler.register_worker_plugin(
                None, plugin=self._pickled, name=self._name, idempotent=False
            )
            self._registered = True
        if self._registered:
            await self._wait_for(request)

    async def unregister(self) -> None:
        """Remove the plugin from all workers."""
        if self._registered:
            self._registered = False
            scheduler: Any = self._scheduler
            await self._wait_for(scheduler.unregister_worker_plugin(None, name=self._name))
        self._forget_events()

    def unregister_soon(self) -> None:
        """Remove the plugin in a task of the event loop, unless it was removed before."""
        if self._registered:
            self._request = asyncio.get_running_loop().create_task(self.unregister())

    async def _wait_for(self, request: Any) -> None:
        """Wait for the answers of all workers, but not for slow ones."""

        async def log_errors() -> None:
            try:
                answers = await request
            except OSError as error:  # a worker may leave at any time
                logger.debug("roast: not every worker has answered: %s", error)
                return
            except Exception as error:  # noqa: BLE001 - of an unknown version of Dask
                reason = f"{CANNOT_INSTALL}: {describe(error)}"
                for kind in self._kinds:
                    self._tap.lose(kind, reason, 0, error)
                return
            errors = [it for it in answers.values() if it and it.get("status") == "error"]
            if errors:
                why = errors[0].get("exception_text", "no reason given")
                reason = "workers cannot run the recorder's plugin"
                logger.warning(
                    "roast: %d of %d %s (%s)", len(errors), len(answers), reason, why
                )
                for kind in self._kinds:
                    self._tap.lose(kind, f"{reason}: {why}"[:MAX_REASON_LENGTH], 0)

        self._request = asyncio.ensure_future(log_errors())
        await asyncio.wait({self._request}, timeout=ANSWER_TIMEOUT_SECONDS)

    async def flush(self) -> None:
        """Request a heartbeat and all pending records from every worker."""
        for kind in self._kinds:
            self._tap.read(kind, self._scheduler, "workers")
        workers = self._tap.read("worker_sample", self._scheduler, "workers")
        if not workers:
            return
        # Measurements since the last heartbeat would be lost otherwise, and a worker that has
        # just joined may not have described itself yet.
        name = self._name

        async def flush(dask_worker: Any) -> None:
            try:
                await dask_worker.heartbeat()
            finally:
                plugin = dask_worker.plugins.get(name)
                if plugin is not None:
                    await plugin.flush()

        function = cloudpickle.dumps(flush)
        # A thousand connections at once would block the scheduler.
        free = asyncio.Semaphore(FLUSHES_AT_ONCE)

        async def request_from(worker: str) -> Any:
            async with free:
                request = self._run_on(worker, function)
                return await asyncio.wait_for(request, FLUSH_TIMEOUT_SECONDS)

        requests = [asyncio.create_task(request_from(worker)) for worker in list(workers)]
        timeout = FLUSH_TIMEOUT_SECONDS + FLUSH_TIMEOUT_PER_WORKER_SECONDS * len(requests)
        _, late = await asyncio.wait(requests, timeout=timeout)
        for request in late:
            request.cancel()
        for answer in await asyncio.gather(*requests, return_exceptions=True):
            if (reason := _unexpected(answer)) is not None:
                for kind in self._kinds:
                    self._tap.lose(kind, f"{FAILED}: {reason}"[:MAX_REASON_LENGTH], 0)

    async def _run_on(self, worker: str, function: bytes) -> Any:
        # Not through the scheduler's pool: it would wait for a connection to a worker that
        # does not answer when the scheduler closes.
        arguments = self._scheduler.connection_args
        comm = await connect(worker, timeout=FLUSH_TIMEOUT_SECONDS, **arguments)
        try:
            return await send_recv(comm, op="run", function=function, reply=True)
        finally:
            # Closing it would wait for the worker.
            comm.abort()

    def receive(self, topic: Any, message: Any) -> bool:
        """Record the rows that a worker's plugin has sent as an event.

        ``rows`` of the message are (kind, number of records, content), as
        :mod:`~roast_recorder.scheduler.wire_format` describes the content. Return whether the
        event was one of a recorder, this one or another.
        """
        # Not every topic is a text: Dask has logged restarts under None.
        if not str(topic).startswith(TOPIC.format(trace_id="")):
            return False
        if topic == self._topic:
            t = time()
            for kind, records, content in message["rows"]:
                self._append((kind, t, records, content))
            # Dask would keep the event for later subscribers.
            self._forget_events()
        return True

    def _forget_events(self) -> None:
        # There is no public API for it.
        with contextlib.suppress(Exception):
            broker: Any = getattr(self._scheduler, "_broker", None)
            if broker is not None:
                broker._topics.pop(self._topic, None)
                return
            for name in ("events", "event_counts"):  # until 2024.11
                getattr(self._scheduler, name).pop(self._topic, None)


def _unexpected(answer: Any) -> str | None:
    """Return why a worker's last records are missing, unless its connection has ended."""
    if isinstance(answer, Exception) and not isinstance(answer, OSError):
        return describe(answer)
    if not isinstance(answer, dict) or answer.get("status") != "error":
        return None
    text = str(answer.get("exception_text"))
    return None if text.startswith(_ENDED_CONNECTION) else text
