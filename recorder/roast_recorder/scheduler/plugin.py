"""The scheduler plugin: what is recorded in the scheduler's process, and how it ends.

Hooks run on the scheduler's event loop. They copy only data that would not be available later,
and append it to the buffer. Rows are encoded in batches; everything else happens in the
writing process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import distributed.core
from distributed.comm.addressing import get_address_host
from distributed.diagnostics.plugin import SchedulerPlugin

from roast_recorder.header import header_facts
from roast_recorder.probes import SchedulerProbe, load
from roast_recorder.scheduler.buffer import UNSEALED_SHARE, Buffer
from roast_recorder.scheduler.health import ENDED, OPERATION, RECORDING
from roast_recorder.scheduler.tap import Tap
from roast_recorder.scheduler.tasks import Tasks
from roast_recorder.scheduler.transitions import Transitions
from roast_recorder.scheduler.worker_plugins import WorkerPlugins
from roast_recorder.settings import (
    MIN_INTERVALS,
    OPT_IN_KINDS,
    OPTIONAL_KINDS,
    Settings,
    recorded_kinds,
)
from roast_recorder.worker.plugin import operation_name

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import WorkerState

    from roast_recorder.scheduler.wire_format import Row

logger = logging.getLogger("roast_recorder")

#: Beginning of the name of every recorder's plugin.
NAME = "roast-recorder-"

#: How long a closing scheduler waits for the next pull.
CLOSE_TIMEOUT_SECONDS = 3.0

#: How long the plugin stays after its client has gone: a lost connection can come back, and
#: the writing process of a killed client fetches the rest.
ORPHANED_SECONDS = 30.0

#: Most seconds between two checks of that.
ORPHAN_CHECK_SECONDS = 1.0

#: How recording ends if the plugin is no longer registered.
REMOVED = "the recorder's plugin was removed from the scheduler"

#: Time between two flushes, relative to the time since the first result: a program that is
#: killed after a second must not lose all of it.
FLUSH_SHARE = 1 / 5

#: Hooks that Dask calls, by the kind of record that an error in them loses.
HOOKS = {
    "update_graph": "task",
    "add_worker": "worker_added",
    "remove_worker": "worker_removed",
    "add_client": "client_added",
    "remove_client": "client_removed",
    "log_event": "event",
}


class RecorderPlugin(SchedulerPlugin):
    """An order to record, which travels to the scheduler and starts a :class:`Recorder` there.

    For a client or, if `client_id` is None, for the scheduler itself. `settings` are those of
    :meth:`roast_recorder.settings.Settings.as_dict`, `worker_plugin` is from
    :func:`roast_recorder.pickling.pickled_worker_plugin`. The trace's id is part of all names,
    because a scheduler can have several recorders.
    """

    recorder: Recorder

    def __init__(
        self,
        trace_id: str,
        client_id: str | None,
        settings: dict[str, Any],
        worker_plugin: bytes | None = None,
    ) -> None:
        self.name = f"{NAME}{trace_id}"
        self.trace_id = trace_id
        self.client_id = client_id
        self.settings = settings
        self.worker_plugin = worker_plugin
        kinds = recorded_kinds(settings)
        #: Kinds and class of each probe, and the kinds of those on workers.
        self.sources = load("OnScheduler", kinds, settings)
        self.worker_kinds = {
            kind for probed, _ in load("OnWorker", kinds, settings) for kind in probed
        }

    async def start(self, scheduler: Scheduler) -> None:
        """Attach a recorder to the scheduler, which replaces this plugin.

        Raises
        ------
        ValueError
            If an interval is too short.
        """
        # A client of another version has other rules.
        Settings(**{name: self.settings[name] for name in MIN_INTERVALS})
        self.recorder = Recorder(self, scheduler)
        await self.recorder.attach()


class Recorder(SchedulerPlugin):
    """The recording of one scheduler: its state, hooks and operations.

    The attributes without an underscore are for probes.
    """

    #: Called when all workers and clients of a closing scheduler have left, if the scheduler
    #: records itself.
    on_all_left: Callable[[], None] | None = None

    #: Returns the health of the trace, if the scheduler writes it.
    writer_health: Callable[[], dict[str, Any]] = dict

    def __init__(self, order: RecorderPlugin, scheduler: Scheduler) -> None:
        self.name = order.name
        self.trace_id = order.trace_id
        self.settings = order.settings
        self.kinds = recorded_kinds(order.settings)
        self.scheduler = scheduler
        self._ending = ""  # how recording ended, once it has
        self.tap = Tap(self._lose)
        #: By address. Unlike `scheduler.workers`, it has a worker that is being removed.
        self.workers: dict[str, WorkerState] = {}
        limit_bytes = self.settings["buffer_limit_bytes"]
        self._buffer = Buffer(int(limit_bytes * (1 - UNSEALED_SHARE)))
        self.tasks = Tasks(self, self._buffer)
        self._transitions: Transitions | None = None
        self._start_t = time()
        self._client_id = order.client_id
        self._sources = order.sources
        self._probes: list[tuple[tuple[str, ...], SchedulerProbe]] = []
        self._on_graph: list[Callable[..., None]] = []
        self._on_event: list[Callable[..., bool]] = []
        self._before_pull: list[Callable[[], None]] = []
        self._finish: list[Callable[[], None]] = []
        self._skipped = frozenset([*OPTIONAL_KINDS, *OPT_IN_KINDS]) - self.kinds
        # Removed when nothing is left to pull, the hooks of `tap` when recording ends.
        self._operations = Tap(self._lose)
        self._worker_plugins = WorkerPlugins(
            scheduler,
            self.trace_id,
            order.worker_plugin,
            self.append,
            self.tap,
            order.worker_kinds,
        )
        self._running: list[asyncio.Task[None]] = []
        self._closing = False
        self._woken = asyncio.Event()
        self._first_result: float | None = None
        self._last_pull_waits = asyncio.Event()
        self._all_left = asyncio.Event()
        for hook, kind in HOOKS.items():
            # Dask would log each error. The arguments may be those of another version.
            setattr(self, hook, self.tap.guarded(kind, getattr(self, hook)))

    # -- for probes ----------------------------------------------------------------------

    def append(self, row: Row) -> None:
        """Append a row, if its kind is recorded."""
        if not self._ending and row[0] not in self._skipped:
            self._buffer.append(row)

    def record(self, kind: str, **fields: Any) -> None:
        """Append a record of now."""
        self.append((kind, time(), 1, fields))

    def defer(self, kind: str, rows: Iterator[Row | None], nbytes: int) -> None:
        """Append rows later, as :meth:`Buffer.defer`."""

        def guarded() -> Iterator[Row | None]:
            with self.tap.guard(kind):
                yield from rows

        if not self._ending and kind not in self._skipped:
            self._buffer.defer(guarded(), nbytes)

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine, whose end the end of the recording waits for."""
        self._running.append(asyncio.create_task(coroutine))

    def operation(self, name: str, call: Callable[..., Any]) -> None:
        """Add an operation for the client or the workers of this recording."""
        handlers: Any = self.scheduler.handlers
        self._operations.entry(handlers, operation_name(name, self.trace_id), call)

    def server_id(self, kind: str, worker: str) -> str | None:
        """Return the identity of a worker by its address."""
        state = self.workers.get(worker)
        if state is None:  # it has left, or no worker can be read
            self.tap.read(kind, self.scheduler, "workers")
        server_id: str | None = self.tap.read(kind, state, "server_id")
        return server_id

    def _lose(self, kind: str, reason: str, records: int) -> None:
        if not self._ending:
            self._buffer.lose(reason, kind, time(), records)

    # -- start and end -------------------------------------------------------------------

    async def attach(self) -> None:
        """Install all hooks, record what is there, and register on scheduler and workers."""
        try:
            self._attach()
            await self._worker_plugins.register()
        except BaseException:
            self._remove()
            raise

    def _attach(self) -> None:
        scheduler, tap = self.scheduler, self.tap
        if "transition" in self.kinds:
            self._transitions = Transitions(self, self._buffer, self._note_first_result)
            self.transition = self._transitions.hook()  # type: ignore[method-assign]
        for kinds, create in self._sources:
            with tap.source(*kinds):
                self._probes.append((kinds, create(self)))
        self.tasks.on_span = self._overridden("on_span")
        self._on_graph = self._overridden("on_graph")
        self._on_event = self._overridden("on_event")
        self._before_pull = self._overridden("before_pull")
        self._finish = self._overridden("finish")
        for name in ("address", "id"):
            tap.read("header", scheduler, name)
        for worker in list(tap.read("worker_added", scheduler, "workers") or ()):
            self.add_worker(scheduler, worker)
        for client in self._clients():
            self.add_client(scheduler, client)
        # A list, because tasks can be forgotten before they are recorded.
        self.run(self.tasks.append_existing(list(self.tasks.known.values())))
        interval = min(ORPHAN_CHECK_SECONDS, ORPHANED_SECONDS)
        self._operations.every("client_removed", interval, self._remove_if_orphaned)
        self.operation("hello", lambda: header_facts(scheduler))
        self.operation("pull", self.pull)
        self.operation("detach", self.detach)
        # One for all recordings of the scheduler.
        scheduler.handlers.setdefault(OPERATION, lambda: _health_of_all(scheduler))
        # Dask would add the plugin only after this, and workers may take seconds to answer.
        scheduler.add_plugin(self, name=self.name)

    def _overridden(self, name: str) -> list[Callable[..., Any]]:
        """Return a method of all probes that have one, guarded."""
        return [
            self.tap.guarded(kinds, getattr(probe, name))
            for kinds, probe in self._probes
            if getattr(type(probe), name) is not getattr(SchedulerProbe, name)
        ]

    def _note_first_result(self) -> None:
        self._first_result = monotonic()
        self._woken.set()

    def _clients(self) -> list[str]:
        """Return the clients, without Dask's placeholder for `fire_and_forget`."""
        clients = self.tap.read("client_added", self.scheduler, "clients") or ()
        return [client for client in clients if client != "fire-and-forget"]

    def _remove_if_orphaned(self) -> None:
        clients = self.tap.read("client_removed", self.scheduler, "clients")
        is_connected = clients is None or self._client_id in (None, *clients)
        if not is_connected and monotonic() - self._buffer.last_pull > ORPHANED_SECONDS:
            logger.info("roast: the records of %s are no longer collected", self.trace_id)
            self._remove()

    def _detach_hooks(self, ending: str) -> None:
        """Stop recording; the rest can still be pulled.

        The plugin stays registered until then: it must be called when the scheduler closes.
        """
        if self._ending:
            return
        if self._was_removed():
            # Any client can unregister it. Dask does not report it.
            ending = REMOVED
            logger.warning("roast: recording %s ends: %s", self.trace_id, REMOVED)
        for finish in self._finish:
            finish()
        self._ending = ending
        self.tap.close()
        self.transition = lambda *_, **__: None  # type: ignore[method-assign]
        self._woken.set()

    def _remove(self) -> None:
        """Remove the plugin and its operations from the scheduler."""
        self._detach_hooks("the recorder was removed")
        for task in self._running:
            task.cancel()
        try:
            self.scheduler.plugins.pop(self.name, None)
        except Exception:  # noqa: BLE001 - of an unknown version
            with contextlib.suppress(Exception):  # it was not added, or has been removed
                self.scheduler.remove_plugin(self.name)
        if not self._closing:
            self._worker_plugins.unregister_soon()
        self._operations.close()
        others: list[dict[str, Any]] = []
        with contextlib.suppress(Exception):  # an unknown version has no `plugins`
            others = _health_of_all(self.scheduler)
        with contextlib.suppress(Exception):
            if not others:
                self.scheduler.handlers.pop(OPERATION, None)
        # Dask keeps every handler that it has called in a cache, and with it this recorder.
        with contextlib.suppress(AttributeError):
            distributed.core._expects_comm.cache_clear()
        self._last_pull_waits.set()

    # -- operations that the client calls ------------------------------------------------

    def health(self) -> dict[str, Any]:
        """Return the state of this recording, for ``roast-record status``."""
        return {
            "trace_id": self.trace_id,
            "client": self._client_id,
            "start_t": self._start_t,
            "state": ENDED if self._ending else RECORDING,
            "buffer_bytes": self._buffer.nbytes,
            "flush_interval_seconds": self.settings["flush_interval_seconds"],
            "last_write_age_seconds": monotonic() - self._buffer.last_pull,
            **self.writer_health(),
        }

    async def pull(self, received: int) -> dict[str, Any] | None:
        """Return ``batches`` after number `received`, the last that has been written.

        Wait for the flush interval before, so that the caller can pull in a loop. The wait is
        shorter after the first results, and omitted if recording ends or the buffer is crowded.
        ``ending`` is how the recording ended if no batch will follow, else empty. Return None
        instead if the plugin was removed, so that the recording did not end cleanly.
        """
        if not self._woken.is_set() and not self._buffer.crowded:
            interval = self.settings["flush_interval_seconds"]
            if self._first_result is not None:
                share = (monotonic() - self._first_result) * FLUSH_SHARE
                interval = min(interval, max(share, MIN_INTERVALS["flush_interval_seconds"]))
            # Not `wait_for`: before Python 3.12 it ignores a cancellation after `_woken.set()`.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval):
                    await self._woken.wait()
        if self._was_removed():
            self._detach_hooks(REMOVED)
        if not self._ending and not self._closing:
            self._woken.clear()
        for append in self._before_pull:
            append()
        batches = self._buffer.pull(received)
        ending = self._ending if not batches and self._buffer.empty else ""
        if self._closing and not batches and self.on_all_left is None:
            # No further pull will reach the scheduler, so this answer must contain
            # everything until it is gone.
            await self._wait_until_all_left()
            self._detach_hooks("the scheduler closed")
            batches = self._buffer.pull(received, everything=True)
            ending = self._ending
        if ending:
            self._remove()
        return None if ending == REMOVED else {"batches": batches, "ending": ending}

    def pull_rest(self) -> tuple[list[tuple[int, bytes]], str]:
        """Return all batches, of which some may be written already, and how recording ended.

        The ending is empty if the plugin was removed.
        """
        self._closing = True  # nothing can be awaited: the event loop may have ended
        self._detach_hooks("the scheduler closed")
        batches = self._buffer.pull(0, everything=True)
        self._remove()
        return batches, "" if self._ending == REMOVED else self._ending

    async def detach(
        self, *, ending: str = "recording was stopped", abandon: bool = False
    ) -> None:
        """End the recording; the client continues to pull until nothing is left.

        The trailer will contain `ending`. `abandon`: the client will not pull.
        """
        if abandon:
            self._remove()
        elif not self._ending:
            await self._flush()
            self._detach_hooks(ending)
            await self._worker_plugins.unregister()

    def _was_removed(self) -> bool:
        """Return whether the plugin is no longer one of the scheduler's."""
        plugins = self.tap.read("trailer", self.scheduler, "plugins")
        return plugins is not None and self.name not in plugins

    async def _flush(self) -> None:
        """Collect what workers have not sent, and what is recorded beside the hooks."""
        await self._worker_plugins.flush()
        await asyncio.wait(self._running)

    # -- hooks ---------------------------------------------------------------------------

    def update_graph(
        self,
        scheduler: Scheduler,  # noqa: ARG002
        *,
        client: str,
        tasks: list[Any],
        **others: Any,
    ) -> None:
        """Record a graph and its new tasks."""
        if self._ending:
            return
        t, stimulus_id = time(), others.get("stimulus_id")
        new = self.tasks.append_graph(tasks, t, client, stimulus_id)
        for call in self._on_graph:
            call(new, t, client, stimulus_id)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Record a worker that has joined."""
        state = scheduler.workers[worker]
        # `attach` has recorded those that were joining at that time.
        if self.workers.get(worker) is not state:
            self.workers[worker] = state
            read = partial(self.tap.read, "worker_added", state)
            self.record("worker_added", **_worker_facts(worker, read))

    def remove_worker(self, scheduler: Scheduler, worker: str, **others: Any) -> None:  # noqa: ARG002
        """Record a worker that has left and is no longer in the scheduler's state."""
        about = {
            "server_id": self.server_id("worker_removed", worker),
            "stimulus_id": others.get("stimulus_id"),
        }
        self.workers.pop(worker, None)
        self.record("worker_removed", worker=worker, **about)
        self._check_all_left()

    def add_client(self, scheduler: Scheduler, client: str, **_: Any) -> None:
        """Record a client that has connected."""
        clients = self.tap.read("client_added", scheduler, "clients") or {}
        versions = self.tap.read("client_added", clients.get(client), "versions") or {}
        fields = {"client": client, "versions": versions.get("packages")}
        self.append(("client_added", time(), 1, fields))
        with self.tap.guard("client_added", 0):
            # The scheduler adds the connection after this hook, before a batch is encoded.
            asyncio.get_running_loop().call_soon(self._add_client_host, fields)

    def _add_client_host(self, fields: dict[str, Any]) -> None:
        with self.tap.guard("client_added", 0):
            comms = self.tap.read("client_added", self.scheduler, "client_comms") or {}
            comm = comms.get(fields["client"])  # it may have left already
            address = self.tap.read("client_added", comm, "comm.peer_address")
            with contextlib.suppress(ValueError):  # of another form, as in one process
                fields["host"] = address and get_address_host(address)

    def remove_client(self, scheduler: Scheduler, client: str, **_: Any) -> None:  # noqa: ARG002
        """Record a client that has disconnected."""
        self.record("client_removed", client=client)
        self._check_all_left()

    def log_event(self, topic: str, msg: Any) -> None:
        """Record an event of any topic, and the records that worker plugins send as events."""
        if self._worker_plugins.receive(topic, msg):
            return
        if self._transitions is not None:
            self._transitions.on_event(topic, msg)
        for record in self._on_event:
            if record(topic, msg):
                return

    async def before_close(self) -> None:
        """Record the workers' last measurements while they are connected."""
        await self._flush()
        for finish in self._finish:
            finish()

    async def close(self) -> None:
        """Wait until the last pull is waiting.

        After this hook the scheduler removes its workers and clients, which causes more
        transitions.
        """
        self._closing = True
        self._check_all_left()
        if self.on_all_left is not None:
            return  # the recording is in this process and pulls until then
        self._woken.set()
        # A connected client may have waited for the flush interval.
        is_connected = self._client_id in self._clients()
        closed = monotonic() if is_connected else 0.0
        while not self._last_pull_waits.is_set():
            if monotonic() - max(self._buffer.last_pull, closed) > CLOSE_TIMEOUT_SECONDS:
                logger.warning(
                    "roast: the last records of %s were not collected", self.trace_id
                )
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._last_pull_waits.wait(), 0.1)

    def _check_all_left(self) -> None:
        workers = self.tap.read("worker_removed", self.scheduler, "workers")
        if self._closing and not workers and not self._clients():
            self._all_left.set()
            if self.on_all_left is not None:
                self.on_all_left()

    async def _wait_until_all_left(self) -> None:
        self._last_pull_waits.set()
        try:
            await self._all_left.wait()
            # The scheduler's next step cancels this task, and would cancel its answer.
            await asyncio.sleep(CLOSE_TIMEOUT_SECONDS)
        except asyncio.CancelledError:
            # The scheduler cancels the handlers of its clients before it removes workers and
            # clients, which is quick. The answer must come after that.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_left.wait(), CLOSE_TIMEOUT_SECONDS)


def _worker_facts(address: str, read: Callable[[str], Any]) -> dict[str, Any]:
    """Return the fields of a ``worker_added`` record.

    `read` returns an attribute of the scheduler's state of the worker, or None.
    """
    same = ("server_id", "host", "pid", "nthreads", "memory_limit", "nanny", "local_directory")
    name, versions = read("name"), read("versions")
    return {
        "worker": address,
        "name": None if name is None else str(name),
        "resources": read("resources") or None,
        "versions": versions.get("packages") if isinstance(versions, Mapping) else None,
        **{name: read(name) for name in same},
    }


def _health_of_all(scheduler: Scheduler) -> list[dict[str, Any]]:
    """Return the health of a scheduler's recordings, whose classes may differ."""
    plugins: list[tuple[Any, Any]] = list(scheduler.plugins.items())
    ours = (plugin for name, plugin in plugins if str(name).startswith(NAME))
    return [plugin.health() for plugin in ours if hasattr(plugin, "health")]
