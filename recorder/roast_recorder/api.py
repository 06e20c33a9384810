"""A recording, seen from the client: attach, pull, write, detach.

The client owns the trace. It asks the recorder on the scheduler for the next batches again
and again and hands them to the :mod:`~roast_recorder.writer.client`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import pickle
import platform
import uuid
from collections import Counter, deque
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Self, overload

from roast_recorder import environment, graphs, process
from roast_recorder.scheduler.pump import pump
from roast_recorder.scheduler.wire_format import plain
from roast_recorder.settings import Settings
from roast_recorder.writer.client import Writer
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from distributed import Client

    from roast_recorder.coffea.local import LocalRecording

logger = logging.getLogger("roast_recorder")

#: How long the end of a recording may take before the caller goes on without it.
STOP_TIMEOUT_SECONDS = 30.0

#: How long a connection that broke may take to come back.
RECONNECT_SECONDS = 25.0
RETRY_INTERVAL_SECONDS = 0.5
RETRY_TIMEOUT_SECONDS = 2.0
ANSWER_TIMEOUT_SECONDS = 1.0

#: Graphs that wait to be written; more come only while nothing can be written.
MAX_GRAPHS_WAITING = 10_000


def _nothing() -> None:
    """Stand for what there is nothing to do of."""


class RecorderGoneError(Exception):
    """The recorder on the scheduler cannot be asked any more."""


@overload
def record(client: Client, path: str | os.PathLike[str], **settings: Any) -> Recording: ...


@overload
def record(
    client: None = None, path: str | os.PathLike[str] | None = None, **settings: Any
) -> LocalRecording: ...


def record(
    client: Client | None = None,
    path: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Recording | LocalRecording:
    """Record what a cluster does, until the ``with`` block ends.

    Parameters
    ----------
    client : distributed.Client, optional
        A connected client, synchronous or asynchronous. Without one, the chunks are
        recorded that coffea's IterativeExecutor and FuturesExecutor process in this
        process and in its pools.
    path : path-like
        The trace, on this machine. One file if it ends in ``.jsonl``, ``.jsonl.zst`` or
        ``.jsonl.gz``: an older trace of that name is replaced. Otherwise a folder of
        numbered segments, which must not hold another trace.
    **settings
        Fields of :class:`roast_recorder.settings.Settings`.

    Returns
    -------
    Recording or LocalRecording
        A context manager (``async with`` for an asynchronous client), or call its
        ``start()`` and ``stop()``.

    Raises
    ------
    ValueError
        If a setting cannot be used.
    TypeError
        If a setting has no such name, `client` is no client, or there is no `path`.
    """
    if path is None:
        raise TypeError("record() needs a path: record(client, 'trace.jsonl.zst')")
    checked = Settings.from_keywords(settings)
    if client is None:
        from roast_recorder.coffea.local import LocalRecording

        return LocalRecording(path, checked)
    # Importing distributed takes a second, which `import roast_recorder` need not.
    from distributed import Client

    if not isinstance(client, Client):
        raise TypeError(
            f"record() takes a distributed.Client, not a {type(client).__name__}; "
            "a cluster's is cluster.get_client()"
        )
    kind = RecordingThere if checked.write_on == "scheduler" else Recording
    return kind(client, path, checked)


class Recording:
    """One recording of one cluster into one trace.

    It ends in order with the ``with`` block or :meth:`stop`, and as well when the client
    is closed or the cluster ends first.

    Attributes
    ----------
    trace_id : str
        Identity of the recording; the header carries it.
    """

    def __init__(
        self, client: Client, path: str | os.PathLike[str], settings: Settings
    ) -> None:
        self.trace_id = uuid.uuid4().hex
        self._client = client
        self._path = os.fspath(path)
        self._settings = settings
        self._writer: Writer | None = None
        self._running: asyncio.Task[None] | None = None
        self._clock_offset_seconds = 0.0
        self._ending = ""
        self._lost = False
        self._stopping = False
        self._describing: asyncio.Task[None] | None = None
        self._hear_no_more: Callable[[], None] = _nothing
        self._graphs: deque[dict[str, Any]] = deque()

    @property
    def records_by_kind(self) -> Counter[str]:
        """Records in the trace so far."""
        return self._started.records_by_kind

    @property
    def dropped_by_kind(self) -> Counter[str]:
        """Records that had to be left out so far."""
        return self._started.dropped_by_kind

    @property
    def nbytes(self) -> int:
        """Size of the trace so far."""
        return self._started.nbytes

    @property
    def ended(self) -> bool:
        """Whether nothing more is recorded, whatever ended it."""
        return self._running is None or self._running.done()

    def ended_in_order(self) -> bool:
        """Tell whether nothing more is recorded and nothing is missing at the end."""
        return self.ended and bool(self._ending)

    def when_ended(self, call: Callable[[Any], None]) -> None:
        """Have something called once nothing more is recorded."""
        if self._running is not None:
            self._running.add_done_callback(call)

    def start(self) -> Any:
        """Attach the recorder.

        Returns
        -------
        Recording or awaitable
            An awaitable of the recording if the client is asynchronous.

        Raises
        ------
        OSError, ValueError
            If the trace cannot be written: said before anything is recorded.
        RuntimeError
            If this recording was started before.
        """
        return self._client.sync(self.start_on_loop)

    def stop(self) -> Any:
        """Detach the recorder, fetch what is left and close the trace.

        Stopping twice, or after the cluster has gone, does nothing more.

        Returns
        -------
        None or awaitable
            An awaitable if the client is asynchronous.
        """
        if not self._client.asynchronous and not self._loop_runs():
            return self._release()
        return self._client.sync(self.stop_on_loop)

    def __enter__(self) -> Self:
        if self._client.asynchronous:
            raise TypeError("an asynchronous client is recorded with 'async with'")
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except Exception:
            # The user's own exception, if there is one, matters more than ours.
            logger.exception("roast: recording %s did not end in order", self._path)

    async def __aenter__(self) -> Self:
        if not self._client.asynchronous:
            raise TypeError("a client that is not asynchronous is recorded with 'with'")
        await self.start_on_loop()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        try:
            await self.stop_on_loop()
        except Exception:
            logger.exception("roast: recording %s did not end in order", self._path)

    def _loop_runs(self) -> bool:
        loop: Any = self._client.loop
        return loop is not None and loop.asyncio_loop.is_running()

    def _release(self) -> None:
        """Leave the trace to its writer: the loop that fed it has gone."""
        if self._writer is not None and self._running is not None:
            self._running = None
            self._writer.release()

    @property
    def _started(self) -> Writer:
        if self._writer is None:
            raise RuntimeError(f"the recording of {self._path!r} has not been started")
        return self._writer

    # -- on the client's event loop ------------------------------------------------------

    async def start_on_loop(self) -> Recording:
        """Do what :meth:`start` does, on the client's own event loop."""
        if self._writer is not None:
            raise RuntimeError(f"the recording of {self._path!r} was started before")
        try:
            await self._attach()
            self._writer = await self._open_writer()
        except BaseException:
            with contextlib.suppress(Exception):
                await self._call("detach", abandon=True)
            self._writer = None
            raise
        self._describing = asyncio.create_task(self._write_what_it_is())
        if "graph" in self._settings.kinds:
            self._hear_no_more = graphs.listen(
                self._client, self._hear_graph, code=self._settings.code
            )
        self._running = asyncio.create_task(self._run())
        self._stop_with_the_client()
        logger.info("roast: recording to %s", self._path)
        return self

    async def stop_on_loop(self) -> None:
        """Do what :meth:`stop` does, on the client's own event loop."""
        running = self._running
        if running is None:
            return
        self._stopping = True
        try:
            async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                if not running.done() and not self._lost:
                    await self._detach(running)
                await asyncio.shield(running)
        except TimeoutError:
            running.cancel()
            await asyncio.wait([running])
        self._running = None

    async def _detach(self, running: asyncio.Task[None]) -> None:
        """Ask the recorder to end, unless it ends by itself before it can be asked."""
        asking = asyncio.create_task(self._call("detach"))
        await asyncio.wait([asking, running], return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    async def _run(self) -> None:
        """Pull and write until the end, whoever brings it about."""
        writer = self._started
        try:
            ending = await pump(self._pull, writer)
            self._hear_no_graphs()
            await self._write_graphs()
            if self._describing is not None:
                await asyncio.wait([self._describing])
            await writer.finish(self._scheduler_time(), ending)
            self._ending = ending
        except asyncio.CancelledError:
            # The loop ends without us. The writer fetches the rest by itself.
            writer.release()
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on
            logger.warning(
                "roast: the recorder cannot be asked any more (%s); %s ends here",
                error,
                self._path,
            )
            await writer.abandon()
        finally:
            self._end_what_goes_on()
            atexit.unregister(self.stop)
            self._say_how_it_ended()

    def _hear_no_graphs(self) -> None:
        hear_no_more, self._hear_no_more = self._hear_no_more, _nothing
        hear_no_more()

    def _end_what_goes_on(self) -> None:
        self._hear_no_graphs()
        if self._describing is not None:
            self._describing.cancel()

    async def _pull(self, received: int) -> dict[str, Any]:
        """Pull, and wait for a connection that is lost to come back."""
        lost_at = None
        while True:
            try:
                # Dask itself tries to connect for half a minute, whatever happens meanwhile.
                async with asyncio.timeout(RETRY_TIMEOUT_SECONDS if self._lost else None):
                    answer: dict[str, Any] | None = await self._call("pull", received=received)
            except OSError as error:
                lost_at = lost_at or monotonic()
                self._lost = True
                if self._gives_up(monotonic() - lost_at):
                    raise RecorderGoneError(f"{type(error).__name__}: {error}") from None
                await asyncio.sleep(RETRY_INTERVAL_SECONDS)
                continue
            self._lost = False
            if answer is None:
                raise RecorderGoneError("it has left the scheduler")
            await self._write_graphs()
            return answer

    def _gives_up(self, lost_seconds: float) -> bool:
        closed = self._client.status in ("closing", "closed")
        return closed or self._stopping or lost_seconds > RECONNECT_SECONDS

    async def _attach(self) -> None:
        from roast_recorder.pickling import dumps_by_value, pickled_meter
        from roast_recorder.scheduler.plugin import RecorderPlugin

        meter = pickled_meter(self.trace_id, self._settings)
        plugin = RecorderPlugin(self.trace_id, self._client.id, self._settings.as_dict(), meter)
        ours, theirs = platform.python_version(), await self._scheduler_python_version()
        same = ours.split(".")[:2] == theirs.split(".")[:2]
        # What comes back by value into this process would change the classes it came from.
        travels = same and not self._scheduler_is_here()
        pickled = dumps_by_value(plugin) if travels else pickle.dumps(plugin)
        try:
            await self._scheduler.register_scheduler_plugin(
                plugin=pickled, name=plugin.name, idempotent=False
            )
        except ModuleNotFoundError as error:
            raise RuntimeError(
                f"the scheduler runs Python {theirs}, this client {ours}: use the same, or "
                f"install roast-trace on the scheduler ({error})"
            ) from None

    def _scheduler_is_here(self) -> bool:
        """Tell whether the scheduler runs in this process, as a LocalCluster's does."""
        from distributed import Scheduler

        address = self._scheduler.address
        return any(scheduler.address == address for scheduler in list(Scheduler._instances))

    async def _scheduler_python_version(self) -> str:
        versions = await self._scheduler.versions()
        packages = versions["packages"]
        return str(dict(packages)["python"])

    async def _open_writer(self) -> Writer:
        from roast_recorder.scheduler.rescue import rescue_order

        header = await self._header()
        writer = Writer(
            self._path,
            header,
            self._settings.as_dict(),
            rescue=rescue_order(self._client, self.trace_id, self._clock_offset_seconds),
        )
        await writer.open()
        return writer

    async def _header(self) -> dict[str, Any]:
        before = time()
        facts = await self._call("hello")
        self._clock_offset_seconds = (before + time()) / 2 - facts["t"]
        return {
            "kind": "header",
            "schema_version": SCHEMA_VERSION,
            "trace_id": self.trace_id,
            "settings": self._settings.as_told(),
            "clock_offset_seconds": self._clock_offset_seconds,
            **facts,
        }

    async def _write_what_it_is(self) -> None:
        """Write down what the client is, what it runs with and on, and its cluster."""
        if "environment" not in self._settings.kinds:
            return
        try:
            # It reads files, and asks git.
            facts = await asyncio.to_thread(self._client_facts)
            t = self._scheduler_time()
            await self._started.write(
                [{"kind": "environment", "t": t, **plain(fact)} for fact in facts]
            )
        except Exception:
            logger.debug("roast: facts about the client are missing", exc_info=True)

    def _client_facts(self) -> list[dict[str, Any]]:
        described = process.describe("client", self._settings.as_dict())
        facts = process.facts_of(*described, process.Sheets())
        return facts + [
            {"section": section, "name": name, "value": value}
            for section, name, value in environment.client_facts(self._client)
        ]

    def _hear_graph(self, told: dict[str, Any]) -> None:
        """Take what a graph of the client is, in the thread that sends it."""
        if len(self._graphs) < MAX_GRAPHS_WAITING:
            about = {"kind": "graph", "t": self._scheduler_time(), "client": self._client.id}
            self._graphs.append({**about, **told})

    async def _write_graphs(self) -> None:
        told = [plain(self._graphs.popleft()) for _ in range(len(self._graphs))]
        if told:
            await self._started.write(told)

    def _stop_with_the_client(self) -> None:
        """Have the recording stopped when the client is closed, or the process ends."""
        if not self._client.asynchronous:
            atexit.register(self.stop)
        preloads: list[Any] | None = getattr(self._client.preloads, "_preloads", None)
        if preloads is not None:
            preloads.append(_StopsWithClient(self))

    async def _call(self, operation: str, **arguments: Any) -> Any:
        """Call one of the recorder's operations on the scheduler."""
        from roast_recorder.scheduler.plugin import operation_name

        function = getattr(self._scheduler, operation_name(operation, self.trace_id))
        return await function(**arguments)

    @property
    def _scheduler(self) -> Any:
        """The scheduler's remote operations.

        Raises
        ------
        OSError
            If the client is not connected.
        """
        if self._client.scheduler is None:
            raise OSError("the client has no scheduler")
        return self._client.scheduler

    def _scheduler_time(self) -> float:
        return time() - self._clock_offset_seconds

    def _say_how_it_ended(self) -> None:
        whole = self._ending and not self.dropped_by_kind
        logger.log(
            logging.INFO if whole else logging.WARNING,
            "roast: %s has %d records in %d bytes; %d records were dropped; %s",
            self._path,
            self.records_by_kind.total(),
            self.nbytes,
            self.dropped_by_kind.total(),
            self._ending or "it did not end in order here",
        )


class RecordingThere(Recording):
    """A recording that is written on the scheduler's host."""

    def __init__(
        self, client: Client, path: str | os.PathLike[str], settings: Settings
    ) -> None:
        super().__init__(client, path, settings)
        self._status: dict[str, Any] = {}

    @property
    def records_by_kind(self) -> Counter[str]:
        """Records in the trace, as of the last look."""
        return Counter(self._status.get("records_by_kind", {}))

    @property
    def dropped_by_kind(self) -> Counter[str]:
        """Records that had to be left out, as of the last look."""
        return Counter(self._status.get("dropped_by_kind", {}))

    @property
    def nbytes(self) -> int:
        """Size of the trace, as of the last look."""
        return int(self._status.get("nbytes", 0))

    async def start_on_loop(self) -> Recording:
        """Do what :meth:`start` does, on the client's own event loop."""
        from roast_recorder.scheduler.recording import ResidentPlugin

        if self._running is not None:
            raise RuntimeError(f"the recording of {self._path!r} was started before")
        plugin = ResidentPlugin(self.trace_id, self._client.id, self._path, self._settings)
        try:
            # By name: the writing process needs what is installed there.
            await self._scheduler.register_scheduler_plugin(
                plugin=pickle.dumps(plugin), name=plugin.name, idempotent=False
            )
        except ModuleNotFoundError as error:
            raise RuntimeError(
                f"write_on='scheduler' needs roast-trace installed there ({error})"
            ) from None
        self._running = asyncio.create_task(self._run())
        self._stop_with_the_client()
        logger.info("roast: recording to %s on the scheduler's host", self._path)
        return self

    async def stop_on_loop(self) -> None:
        """Do what :meth:`stop` does, on the client's own event loop."""
        running, self._running = self._running, None
        if running is None:
            return
        if not running.done():
            running.cancel()
            with contextlib.suppress(OSError):
                # Whether it is still there; Dask itself would try for half a minute.
                async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
                    self._look(await self._call("status"))
                async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                    self._look(await self._call("stop"))
        atexit.unregister(self.stop)
        self._say_how_it_ended()

    async def _run(self) -> None:
        """Look from time to time what has been written."""
        with contextlib.suppress(OSError):
            while not self._ending:
                self._look(await self._call("status"))
                await asyncio.sleep(self._settings.flush_interval_seconds)

    def _look(self, status: dict[str, Any] | None) -> None:
        self._status = status or self._status
        self._ending = self._status.get("ending", "")

    def _release(self) -> None:
        """Leave it to the scheduler, which sees that the client has gone."""
        self._running = None


class _StopsWithClient:
    """What a client calls, among its preloads, before it closes."""

    name = "roast-recorder"

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    async def start(self) -> None:
        """Do nothing: the recording has begun."""

    async def teardown(self) -> None:
        """Stop the recording."""
        await self._recording.stop_on_loop()
