"""The scheduler plugin: hooks that append rows, and the operations that a client calls.

The hooks run on the scheduler's event loop. They copy only data that would not be available
later, and append it to the buffer. Rows are encoded in batches; everything else happens in the
writing process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
from functools import partial, wraps
from time import monotonic, thread_time, time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import distributed.core
from distributed.comm.addressing import get_address_host
from distributed.diagnostics.plugin import SchedulerPlugin

from roast_recorder import client_program, environment, graphs
from roast_recorder.coffea import task_identity as chunks
from roast_recorder.event_loop import observe_stalls
from roast_recorder.exception_text import received_text
from roast_recorder.host import HostSampler
from roast_recorder.scheduler.buffer import (
    TRANSITION_VALUES_PER_BATCH,
    UNSEALED_SHARE,
    Buffer,
    estimated_bytes,
)
from roast_recorder.scheduler.health import ENDED, OPERATION, RECORDING
from roast_recorder.scheduler.tap import Tap
from roast_recorder.scheduler.wanted_keys import WantedKeys
from roast_recorder.scheduler.wire_format import (
    MAX_CHARACTERS,
    WORKER_METRICS,
    WORKER_SAMPLE,
    Row,
    needs_text,
    pack,
    pack_log,
    plain,
    plain_in_steps,
    scheduler_metrics,
    worker_sample,
)
from roast_recorder.scheduler.worker_plugins import WorkerPlugins
from roast_recorder.settings import (
    MIN_INTERVALS,
    OPT_IN_KINDS,
    OPTIONAL_KINDS,
    Settings,
    recorded_kinds,
    worker_kinds,
)
from roast_recorder.worker.plugin import operation_name, repeat
from roast_recorder.worker.profiler import ProfileReader

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence

    from distributed import Scheduler
    from distributed.scheduler import TaskState, WorkerState

logger = logging.getLogger("roast_recorder")

#: Beginning of the name of every recorder's plugin.
NAME = "roast-recorder-"

#: How long a closing scheduler waits for the next pull.
CLOSE_TIMEOUT_SECONDS = 3.0

#: How long the plugin stays after its client has gone: a lost connection can come back, and
#: the writing process of a killed client fetches the rest.
ORPHANED_SECONDS = 30.0

#: How recording ends if the plugin is no longer registered.
REMOVED = "the recorder's plugin was removed from the scheduler"

#: Time between two flushes, relative to the time since the first result: a program that is
#: killed after a second must not lose all of it.
FLUSH_SHARE = 1 / 5

#: Maximum number of tasks in a row, and of existing tasks that are recorded before the
#: scheduler's own work continues.
TASKS_PER_STEP = 1_000

#: Time after which the scheduler samples its host for the first time, unless a worker does.
FIRST_HOST_SAMPLE_SECONDS = 1.0

#: Approximate memory of a value of a transition, with the texts and the times of the task.
BYTES_PER_VALUE = 64

#: Estimated size of an event beyond which it is made plain in steps.
LARGE_EVENT_BYTES = 50_000

#: Maximum number of workers that are sampled before the scheduler's own work continues.
WORKERS_PER_STEP = 1_000

#: Longest text of an exception or a traceback; longer ones are cut in the middle.
MAX_ERROR_CHARACTERS = 100_000

#: The annotation of tasks that were submitted outside of spans; Dask has none for them.
OUTSIDE_SPANS = {"name": ("default",)}

#: Loss of the facts of a transition whose key the scheduler does not have.
NOT_A_TASK = "null, because the scheduler has no task of that key"

#: Types of metrics, unless a user's code computes them with numpy.
_NUMBERS = frozenset({float, int})


def _guarded(kind: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a hook: an error counts as a lost record and ends there.

    Dask would log each error. The arguments may be those of another version.
    """

    def decorate(hook: Callable[..., None]) -> Callable[..., None]:
        @wraps(hook)
        def call(self: RecorderPlugin, *arguments: Any, **others: Any) -> None:
            try:
                hook(self, *arguments, **others)
            except Exception as error:  # noqa: BLE001
                self._tap.failed(kind, error)

        return call

    return decorate


class RecorderPlugin(SchedulerPlugin):
    """Record one scheduler, for a client or, if `client_id` is None, for itself.

    `settings` are those of :meth:`roast_recorder.settings.Settings.as_dict`, `worker_plugin`
    is from :func:`roast_recorder.pickling.pickled_worker_plugin`. The trace's id is part of all
    names, because a scheduler can have several recorders.
    """

    #: Called when all workers and clients of a closing scheduler have left, if the scheduler
    #: records itself.
    on_all_left: Callable[[], None] | None = None

    #: Returns the health of the trace, if the scheduler writes it.
    writer_health: Callable[[], dict[str, Any]] = dict

    def __init__(
        self,
        trace_id: str,
        client_id: str | None,
        settings: dict[str, Any],
        worker_plugin: bytes | None = None,
    ) -> None:
        self.name = f"{NAME}{trace_id}"
        self._pickled_worker_plugin = worker_plugin
        self._trace_id = trace_id
        self._client_id = client_id
        self._settings = settings

    # -- start and end -------------------------------------------------------------------

    async def start(self, scheduler: Scheduler) -> None:
        """Attach to the scheduler and record its current state.

        Raises
        ------
        ValueError
            If an interval is too short.
        """
        # A scheduler calls `start` again for plugins that a preload has added and started.
        if hasattr(self, "_scheduler"):
            return
        # A client of another version has other rules.
        Settings(**{name: self._settings[name] for name in MIN_INTERVALS})
        self._scheduler = scheduler
        self._start_t = time()
        self._kinds = recorded_kinds(self._settings)
        self._skipped = frozenset([*OPTIONAL_KINDS, *OPT_IN_KINDS]) - self._kinds
        limit_bytes = self._settings["buffer_limit_bytes"]
        self._buffer = Buffer(int(limit_bytes * (1 - UNSEALED_SHARE)))
        self._tap = Tap(self._lose)
        self._operations = Tap(self._lose)
        self._erred_message: dict[str, Any] | None = None
        self._removal: dict[str, Any] = {}  # the last event of a worker's removal
        #: What workers execute, and since when, as of the last time that tasks were released.
        self._executing: dict[Any, float] = {}
        self._executing_until = 0.0  # on the monotonic clock: when it is collected again
        # By address. Unlike `scheduler.workers`, it contains a worker that is being removed.
        self._workers: dict[str, WorkerState] = {}
        self._seen_spans: set[str] = set()
        # Submitted span of each task that Dask files under another span, by key.
        self._submitted_spans: dict[Any, dict[str, Any]] = {}
        self._odd_keys_entered = False
        self._ending = ""  # how recording ended, once it has
        tasks = {}
        for kind in ("transition", "task", "span", "chunk"):  # all are read from there
            tasks = self._tap.read(kind, scheduler, "tasks", {})
        self._tasks: dict[Any, TaskState] = tasks
        self._closing = False
        self._woken = asyncio.Event()
        self._first_result: float | None = None
        self._last_pull_waits = asyncio.Event()
        self._all_left = asyncio.Event()
        self._profiles: ProfileReader | None = None
        self._profiled = monotonic()
        self._host: HostSampler | None = None
        self._worker_plugins = WorkerPlugins(
            scheduler,
            self._trace_id,
            self._pickled_worker_plugin,
            self._append,
            self._tap,
            worker_kinds(self._settings),
        )
        self._codes = graphs.CodeRegistry()
        self._last_computation: tuple[Any, int] | None = None
        self._plugins: dict[str, list[str]] = {}
        self._graph_bytes: dict[str, int | None] = {}  # of graphs in progress, by client
        self._seal_wanted_keys: Callable[[], None] = lambda: None
        self._running: list[asyncio.Task[None]] = []
        self._snapshot: asyncio.Task[None] | None = None
        self._describing: asyncio.Task[None] | None = None
        try:
            self._attach(scheduler)
            await self._worker_plugins.register()
        except BaseException:
            self._remove()
            raise

    def _attach(self, scheduler: Scheduler) -> None:
        """Install all hooks, record what is there, and become one of the scheduler's plugins.

        Each source of records is installed by itself, and left out if that fails.
        """
        self._install_hooks(scheduler, self._tap)
        for name in ("address", "id"):
            self._tap.read("header", scheduler, name)
        for worker in list(self._tap.read("worker_added", scheduler, "workers") or ()):
            self.add_worker(scheduler, worker)
        for client in self._clients():
            self.add_client(scheduler, client)
        with self._tap.guard("client_program", 0):
            for _, report in scheduler.get_events(client_program.TOPIC):
                self.log_event(client_program.TOPIC, report)
        # A list, because tasks can be forgotten before they are recorded.
        tasks = list(self._tasks.values())
        self._snapshot = self._run(self._record_existing_tasks(tasks))
        self._describing = self._run(self._record_environment())
        self._run(self._tick())
        operations: dict[str, Callable[..., Any]] = {
            "hello": lambda: environment.header_facts(scheduler),
            "pull": self.pull,
            "detach": self.detach,
            "process": self._worker_plugins.record_process,
        }
        for name, call in operations.items():
            operation = operation_name(name, self._trace_id)
            self._operations.entry(scheduler.handlers, operation, call)
        # One for all recordings of the scheduler.
        scheduler.handlers.setdefault(OPERATION, lambda: _health_of_all(scheduler))
        # Dask would add the plugin only after this, and workers may take seconds to answer.
        scheduler.add_plugin(self, name=self.name)

    def _install_hooks(self, scheduler: Scheduler, tap: Tap) -> None:
        kinds = self._kinds
        if "profile" in kinds:
            with tap.source("profile"):
                self._profiles = ProfileReader.of_scheduler(scheduler, time())
        if "environment" in kinds:
            self._plugins = self._plugin_names()
        for name, value in self._plugins.items():
            self._record("environment", section="scheduler", name=name, value=value)
        if "transition" in kinds:
            self.transition = self._transition_hook()  # type: ignore[method-assign]
            with tap.source("transition"):
                remember = partial(setattr, self, "_erred_message")
                streams = scheduler.stream_handlers
                tap.message(
                    "transition", streams, "task-erred", remember, lambda _: remember(None)
                )
        if "transition" in kinds and "worker_transition" not in kinds:
            with tap.source("worker_transition"):
                streams = scheduler.stream_handlers
                tap.message("worker_transition", streams, "long-running", self._on_secession)
        if "graph_update" in kinds:
            with tap.source("graph_update"):
                streams = scheduler.stream_handlers
                tap.message("graph_update", streams, "update-graph", self._on_update_graph)
        if "fine_metric" in kinds:
            with tap.source("fine_metric"):
                handlers = scheduler.handlers
                tap.message("fine_metric", handlers, "heartbeat_worker", self._on_heartbeat)
        if "stall" in kinds:
            with tap.source("stall"):
                observe_stalls(tap, scheduler, partial(self._record, "stall"))
        if "host_sample" in kinds:
            with tap.source("host_sample"):
                self._host = HostSampler(self._trace_id, is_scheduler=True)
                interval = self._settings["host_interval_seconds"]
                first = min(interval, FIRST_HOST_SAMPLE_SECONDS)
                sample = self._sample_host
                self._run(repeat(tap, "host_sample", sample, interval, first))
        if "task" in kinds:
            with tap.source("task", "span"):
                spans, on_tasks = scheduler.extensions["spans"], self._on_observe_tasks
                tap.method("task", spans, "observe_tasks", on_tasks, positional=("tss",))
        if "wanted_keys" in kinds:
            with tap.source("wanted_keys"):
                self._seal_wanted_keys = WantedKeys(
                    scheduler, self._append, self._defer, tap
                ).seal

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._running.append(task)
        return task

    def _plugin_names(self) -> dict[str, list[str]]:
        """Return the names of plugins and extensions, by what they are."""
        read = partial(self._tap.read, "environment", self._scheduler)
        return environment.plugin_names(read)

    def _clients(self) -> list[str]:
        """Return the clients, without Dask's placeholder for `fire_and_forget`."""
        clients = self._tap.read("client_added", self._scheduler, "clients") or ()
        return [client for client in clients if client != "fire-and-forget"]

    async def _record_environment(self) -> None:
        """Record the scheduler's process and host."""
        if "environment" not in self._kinds:
            return
        with self._tap.guard("environment"):
            # In a thread, because it reads files.
            facts = await environment.call_in_thread(
                environment.packed_facts, "scheduler", self._settings
            )
            self._worker_plugins.record_process(facts)

    async def _record_existing_tasks(self, tasks: list[TaskState]) -> None:
        """Record the tasks that entered before the recorder."""
        # Until all keys have been checked, any of them may need text.
        self._buffer.keys_as_text = True
        for first in range(0, len(tasks), TASKS_PER_STEP):
            self._append_graph(tasks[first : first + TASKS_PER_STEP], time())
            await asyncio.sleep(0)  # yield to the scheduler
        self._buffer.keys_as_text = self._odd_keys_entered

    def _detach_hooks(self, ending: str) -> None:
        """Stop recording; the rest can still be pulled.

        The plugin stays registered until then: it must be called when the scheduler closes.
        """
        if self._ending:
            return
        if self._was_removed():
            # Any client can unregister it. Dask does not report it.
            ending = REMOVED
            logger.warning("roast: recording %s ends: %s", self._trace_id, REMOVED)
        with self._tap.guard("wanted_keys"):
            self._seal_wanted_keys()
        self._sample()
        self._sample_host()
        self._take_profile()
        if "environment" in self._kinds:
            for kind, names in self._plugin_names().items():
                if names != self._plugins.get(kind):
                    name = f"{kind} when recording ended"
                    self._record("environment", section="scheduler", name=name, value=names)
        self._ending = ending
        self._tap.close()
        self.transition = lambda *_, **__: None  # type: ignore[method-assign]
        self._woken.set()

    def _remove(self) -> None:
        """Remove the plugin and its operations from the scheduler."""
        self._detach_hooks("the recorder was removed")
        for task in self._running:
            task.cancel()
        try:
            self._scheduler.plugins.pop(self.name, None)
        except Exception:  # noqa: BLE001 - of an unknown version
            with contextlib.suppress(Exception):  # it was not added, or has been removed
                self._scheduler.remove_plugin(self.name)
        if not self._closing:
            self._worker_plugins.unregister_soon()
        self._operations.close()
        with contextlib.suppress(Exception):
            if not _health_of_all(self._scheduler):
                self._scheduler.handlers.pop(OPERATION, None)
        # Dask keeps every handler that it has called in a cache, and with it this recorder.
        with contextlib.suppress(AttributeError):
            distributed.core._expects_comm.cache_clear()
        self._last_pull_waits.set()

    # -- operations that the client calls ------------------------------------------------

    def health(self) -> dict[str, Any]:
        """Return the state of this recording, for ``roast-record status``."""
        return {
            "trace_id": self._trace_id,
            "client": self._client_id,
            "start_t": self._start_t,
            "state": ENDED if self._ending else RECORDING,
            "buffer_bytes": self._buffer.nbytes,
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
            interval = self._settings["flush_interval_seconds"]
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
        with self._tap.guard("wanted_keys"):
            self._seal_wanted_keys()
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
        plugins = self._tap.read("trailer", self._scheduler, "plugins")
        return plugins is not None and self.name not in plugins

    async def _flush(self) -> None:
        """Collect what workers have not sent, and what is recorded beside the hooks."""
        await self._worker_plugins.flush()
        await asyncio.wait([task for task in (self._snapshot, self._describing) if task])

    # -- hooks ---------------------------------------------------------------------------

    def _transition_hook(self) -> Callable[..., None]:
        """Return the hook that Dask calls at each transition.

        It is a closure with named arguments: attribute lookups and a dict of keyword
        arguments would double its cost.
        """
        tasks = self._tasks
        values = self._buffer.transitions
        extend = values.extend
        seal = self._buffer.seal
        limit = min(
            TRANSITION_VALUES_PER_BATCH,
            int(self._settings["buffer_limit_bytes"] * UNSEALED_SHARE / BYTES_PER_VALUE),
        )
        now = time
        unreported = self._unreported_end
        begun_at = self._begun_at
        workers = self._workers
        check_keys = self._check_keys
        has_result = False

        # Everything has a default, so that Dask's call cannot fail before it is recorded.
        def transition(
            key: Any = None,
            start: Any = None,
            finish: Any = None,
            *_: Any,
            stimulus_id: Any = None,
            worker: str | None = None,
            thread: int | None = None,
            nbytes: int | None = None,
            typename: str | None = None,
            startstops: Any = None,
            type: Any = None,  # noqa: A002, ARG001 - named, so that it is left out
            metadata: Any = None,  # noqa: ARG001
            status: Any = None,  # noqa: ARG001
            **others: Any,
        ) -> None:
            nonlocal has_result
            try:
                if finish == "processing":
                    task = tasks[key]
                    on = task.processing_on
                    address = on.address if on else None
                    extend((now(), key, start, finish, stimulus_id, address, task.run_id))
                elif start == "processing":
                    if not has_result:
                        has_result = True
                        self._first_result = monotonic()
                        self._woken.set()
                    run_id = tasks[key].run_id
                    failure = start_t = None
                    if finish != "memory":
                        if "exception" in others or "exception_text" in others:
                            failure = _error_of(others)
                        elif end := unreported(key, run_id, stimulus_id):
                            worker, thread, startstops, failure = end
                        # The start of the task, as of the worker's last heartbeat.
                        if worker is None and finish == "released":
                            start_t = begun_at(tasks[key])
                        elif worker and not startstops and (state := workers.get(worker)):
                            seconds = state.executing.get(tasks[key])
                            start_t = None if seconds is None else state.last_seen - seconds
                    extend(
                        (
                            now(), key, start, finish, stimulus_id,
                            worker, run_id, thread, nbytes, typename, startstops, failure,
                            start_t,
                        )
                    )  # fmt: skip
                else:
                    if start == "memory" and key.__class__ is not str:
                        check_keys((key,))  # data scattered by a client enter here
                    extend((now(), key, start, finish, stimulus_id))
            except Exception as error:  # noqa: BLE001 - Dask's state is not as expected
                end = worker, thread, nbytes, typename, startstops, others
                self._record_odd_transition(key, start, finish, stimulus_id, end, error)
            if len(values) > limit:
                seal()

        return transition

    def _record_odd_transition(
        self,
        key: Any,
        start: Any,
        finish: Any,
        stimulus_id: Any,
        ending: tuple[Any, ...],
        error: Exception,
    ) -> None:
        """Record a transition whose facts could not all be read: those that can be."""
        if start is None or finish is None:
            self._tap.failed("transition", error)
            return
        read = partial(self._tap.read, "transition")
        task = self._tasks.get(key) if isinstance(self._tasks, dict) else None
        if task is None and "processing" in (start, finish):
            self._tap.lose("transition", NOT_A_TASK, 0, error)
        row: list[Any] = [time(), key, start, finish, stimulus_id]
        run_id = read(task, "run_id")
        if finish == "processing":
            row += [read(task, "processing_on.address"), run_id]
        elif start == "processing":
            worker, thread, nbytes, typename, startstops, others = ending
            failure = start_t = None
            if finish != "memory":
                with self._tap.guard("transition", 0):
                    if "exception" in others or "exception_text" in others:
                        failure = _error_of(others)
                    elif end := self._unreported_end(key, run_id, stimulus_id):
                        worker, thread, startstops, failure = end
                    state = self._workers.get(worker or "")
                    executing, last_seen = read(state, "executing"), read(state, "last_seen")
                    if not startstops and executing and last_seen and task in executing:
                        start_t = last_seen - executing[task]
                    elif worker is None and finish == "released":
                        start_t = self._begun_at(task)
            row += [worker, run_id, thread, nbytes, typename, startstops, failure, start_t]
        self._buffer.transitions.extend(row)
        if type(key) is not str:
            self._check_keys((key,))

    @_guarded("task")
    def update_graph(
        self,
        scheduler: Scheduler,  # noqa: ARG002
        *,
        client: str,
        tasks: list[Any],
        **others: Any,
    ) -> None:
        """Record the tasks of a graph, and which of them are coffea chunks."""
        if self._ending:
            return
        known, read = self._tasks, self._tap.read
        # Tasks that entered with an earlier graph are in other states.
        try:
            new = [
                task for key in tasks if (task := known.get(key)) and task.state == "released"
            ]
        except Exception:  # noqa: BLE001 - rather record some twice than none
            new = [
                task
                for task in map(known.get, tasks)
                if task and read("task", task, "state", "released") == "released"
            ]
        t, stimulus_id = time(), others.get("stimulus_id")
        for first in range(0, len(new), TASKS_PER_STEP):
            self._append_graph(new[first : first + TASKS_PER_STEP], t, client, stimulus_id)
        if "chunk" in self._kinds:
            self._append_chunks(new, t)
        if (nbytes := self._graph_bytes.pop(client, None)) is not None:
            groups = None
            if nbytes >= graphs.LARGE_GRAPH_BYTES:
                with self._tap.guard("graph_update", 0):
                    groups = graphs.bytes_by_group(new)
            value = {"groups": groups} if groups else None
            about = {"client": client, "stimulus_id": stimulus_id, "nbytes": nbytes}
            self._append(("graph_update", t, 1, {**about, "value": value}))
        if "computation" in self._kinds:
            with self._tap.guard("computation"):
                self._append_computation(t, client, stimulus_id)

    def _append_chunks(self, tasks: list[TaskState], t: float) -> None:
        """Record which tasks are coffea chunks."""
        seen_usermeta: dict[int, Any] = {}
        for task in tasks:
            try:
                chunk = chunks.chunk_identity(task.run_spec, seen_usermeta)
                if chunk is not None:
                    self._append(("chunk", t, 1, {"key": str(task.key), **chunk}))
            except AttributeError as error:
                if error.obj is not task:
                    logger.debug("roast: task %s cannot be read", task.key, exc_info=True)
                    continue
                self._tap.read("chunk", task, "run_spec")
                return
            except Exception:
                logger.debug("roast: task %s cannot be read", task.key, exc_info=True)

    def _append_computation(self, t: float, client: str, stimulus_id: str | None) -> None:
        """Record the computation of a client's graph."""
        computations = self._scheduler.computations
        if not computations:
            return  # distributed.diagnostics.computations.max-history is 0
        computation = computations[-1]
        stacks = list(computation.code) if self._settings["code"] else []
        latest = (computation.id, len(stacks))
        if latest != self._last_computation:
            self._last_computation = latest
            codes = self._codes.of_stacks(stacks)
            about = {"name": str(computation.id), "client": client, "stimulus_id": stimulus_id}
            value = {"codes": codes} if codes else None
            # With the time of its tasks, which belong to it.
            self._append(("computation", t, 1, {**about, "value": value}))

    @_guarded("worker_added")
    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Record a worker that has joined."""
        state = scheduler.workers[worker]
        # `start` has recorded those that were joining at that time.
        if self._workers.get(worker) is not state:
            self._workers[worker] = state
            read = partial(self._tap.read, "worker_added", state)
            self._record("worker_added", **environment.worker_facts(worker, read))

    @_guarded("worker_removed")
    def remove_worker(self, scheduler: Scheduler, worker: str, **others: Any) -> None:  # noqa: ARG002
        """Record a worker that has left and is no longer in the scheduler's state."""
        about = {
            "server_id": self._server_id("worker_removed", worker),
            "stimulus_id": others.get("stimulus_id"),
        }
        self._workers.pop(worker, None)
        self._record("worker_removed", worker=worker, **about)
        self._check_all_left()

    @_guarded("client_added")
    def add_client(self, scheduler: Scheduler, client: str, **_: Any) -> None:
        """Record a client that has connected."""
        clients = self._tap.read("client_added", scheduler, "clients") or {}
        versions = self._tap.read("client_added", clients.get(client), "versions") or {}
        fields = {"client": client, "versions": versions.get("packages")}
        self._append(("client_added", time(), 1, fields))
        with self._tap.guard("client_added", 0):
            # The scheduler adds the connection after this hook, before a batch is encoded.
            asyncio.get_running_loop().call_soon(self._add_client_host, fields)

    def _add_client_host(self, fields: dict[str, Any]) -> None:
        with self._tap.guard("client_added", 0):
            comms = self._tap.read("client_added", self._scheduler, "client_comms") or {}
            comm = comms.get(fields["client"])  # it may have left already
            address = self._tap.read("client_added", comm, "comm.peer_address")
            with contextlib.suppress(ValueError):  # of another form, as in one process
                fields["host"] = address and get_address_host(address)

    @_guarded("client_removed")
    def remove_client(self, scheduler: Scheduler, client: str, **_: Any) -> None:  # noqa: ARG002
        """Record a client that has disconnected."""
        self._record("client_removed", client=client)
        self._check_all_left()

    @_guarded("event")
    def log_event(self, topic: str, msg: Any) -> None:
        """Record an event of any topic, and the records that worker plugins send as events."""
        if self._worker_plugins.receive(topic, msg):
            return
        if topic == client_program.TOPIC and (fields := client_program.fields_of(msg)):
            self._record("client_program", **fields)
            return
        worker = msg.get("worker") if isinstance(msg, dict) else None
        if not isinstance(worker, str):
            worker = topic if topic in self._workers else None
            if isinstance(msg, dict) and msg.get("action") == "remove-worker":
                self._removal = {**msg, "worker": topic}
        fields = {"topic": topic, "worker": worker, "payload": msg}
        nbytes = estimated_bytes(msg)
        if nbytes > LARGE_EVENT_BYTES:
            # Dask keeps the event as well.
            self._defer("event", _event_rows(time(), fields), min(nbytes, MAX_CHARACTERS))
        else:
            self._record("event", **fields)

    async def before_close(self) -> None:
        """Record the workers' last measurements while they are connected."""
        await self._flush()
        await self._sample_in_steps()

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
                    "roast: the last records of %s were not collected", self._trace_id
                )
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._last_pull_waits.wait(), 0.1)

    # -- data that Dask does not pass to plugins -----------------------------------------

    def _unreported_end(self, key: Any, run_id: int | None, stimulus_id: str) -> Row | None:
        """Return worker, thread, startstops and failure that Dask does not pass to plugins."""
        message = self._erred_message
        # Without a run id of the task, the message that is being handled is its attempt's.
        if (
            message
            and message["key"] == key
            and (run_id is None or message.get("run_id") in (None, run_id))
        ):
            # The task will be retried.
            worker, thread = message.get("worker"), message.get("thread")
            return worker, thread, message.get("startstops"), _error_of(message)
        removal = self._removal
        is_lost = removal.get("stimulus_id") == stimulus_id
        if is_lost and key in removal.get("processing-tasks", ()):
            # Work stealing moves tasks without a transition, so this worker can differ
            # from that of ``→ processing``.
            return removal["worker"], None, None, None
        return None

    def _begun_at(self, task: Any) -> float | None:
        """Return when a task that is no longer assigned began to execute, if that is known.

        The worker is not known either. Thousands of tasks can be released one by one, so that
        what all workers execute is collected in at most 2 % of the time. An attempt is returned
        once.
        """
        now = monotonic()
        if now >= self._executing_until:
            begin = thread_time()
            self._executing = {
                executed: worker.last_seen - seconds
                for worker in self._workers.values()
                for executed, seconds in worker.executing.items()
            }
            self._executing_until = now + 50 * (thread_time() - begin)
        return self._executing.pop(task, None)

    def _on_secession(self, message: dict[str, Any]) -> None:
        """Record that a task has left the threads of its worker, which no phase contains.

        Unlike the other transitions on workers, it is always recorded.
        """
        kind, worker, t = "worker_transition", message["worker"], time()
        key, stimulus_id = str(message["key"]), message["stimulus_id"]
        entry = [key, "executing", "long-running", "long-running", stimulus_id, t]
        packed = pack_log(worker, self._server_id(kind, worker) or "", 0.0, entry)
        if not self._ending:
            self._buffer.append((kind, t, 1, packed))

    def _on_update_graph(self, message: dict[str, Any]) -> None:
        """Note the size of a client's graph, which :meth:`update_graph` records."""
        self._graph_bytes[message["client"]] = graphs.serialized_bytes(message)

    def _server_id(self, kind: str, worker: str) -> str | None:
        state = self._workers.get(worker)
        if state is None:  # it has left, or no worker can be read
            self._tap.read(kind, self._scheduler, "workers")
        server_id: str | None = self._tap.read(kind, state, "server_id")
        return server_id

    def _on_observe_tasks(self, message: dict[str, Any]) -> None:
        """Note the tasks of a graph that were submitted in another span than their group's.

        A task group belongs to the span of its first task. Dask overwrites the annotation of
        the others, before plugins are called.
        """
        spans = self._scheduler.extensions["spans"].spans
        self._submitted_spans = {}
        filed: dict[Any, str | None] = {}
        group: Any = None
        submitted = annotation = None
        for task in message["tss"]:
            annotations = task.annotations
            span = annotations.get("span") if annotations else None
            if task.group is not group or span is not submitted:  # usually as before
                group, submitted = task.group, span
                span_id = _span_id(submitted)
                if group not in filed:
                    first = spans.get(group.span_id)
                    filed[group] = _span_id(first.annotation) if first else span_id
                annotation = None
                if filed[group] != span_id:
                    name = plain(submitted) if span_id else OUTSIDE_SPANS
                    annotation = {"submitted_span": name}
            if annotation:
                self._submitted_spans[task.key] = annotation

    def _on_heartbeat(self, message: dict[str, Any]) -> None:
        """Record what a worker has added to its fine metrics."""
        worker = message["address"]
        # Metrics of tasks have a span and are in the data of the spans extension.
        extensions = message.get("extensions") or {}
        digests = message["metrics"].get("digests_total_since_heartbeat", {})
        outside = (name for name in digests if type(name) is tuple and len(name) == 3)
        deltas = {
            **(extensions.get("spans") or {}),
            **{name: digests[name] for name in outside},
        }
        if not _NUMBERS.issuperset(map(type, deltas.values())):
            deltas = {name: float(delta) for name, delta in deltas.items()}
        if deltas:
            content = (worker, self._server_id("fine_metric", worker), deltas)
            self._append(("fine_metric", time(), len(deltas), content))

    # -- rows ----------------------------------------------------------------------------

    def _lose(self, kind: str, reason: str, records: int) -> None:
        if not self._ending:
            self._buffer.lose(reason, kind, time(), records)

    def _append(self, row: Row) -> None:
        if not self._ending and row[0] not in self._skipped:
            self._buffer.append(row)

    def _defer(self, kind: str, rows: Iterator[Row | None], nbytes: int) -> None:
        def guarded() -> Iterator[Row | None]:
            with self._tap.guard(kind):
                yield from rows

        if not self._ending and kind not in self._skipped:
            self._buffer.defer(guarded(), nbytes)

    def _record(self, kind: str, **fields: Any) -> None:
        self._append((kind, time(), 1, fields))

    def _append_graph(
        self,
        tasks: list[TaskState],
        t: float,
        client: str | None = None,
        stimulus_id: str | None = None,
    ) -> None:
        """Append a row of tasks submitted by a client or, if it is None, of existing tasks."""
        exist = client is None
        check_keys, spans = self._check_keys, self._seen_spans
        submitted_spans = {} if exist else self._submitted_spans
        with_tasks = "task" in self._kinds
        plain_annotations: dict[tuple[int, ...], Any] = {}
        # A flat list, as for transitions: tuples would slow down the garbage collector.
        values: list[Any] = []
        group: Any = None
        for task in tasks:
            try:
                if task.group is not group:  # usually that of the previous task
                    group = task.group
                    group_name, prefix_name = group.name, task.prefix.name
                    span_id = group.span_id
                    if span_id not in spans:
                        self._record_span(span_id)
                key = task.key
                others = [other.key for other in task.dependencies] if task.dependencies else ()
                if others or key.__class__ is not str:
                    check_keys(
                        (key, *others)
                    )  # data that a client has scattered are in no graph
                if not with_tasks:
                    continue
                annotations, priority, existing = task.annotations or None, task.priority, None
                if annotations:
                    # Tasks share the annotation of their span, which is slow to copy. It is
                    # found by identity, because users' objects may not be comparable.
                    alike = (*map(id, annotations), *map(id, annotations.values()))
                    if alike not in plain_annotations:
                        plain_annotations[alike] = plain(annotations)
                    annotations = plain_annotations[alike]
                if not priority or type(priority[0]) is not int:
                    priority = plain(priority)
                if exist:
                    on = task.processing_on
                    existing = (task.state, *((on.address, task.run_id) if on else ()))
                values += (
                    key, prefix_name, group_name, others, priority, annotations, span_id,
                    submitted_spans.get(key), existing,
                )  # fmt: skip
            except Exception:  # noqa: BLE001 - one of the facts is missing
                group = None
                if with_tasks:
                    values += self._odd_task(task, submitted_spans, exist=exist)
        if values:
            self._buffer.append(("task", t, len(tasks), (client, stimulus_id, values)))

    def _odd_task(self, task: TaskState, submitted_spans: Any, *, exist: bool) -> Row:
        """Return the values of a task that can be read; the others are None."""
        read = partial(self._tap.read, "task")
        key, span_id = read(task, "key"), read(task, "group.span_id")
        dependencies = [read(other, "key") for other in read(task, "dependencies") or ()]
        self._check_keys((key, *dependencies))
        self._record_span(self._tap.read("span", task, "group.span_id"))
        existing = None
        if exist:
            on = read(task, "processing_on")
            processing = (read(on, "address"), read(task, "run_id")) if on else ()
            existing = (read(task, "state"), *processing)
        return (
            key, read(task, "prefix.name"), read(task, "group.name"), dependencies,
            plain(read(task, "priority")), plain(read(task, "annotations")) or None, span_id,
            submitted_spans.get(key), existing,
        )  # fmt: skip

    def _check_keys(self, keys: Iterable[Any]) -> None:
        for key in keys:
            if key.__class__ is not str and needs_text(key):
                self._odd_keys_entered = self._buffer.keys_as_text = True

    def _record_span(self, span_id: str | None) -> None:
        """Record a span and its parents when its first task enters."""
        if "span" not in self._kinds:
            return
        with self._tap.guard("span"):
            self._record_span_and_parents(span_id)

    def _record_span_and_parents(self, span_id: str | None) -> None:
        extension = self._scheduler.extensions.get("spans")
        while span_id is not None and span_id not in self._seen_spans:
            self._seen_spans.add(span_id)
            span = extension.spans.get(span_id) if extension else None
            parent = span.parent.id if span and span.parent else None
            if span is not None:
                self._record("span", span_id=span_id, span_name=span.name, parent_id=parent)
            span_id = parent

    async def _sample_in_steps(self) -> None:
        """Sample; a scheduler of thousands of workers does its own work in between."""
        workers = self._all_workers()
        for first in range(WORKERS_PER_STEP, len(workers), WORKERS_PER_STEP):
            self._sample_workers(workers[first : first + WORKERS_PER_STEP])
            await asyncio.sleep(0)
        self._sample(workers[:WORKERS_PER_STEP])

    def _all_workers(self) -> list[WorkerState]:
        workers = self._tap.read("worker_sample", self._scheduler, "workers") or {}
        return list(workers.values())

    def _sample_workers(self, workers: Sequence[WorkerState]) -> None:
        if "worker_sample" in self._kinds:
            with self._tap.guard("worker_sample"):
                try:
                    samples = list(map(worker_sample, workers))
                except Exception:  # noqa: BLE001 - one of the facts is missing
                    samples = list(map(self._odd_worker_sample, workers))
                if samples:
                    self._append(("worker_sample", time(), len(samples), samples))

    def _sample(self, workers: Sequence[WorkerState] | None = None) -> None:
        """Sample the scheduler and workers, by default all."""
        self._sample_workers(self._all_workers() if workers is None else workers)
        if "scheduler_sample" in self._kinds:
            with self._tap.guard("scheduler_sample"):
                read = partial(self._tap.read, "scheduler_sample", self._scheduler)
                metrics = scheduler_metrics(read)
                self._record("scheduler_sample", server_id=read("id"), metrics=metrics)

    def _sample_host(self) -> None:
        """Sample the scheduler's host while no worker of it does."""
        if self._host is None:
            return
        with self._tap.guard("host_sample"):
            sample = self._host.take()
            if sample is not None:
                server_id = self._tap.read("host_sample", self._scheduler, "id")
                self._record("host_sample", server_id=server_id, **sample)

    def _odd_worker_sample(self, worker: WorkerState) -> Row:
        """Return the values of a sample that can be read; the others are None."""
        read = partial(self._tap.read, "worker_sample", worker)
        facts = [read(name) for name in ("address", *WORKER_SAMPLE[1:])]
        # `processing` and `executing` are containers.
        facts = [len(fact) if isinstance(fact, (dict, set)) else fact for fact in facts]
        metrics: Row = (None,) * len(WORKER_METRICS)
        with self._tap.guard("worker_sample", 0):
            others: dict[str, Any] = dict.fromkeys(("address", *WORKER_SAMPLE), ())
            stand_in: Any = SimpleNamespace(**others, metrics=read("metrics") or {})
            metrics = worker_sample(stand_in)[len(WORKER_SAMPLE) :]
        return (*facts, *metrics)

    def _take_profile(self) -> None:
        """Record the profile of the scheduler's event loop."""
        self._profiled = monotonic()
        if self._profiles is None:
            return
        with self._tap.guard("profile"):
            if records := self._profiles.take():
                content = (
                    None,
                    self._tap.read("profile", self._scheduler, "id"),
                    pack(records),
                )
                self._append(("profile", time(), len(records), content))

    async def _tick(self) -> None:
        while True:
            await self._sample_in_steps()
            if monotonic() - self._profiled >= self._settings["profile_interval_seconds"]:
                self._take_profile()
            clients = self._tap.read("client_removed", self._scheduler, "clients")
            is_connected = clients is None or self._client_id in (None, *clients)
            if not is_connected and monotonic() - self._buffer.last_pull > ORPHANED_SECONDS:
                logger.info("roast: the records of %s are no longer collected", self._trace_id)
                self._remove()
                return
            await asyncio.sleep(self._settings["sample_interval_seconds"])

    # -- clients and workers at the end --------------------------------------------------

    def _check_all_left(self) -> None:
        workers = self._tap.read("worker_removed", self._scheduler, "workers")
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


def _health_of_all(scheduler: Scheduler) -> list[dict[str, Any]]:
    """Return the health of a scheduler's recordings, whose classes may differ."""
    plugins: list[tuple[Any, Any]] = list(scheduler.plugins.items())
    ours = (plugin for name, plugin in plugins if str(name).startswith(NAME))
    return [plugin.health() for plugin in ours if hasattr(plugin, "health")]


def _span_id(annotation: dict[str, Any] | None) -> str | None:
    """Return the identity of the innermost span of an annotation; None outside of spans."""
    ids = annotation.get("ids") if isinstance(annotation, dict) else None
    return ids[-1] if ids else None


def _event_rows(t: float, fields: dict[str, Any]) -> Iterator[Row | None]:
    """Yield the row of a large event after the steps that make it plain."""
    plain_fields = yield from plain_in_steps(fields)
    yield "event", t, 1, (plain_fields,)


def _error_of(details: dict[str, Any]) -> dict[str, Any]:
    """Return the readable parts of an error, from Dask's arguments or a worker's message."""
    text, exception = details.get("exception_text"), details.get("exception")
    if not text and isinstance(exception, bytes):
        # KilledWorker is passed only as a pickle.
        try:
            error = pickle.loads(exception)  # noqa: S301 - the scheduler's own
            text = _cut(repr(error).partition("(")[0] + f": {error}")
        except Exception:  # noqa: BLE001
            text = "an exception that cannot be read"
    elif text:
        text = received_text(_cut(text), exception)
    return {
        "exception": text,
        "traceback": _cut(details.get("traceback_text") or "") or None,
        "cause": None if details.get("cause") is None else str(details["cause"]),
    }


def _cut(text: str) -> str:
    """Return the beginning and the end of a text that is too long for a record."""
    if len(text) <= MAX_ERROR_CHARACTERS:
        return text
    half = MAX_ERROR_CHARACTERS // 2
    return f"{text[:half]}… ({len(text):,} characters) …{text[-half:]}"
