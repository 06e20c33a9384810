"""Recording from the plugin's buffer to the trace: pump, preload and rescue.

:func:`pump` moves batches from the plugin to the writing process. It runs in the client
(:mod:`roast_recorder.client_recording`) or, for Dask's preload, inside the scheduler
(:class:`SchedulerRecording`).

A client can be killed, by a user or a batch system, while its scheduler continues and has
batches that the client did not fetch. The plugin then stays for a while, so that the writing
process, which outlives the client, can connect and fetch the rest (:func:`fetch_rest`).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import pickle
import uuid
from collections.abc import Awaitable, Callable
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from distributed.core import rpc

from roast_recorder.header import header, header_facts
from roast_recorder.pickling import pickled_worker_plugin
from roast_recorder.scheduler import health
from roast_recorder.scheduler.plugin import REMOVED, RecorderPlugin
from roast_recorder.threads import call_in_thread
from roast_recorder.worker.plugin import operation_name
from roast_recorder.writer.client import ENDED, Writer

if TYPE_CHECKING:
    from distributed import Client, Scheduler

    from roast_recorder.settings import Settings

logger = logging.getLogger("roast_recorder")

#: How long connecting to the scheduler and fetching the rest may take.
RESCUE_TIMEOUT_SECONDS = 25.0

#: Time between two checks whether the writing process answers and a note is still there.
WATCH_SECONDS = 2.0

#: Problem of a recording whose last request has had no answer for a while: the process was
#: stopped, or waits for a disk.
SILENT = "the writing process does not answer"

#: Takes the number of the last batch that has been written, and returns what
#: :meth:`~roast_recorder.scheduler.plugin.Recorder.pull` returns.
Pull = Callable[[int], Awaitable[dict[str, Any] | None]]


async def pump(pull: Pull, writer: Writer) -> str:
    """Pull batches and write them until the recording ends; return how it ended.

    The ending is empty if the recorder's plugin was removed.
    """
    received = 0  # a batch is acknowledged, by the next pull, when it is in the trace
    while True:
        answer = await pull(received)
        if answer is None:
            return ""
        batches = [tuple(batch) for batch in answer["batches"]]
        if batches:
            await writer.write_batches(batches)
            received = batches[-1][0]
        else:
            writer.note_idle()
        if answer["ending"]:
            return str(answer["ending"])


class SchedulerRecording:
    """A recording inside a scheduler's process, until the scheduler closes.

    The target is a file or a folder on the scheduler's host, `retain_root` the folder of all
    traces that ``retain_limit_bytes`` counts together, and `store` a store to which the
    writing process adds the trace.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        target: str,
        settings: Settings,
        *,
        retain_root: str,
        store: str | None = None,
    ) -> None:
        trace_id, values = uuid.uuid4().hex, settings.as_dict()
        worker_plugin = pickled_worker_plugin(trace_id, settings)
        self._scheduler = scheduler
        self._plugin = RecorderPlugin(trace_id, None, values, worker_plugin)
        facts = header_facts(scheduler)
        about = header(trace_id, settings, facts)
        self._writer = Writer(target, about, values, retain_root=retain_root, store=store)
        self._running: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._noting = asyncio.Lock()
        self._address = str(facts.get("scheduler", ""))
        self._noted = ""

    async def start(self) -> None:
        """Attach the recorder; raise ValueError or OSError if no trace can be written."""
        # First, so that nothing is attached if the trace cannot be written.
        await self._writer.open()
        await self._plugin.start(self._scheduler)
        # Not before: if `start` is cancelled, this reference would keep the writing process.
        self._recorder = self._plugin.recorder
        self._recorder.on_all_left = self._finish_now
        self._recorder.writer_health = self._writer_health
        self._running = asyncio.create_task(self._run())
        self._watching = asyncio.create_task(self._watch())
        atexit.register(self._finish_at_exit)
        health.register(self._health)
        logger.info("roast: recording to %s", self._writer.target)

    async def _run(self) -> None:
        try:
            # It has the settings, without which ``roast-record status`` cannot recognize an
            # idle scheduler.
            await self._writer.begin()
            ending = await pump(self._pull, self._writer)
            await self._writer.finish(time(), ending)
            self._running = None
            self._end(ending)
        except asyncio.CancelledError:
            self._finish_now()
            raise
        except Exception as error:
            logger.exception("roast: recording to %s has ended", self._writer.target)
            self._note(f"{type(error).__name__}: {error}")

    async def _pull(self, received: int) -> dict[str, Any] | None:
        """Pull, after it was noted whether the last batches are in the trace."""
        if (problem := self._writer.problem) != self._noted:
            async with self._noting:
                await call_in_thread(self._note, problem)
        return await self._recorder.pull(received)

    async def _watch(self) -> None:
        """Note that the writing process does not answer; write a note again that has gone."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            async with self._noting:
                is_silent = self._writer.silent_seconds > health.SILENT_SECONDS
                problem = SILENT if is_silent else self._noted
                if problem:
                    await call_in_thread(self._note_again, problem)

    def _note_again(self, problem: str) -> None:
        if problem != self._noted or not health.is_noted(self._writer.target):
            self._note(problem)

    def _note(self, problem: str) -> None:
        self._noted = problem
        health.write_note(self._writer.target, problem, self._address)

    def _health(self) -> dict[str, Any]:
        """Return what :mod:`~roast_recorder.scheduler.health` takes."""
        return {} if self._scheduler.status.name == "closed" else self._recorder.health()

    def _writer_health(self) -> dict[str, Any]:
        state, running = self._writer.state, self._running
        condition = health.FAILING if self._noted else health.RECORDING
        if running is None or running.done() or self._noted == ENDED:
            condition = health.ENDED
        return {
            "trace": self._writer.target,
            "state": condition,
            "problem": self._noted,
            "nbytes": state.nbytes,
            "records": dict(state.records_by_kind),
            "records_dropped": dict(state.dropped_by_kind),
            "last_write_age_seconds": monotonic() - self._writer.written_at,
        }

    def _finish_at_exit(self) -> None:
        # Dask's own exit closes a cluster whose loop is running in another thread.
        if self._running is not None and not self._running.get_loop().is_running():
            self._finish_now()

    def _finish_now(self) -> None:
        """Write the remaining batches: the scheduler's event loop may end at any moment."""
        running, self._running = self._running, None
        if running is None:
            return
        batches, ending = self._recorder.pull_rest()
        self._writer.finish_now(batches, time(), ending)
        with contextlib.suppress(RuntimeError):  # the loop of the task may be closed
            running.cancel()
        self._end(ending)

    def _end(self, ending: str) -> None:
        atexit.unregister(self._finish_at_exit)
        with contextlib.suppress(RuntimeError):  # the loop of the task may be closed
            if self._watching is not None:
                self._watching.cancel()
        self._writer.log_end(ending)
        if not ending:
            self._note(REMOVED)
            return
        health.unregister(self._health)
        if self._noted and self._writer.state.closed:
            self._note("")


def rescue_order(client: Client, trace_id: str, clock_offset_seconds: float) -> Any:
    """Return what another process needs to connect to a client's recorder, or None."""
    scheduler: Any = client.scheduler
    address = str(scheduler.address)
    # A scheduler in the client's own process dies with it.
    if address.startswith("inproc://"):
        return None
    try:
        security = pickle.dumps(client.security)
    except Exception:  # noqa: BLE001 - it may be a class of the user's
        return None
    return {
        "address": address,
        "security": security,
        "trace_id": trace_id,
        "clock_offset_seconds": clock_offset_seconds,
    }


def fetch_rest(writer: Any, order: dict[str, Any]) -> bool:
    """End a recording whose client is gone: write the remaining batches and the trailer.

    The writer is a :class:`roast_recorder.writer.segments.Segments`, the order comes from
    :func:`rescue_order`. Return whether everything was fetched.
    """

    async def fetch() -> None:
        security = pickle.loads(order["security"])  # noqa: S301 - from the recorder's client
        arguments = security.get_connection_args("client")
        async with rpc(order["address"], connection_args=arguments, timeout=5) as scheduler:
            detach = getattr(scheduler, operation_name("detach", order["trace_id"]))
            pull = getattr(scheduler, operation_name("pull", order["trace_id"]))
            await detach(ending="the client disconnected")
            ending = ""
            while not ending:
                answer = await pull(received=writer.state.received)
                writer.write_batches(answer["batches"])
                ending = answer["ending"]
            # The trailer's time is on the scheduler's clock, like all times of the trace.
            writer.finish(time() - order["clock_offset_seconds"], ending)

    # Failed connections are expected here, and are reported by the return value.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.suppress(Exception):
        asyncio.run(asyncio.wait_for(fetch(), RESCUE_TIMEOUT_SECONDS))
        return True
    return False
