"""The recording of a cluster by one of its clients, which owns the trace.

A :class:`Recording` registers the recorder's plugin on the scheduler, pulls batches of rows
from it, and passes them to a writing process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import pickle
import platform
import sys
from collections import Counter, deque
from functools import partial
from time import monotonic, time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from distributed import Scheduler

from roast_recorder.header import header
from roast_recorder.pickling import dumps_by_value, pickled_worker_plugin
from roast_recorder.probes import ClientProbe, load
from roast_recorder.scheduler.plugin import RecorderPlugin
from roast_recorder.scheduler.recording import pump, rescue_order
from roast_recorder.scheduler.tap import CANNOT_INSTALL, Tap, describe
from roast_recorder.scheduler.wire_format import loss, plain
from roast_recorder.worker.plugin import operation_name
from roast_recorder.writer.client import TraceOwner, Writer
from roast_schemas.documentation import docs

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from distributed import Client

    from roast_recorder.settings import Settings

logger = logging.getLogger("roast_recorder")

#: How long the end of a recording may take before the caller continues without it.
STOP_TIMEOUT_SECONDS = 30.0

#: How long to wait until a lost connection is restored.
RECONNECT_SECONDS = 25.0
RETRY_INTERVAL_SECONDS = 0.5
RETRY_TIMEOUT_SECONDS = 2.0

#: Maximum number of pending records of the client, which accumulate while the trace
#: cannot be written.
MAX_PENDING = 10_000


class StartError(RuntimeError):
    """The recording cannot start."""


class UnknownDaskError(StartError):
    """What no recording can do without is missing; the program must run."""


#: Errors of a start that have nothing to do with the version of Dask.
EXPECTED = OSError, ValueError, StartError


class Recording(TraceOwner):
    """One recording of one cluster into one trace.

    It ends cleanly with the ``with`` block or :meth:`stop`, and also when the client is
    closed or the cluster ends first. Probes use ``client``, ``settings``, ``tap`` and
    ``clock_offset_seconds``, which is this clock minus the scheduler's.
    """

    def __init__(
        self, client: Client, path: str | os.PathLike[str] | None, settings: Settings
    ) -> None:
        super().__init__(path, settings)
        self.client = client
        self._running: asyncio.Task[None] | None = None
        self._is_preload = False  # the client stops this recording when it closes
        self._loop: asyncio.AbstractEventLoop | None = None
        self.clock_offset_seconds = 0.0
        self._ending = ""
        self._disconnected = False
        self._stopping = False
        self._pending: deque[dict[str, Any]] = deque()
        # Losses by kind and reason; 0 records if their number is unknown.
        self._losses: Counter[tuple[str, str]] = Counter()
        self.tap = Tap(self._lose)
        self._probes: list[tuple[tuple[str, ...], ClientProbe]] = []
        self._beside: list[asyncio.Task[None]] = []

    @property
    def ended(self) -> bool:
        """True if the recording has ended, for any reason."""
        return self._running is None or self._running.done()

    def ended_in_order(self) -> bool:
        """Return whether the recording has ended and its end is in the trace."""
        return self.ended and bool(self._ending) and self._started.state.closed

    def when_ended(self, callback: Callable[[Any], None]) -> None:
        """Call `callback` when the recording ends."""
        if self._running is not None:
            self._running.add_done_callback(callback)

    def start(self) -> Any:
        """Attach the recorder; with an asynchronous client, await the result.

        Raises
        ------
        OSError, ValueError
            If the trace cannot be written. Nothing has been recorded then.
        RuntimeError
            If this recording was already started, or the scheduler has another version of
            Python and no roast.

        With a version of Dask that cannot be recorded at all, a warning is logged, and there
        is no trace.
        """
        try:
            return self.client.sync(self._start_or_warn)
        except EXPECTED:
            raise
        except Exception as error:  # noqa: BLE001 - a client of an unknown version
            self._warn_not_started(UnknownDaskError(f"it {CANNOT_INSTALL}: {describe(error)}"))
            return self

    async def _start_or_warn(self) -> Recording:
        try:
            await self.start_on_loop()
        except UnknownDaskError as error:
            self._warn_not_started(error)
        return self

    def _warn_not_started(self, error: UnknownDaskError) -> None:
        logger.warning(
            "roast: %s is not written: %s %s", self.path, error, docs("how-to/record")
        )

    def _is_asynchronous(self) -> bool:
        return bool(self.tap.read("trailer", self.client, "asynchronous"))

    def stop(self) -> Any:
        """Detach the recorder, fetch the remaining records and close the trace.

        With an asynchronous client, await the result. Stopping twice, or after the
        cluster has gone, has no further effect.
        """
        if self._is_asynchronous():
            return self.client.sync(self.stop_on_loop)
        if self._loop is not None and self._loop.is_running():
            return self.client.sync(self.stop_on_loop)
        if self._writer is not None and self._running is not None:
            # The loop that pulled has ended: the writing process completes the trace.
            self._running = None
            self._writer.release()
        return None

    def _on_client_close(self, _: dict[str, Any]) -> None:
        # An exception usually closes the client on its way: in a `with` or `finally` block.
        self._note_exception(sys.exc_info()[0], "the program")
        if not self._is_preload and not self._is_asynchronous():
            self.stop()

    def _stop_at_exit(self, pid: int) -> None:
        if os.getpid() != pid:
            return  # a fork has no event loop to wait for
        # In an interactive session, it was raised by an earlier statement.
        if not hasattr(sys, "ps1"):
            self._note_exception(getattr(sys, "last_type", None), "the program")
        self.stop()

    def __enter__(self) -> Self:
        if self._is_asynchronous():
            raise TypeError("use 'async with' to record an asynchronous client")
        self.start()
        return self

    async def __aenter__(self) -> Self:
        if not self._is_asynchronous():
            raise TypeError("use 'with' to record a client that is not asynchronous")
        await self._start_or_warn()
        return self

    async def __aexit__(
        self, exception_type: type[BaseException] | None, *_exception: object
    ) -> None:
        self._note_exception(exception_type)
        try:
            await self.stop_on_loop()
        except Exception:
            logger.exception("roast: recording %s did not end cleanly", self.path)

    # -- on the client's event loop ------------------------------------------------------

    async def start_on_loop(self) -> Recording:
        """Start the recording, as :meth:`start`, on the client's event loop."""
        if self._writer is not None:
            raise StartError(f"the recording of {self.path!r} was already started")
        self._loop = asyncio.get_running_loop()
        try:
            await self._attach()
            before = time()
            facts = await self._call("hello")
            # The scheduler reads its clock about halfway through the round trip.
            offset = self.clock_offset_seconds = (before + time()) / 2 - facts["t"]
            about = header(self.trace_id, self.settings, facts, offset)
            rescue = rescue_order(self.client, self.trace_id, offset)
            writer = Writer(self.path, about, self.settings.as_dict(), rescue=rescue)
            await writer.open()
        except BaseException as error:
            # The plugin may be on the scheduler already.
            with contextlib.suppress(Exception):
                await self._call("detach", abandon=True)
            if isinstance(error, Exception) and not isinstance(error, EXPECTED):
                raise UnknownDaskError(f"it {CANNOT_INSTALL}: {describe(error)}") from error
            raise
        self._writer = writer
        client, tap = self.client, self.tap
        with tap.source("trailer"):
            tap.method("trailer", client, "close", self._on_client_close)
        kinds = frozenset(self.settings.kinds)
        for recorded, create in load("OnClient", kinds, self.settings.as_dict()):
            with tap.source(*recorded):
                self._probes.append((recorded, create(self)))
        # A client tears down its preloads before it closes. Appended, because another preload
        # may be starting this recording.
        with tap.source("trailer"):
            start, teardown = partial(asyncio.sleep, 0), self.stop_on_loop
            ours = SimpleNamespace(name="roast-recorder", start=start, teardown=teardown)
            tap.item(client.preloads._preloads, ours)
            self._is_preload = True
        self._running = asyncio.create_task(self._run(writer))
        # On the event loop, `asynchronous` is True for every client.
        if not tap.read("trailer", client, "_asynchronous"):
            # Many programs end without closing their client.
            atexit.register(self._stop_at_exit, os.getpid())
        logger.info("roast: recording to %s", self.path)
        return self

    async def stop_on_loop(self) -> None:
        """Stop the recording, as :meth:`stop`, on the client's event loop."""
        running = self._running
        if running is None:
            return
        self._stopping = True
        try:
            async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                if not running.done() and not self._disconnected:
                    # The recorder may end by itself before this request reaches it.
                    request = asyncio.create_task(self._call("detach", ending=self._end_reason))
                    await asyncio.wait([request, running], return_when=asyncio.FIRST_COMPLETED)
                    request.cancel()
                    await asyncio.gather(request, return_exceptions=True)
                # Not cancelled by the timeout, but below, where its end is awaited.
                await asyncio.shield(running)
        except TimeoutError:
            running.cancel()
            await asyncio.wait([running])
        self._running = None

    async def _attach(self) -> None:
        """Register the plugin on the scheduler."""
        settings = self.settings
        versions = await self._scheduler.versions()
        ours, theirs = platform.python_version(), str(dict(versions["packages"])["python"])
        same = ours.split(".")[:2] == theirs.split(".")[:2]
        worker_plugin = pickled_worker_plugin(self.trace_id, settings, by_value=same)
        plugin = RecorderPlugin(
            self.trace_id, self.client.id, settings.as_dict(), worker_plugin
        )
        # In a LocalCluster the scheduler runs in this process. A plugin that came back by
        # value would replace attributes of the very classes that it was made from.
        address = self._scheduler.address
        here: list[Any] = list(getattr(Scheduler, "_instances", ()))
        here.append(
            getattr(self.tap.read("environment", self.client, "cluster"), "scheduler", None)
        )
        is_here = any(_address_of(one) == address for one in here)
        pickled = dumps_by_value(plugin) if same and not is_here else pickle.dumps(plugin)
        try:
            # Idempotent, because the plugin adds itself.
            await self._scheduler.register_scheduler_plugin(
                plugin=pickled, name=plugin.name, idempotent=True
            )
        except ModuleNotFoundError as error:
            raise StartError(
                f"the scheduler runs Python {theirs}, this client {ours}: use the same "
                f"minor version, or install roast-trace on scheduler and workers ({error}) "
                f"{docs('how-to/record')}"
            ) from None

    async def _run(self, writer: Writer) -> None:
        """Pull and write until the recording ends, whatever ends it."""
        try:
            ending = await pump(self._pull, writer)
            self.tap.close()
            if self._beside:  # their last records must be written before the trailer
                await asyncio.wait(self._beside)
            await self._write_pending()
            await writer.finish(self._scheduler_time(), ending)
            self._ending = ending
        except asyncio.CancelledError:
            # The event loop ends first. The writing process fetches the rest.
            writer.release()
            raise
        except Exception as error:  # noqa: BLE001 - the user's program must continue
            logger.warning(
                "roast: the scheduler's recorder does not answer (%s); %s ends here %s",
                error,
                self.path,
                docs("how-to/record"),
            )
            if not self._disconnected:
                # Otherwise the recorder would stay on the scheduler until the client leaves.
                with contextlib.suppress(Exception):
                    await self._call("detach", abandon=True)
            await writer.abandon()
        finally:
            self.tap.close()
            for task in self._beside:
                task.cancel()
            atexit.unregister(self._stop_at_exit)
            writer.log_end(self._ending)
            self._report_end()

    async def _pull(self, received: int) -> dict[str, Any]:
        """Pull; if the connection is lost, wait until it is restored."""
        lost_at = None
        while True:
            try:
                # Dask itself tries to connect for half a minute, even if the client closes.
                async with asyncio.timeout(
                    RETRY_TIMEOUT_SECONDS if self._disconnected else None
                ):
                    answer: dict[str, Any] | None = await self._call("pull", received=received)
            except OSError as error:
                lost_at = lost_at or monotonic()
                self._disconnected = True
                is_closed = self.client.status in ("closing", "closed")
                if is_closed or self._stopping or monotonic() - lost_at > RECONNECT_SECONDS:
                    raise ConnectionError(f"{type(error).__name__}: {error}") from None
                await asyncio.sleep(RETRY_INTERVAL_SECONDS)
                continue
            # Without an answer, nothing is left on the scheduler that could be detached.
            self._disconnected = answer is None
            if answer is None:
                raise ConnectionError("it has left the scheduler")
            for kinds, probe in self._probes:
                with self.tap.guard(kinds):
                    probe.before_write()
            await self._write_pending()
            return answer

    # -- for probes ----------------------------------------------------------------------

    def record(self, kind: str, **fields: Any) -> None:
        """Append a record of now, from any thread."""
        if len(self._pending) < MAX_PENDING:
            about = {"kind": kind, "t": self._scheduler_time(), "client": self.client.id}
            self._pending.append({**about, **fields})
        else:
            self._lose(kind, "the client's buffer was full", 1)

    async def write(self, kind: str, records: list[dict[str, Any]]) -> None:
        """Write records of this process, which may be many."""
        about = {"kind": kind, "t": self._scheduler_time()}
        await self._started.write([about | fields for fields in records])

    def run(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine, whose end the end of the recording waits for."""
        self._beside.append(task := asyncio.create_task(coroutine))
        return task

    # -- losses and records --------------------------------------------------------------

    def _lose(self, kind: str, reason: str, records: int) -> None:
        self._losses[kind, reason] += records

    async def _write_pending(self) -> None:
        # The length is read once, because other threads append at the same time.
        pending = [plain(self._pending.popleft()) for _ in range(len(self._pending))]
        t, losses, self._losses = self._scheduler_time(), self._losses, Counter()
        pending += [
            {"kind": "loss", "t": t, **loss(reason, kind, n, t, t)}
            for (kind, reason), n in losses.items()
        ]
        if pending:
            await self._started.write(pending)

    async def _call(self, operation: str, **arguments: Any) -> Any:
        """Call one of the recorder's operations on the scheduler."""
        function = getattr(self._scheduler, operation_name(operation, self.trace_id))
        return await function(**arguments)

    @property
    def _scheduler(self) -> Any:
        """The scheduler's remote operations."""
        if self.client.scheduler is None:
            raise OSError("the client has no scheduler")
        return self.client.scheduler

    def _scheduler_time(self) -> float:
        return time() - self.clock_offset_seconds


def _address_of(server: Any) -> str | None:
    """Return the address at which a server listens; None if it is closed."""
    with contextlib.suppress(Exception):
        # Its address can have been given to another process since.
        if server.status.name == "closed":
            return None
    for name in ("address_safe", "address"):
        with contextlib.suppress(Exception):
            return str(getattr(server, name))
    return None
