"""The scheduler plugin: hooks that append, and the operations that a client calls.

The hooks run on the scheduler's thread between two of its own steps, so they do nothing
but take what would be gone later and append it. Encoding happens a batch at a time;
everything else happens in the process that writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import cloudpickle
from distributed.comm.core import connect
from distributed.core import send_recv
from distributed.diagnostics.plugin import SchedulerPlugin

from roast_recorder import environment, process
from roast_recorder.coffea import task_identity as chunks
from roast_recorder.scheduler import message_hooks
from roast_recorder.scheduler.buffer import TRANSITION_VALUES_PER_BATCH, Buffer
from roast_recorder.scheduler.computations import Computations
from roast_recorder.scheduler.sampler import sample
from roast_recorder.scheduler.wire_format import Row, needs_text, pack, plain
from roast_recorder.scheduler.worker_plugins import WorkerPlugins
from roast_recorder.settings import OPT_IN_KINDS, recorded_kinds
from roast_recorder.worker.plugin import PLUGIN_NAME, PROCESS_OPERATION
from roast_recorder.worker.profiler import ProfileReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from distributed import Scheduler
    from distributed.scheduler import TaskState

logger = logging.getLogger("roast_recorder")

#: How long a scheduler that closes waits for a sign of who fetches what is left.
CLOSE_TIMEOUT_SECONDS = 3.0

#: How long workers may take to say what they have measured since their last heartbeat.
HEARTBEAT_TIMEOUT_SECONDS = 2.0

#: How long the recorder stays, and goes on recording, when its client has gone: a broken
#: connection comes back, and what a killed client leaves behind is fetched by its writer.
ORPHANED_SECONDS = 30.0

#: Tasks of the snapshot that are written between two steps of the scheduler.
TASKS_PER_STEP = 1_000


class RecorderPlugin(SchedulerPlugin):
    """Records one scheduler.

    Parameters
    ----------
    trace_id : str
        Names the plugin and its operations, so that several recorders on one scheduler
        stay apart.
    client_id : str or None
        When this client has gone for :data:`ORPHANED_SECONDS`, so has the recorder. None
        if the scheduler itself records.
    settings : dict
        As :class:`roast_recorder.settings.Settings` gives them.
    meter : bytes or None
        A pickled :class:`roast_recorder.worker.plugin.WorkerRecorder` for every worker.
    """

    def __init__(
        self,
        trace_id: str,
        client_id: str | None,
        settings: dict[str, Any],
        meter: bytes | None = None,
    ) -> None:
        self.name = f"roast-recorder-{trace_id}"
        self._meter = meter
        self._trace_id = trace_id
        self._client_id = client_id
        self._settings = settings

    # -- beginning and end ---------------------------------------------------------------

    async def start(self, scheduler: Scheduler) -> None:
        """Attach to the scheduler and write down what is there already."""
        if hasattr(self, "_scheduler"):
            return  # a scheduler starts the plugins that a preload has added once more
        self._scheduler = scheduler
        self._tasks = scheduler.tasks
        self._kinds = recorded_kinds(self._settings)
        self._buffer = Buffer(self._settings["buffer_limit_bytes"])
        self._erred_message: dict[str, Any] | None = None
        self._leaving: dict[str, Any] = {}
        self._server_ids: dict[str, str] = {}
        self._seen_spans: set[str] = set()
        self._odd_keys_came = False
        self._attached = True
        self._ending = ""
        self._closes = False
        self._woken = asyncio.Event()
        self._last_pull_waits = asyncio.Event()
        self._nobody_left = asyncio.Event()
        self._when_nobody_is_left: Callable[[], None] | None = None
        self._profiler = None
        if "profile" in self._kinds:
            self._profiler = ProfileReader.of_scheduler(scheduler, time())
        self._profiled = monotonic()
        self._meters = WorkerPlugins(
            scheduler, self._trace_id, self._meter, self._kinds, self._append
        )
        self._computations = Computations(code=self._settings["code"])
        self._attach_hooks()
        self._write_who_is_there()
        # What comes later, the hooks record; what goes before its turn is in this list.
        tasks = list(self._tasks.values())
        self._snapshot = asyncio.create_task(self._write_snapshot(tasks))
        self._describing = asyncio.create_task(self._write_what_it_is())
        self._ticker = asyncio.create_task(self._tick())
        for operation, handler in self._operations().items():
            scheduler.handlers[operation] = handler
        await self._meters.register()

    def _attach_hooks(self) -> None:
        if "transition" in self._kinds:
            self.transition = self._transition_hook()  # type: ignore[method-assign]
        self._stop_listening = [
            message_hooks.listen(
                self._scheduler.stream_handlers, "task-erred", self._on_task_erred
            )
        ]
        if "fine_metric" in self._kinds:
            self._stop_listening.append(
                message_hooks.listen(
                    self._scheduler.handlers, "heartbeat_worker", self._on_heartbeat
                )
            )

    def _operations(self) -> dict[str, Callable[..., Any]]:
        return {
            operation_name("hello", self._trace_id): self.hello,
            operation_name("pull", self._trace_id): self.pull,
            operation_name("detach", self._trace_id): self.detach,
            PROCESS_OPERATION.format(trace_id=self._trace_id): self._meters.receive_process,
        }

    def _write_who_is_there(self) -> None:
        self._plugins = list(environment.plugin_facts(self._scheduler))
        for section, name, value in environment.scheduler_facts(self._scheduler):
            self._record("environment", section=section, name=name, value=value)
        for worker in self._scheduler.workers:
            self.add_worker(self._scheduler, worker)
        for client in _clients(self._scheduler):
            self._record("client_added", client=client)

    async def _write_what_it_is(self) -> None:
        """Write down what the scheduler runs with and on."""
        if "environment" not in self._kinds:
            return
        # What reads files must not hold up the scheduler's event loop.
        told = await asyncio.to_thread(process.describe, "scheduler", self._settings)
        for fields in process.facts_of(*told, self._meters.sheets):
            self._record("environment", **fields)

    async def _write_snapshot(self, tasks: list[TaskState]) -> None:
        """Write down the tasks that are there already."""
        # Until all have been looked at, any key may be odd.
        odd_keys, self._buffer.keys_as_text = False, True
        for first in range(0, len(tasks), TASKS_PER_STEP):
            step = tasks[first : first + TASKS_PER_STEP]
            odd_keys = odd_keys or _are_odd(step)
            self._append_graph(step, time(), None, None, snapshot=True)
            # The scheduler's own work goes first.
            await asyncio.sleep(0)
        self._buffer.keys_as_text = odd_keys or self._odd_keys_came

    def _write_plugins(self) -> None:
        """Name the plugins again, if some have come or gone meanwhile."""
        for fact in environment.plugin_facts(self._scheduler):
            if fact not in self._plugins:
                section, name, value = fact
                name = f"{name} when recording ended"
                self._record("environment", section=section, name=name, value=value)

    def _detach_hooks(self, ending: str) -> None:
        """Stop recording. What has been recorded can still be pulled.

        The plugin stays registered until then: it must hear when the scheduler goes.
        """
        if not self._attached:
            return
        with contextlib.suppress(Exception):
            self._sample()
            self._take_profile()
            self._write_plugins()
        self._attached = False
        self._ending = ending
        for stop_listening in self._stop_listening:
            stop_listening()
        self.transition = _ignore  # type: ignore[method-assign]
        self._woken.set()

    def _leave(self) -> None:
        """Take away the last traces of the recorder."""
        self._detach_hooks("the recorder left")
        self._ticker.cancel()
        self._snapshot.cancel()
        self._describing.cancel()
        self._scheduler.plugins.pop(self.name, None)
        if not self._closes:
            self._meters.unregister_soon()
        for operation in self._operations():
            self._scheduler.handlers.pop(operation, None)
        self._last_pull_waits.set()

    # -- what the client calls -----------------------------------------------------------

    async def hello(self) -> dict[str, Any]:
        """Say what a header needs: versions, addresses, clock."""
        return environment.header_facts(self._scheduler)

    async def pull(self, received: int) -> dict[str, Any]:
        """Hand over the batches that the puller lacks.

        An answer comes after the flush interval, or at once when recording ends or much
        waits, so the puller only needs to ask again and again.

        Parameters
        ----------
        received : int
            Number of the last batch that is written; 0 is none.

        Returns
        -------
        dict
            ``batches``: list of (number, content); ``ending``: if nothing will
            follow, why; else empty.
        """
        if not self._woken.is_set() and not self._buffer.crowded:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(
                    self._woken.wait(), self._settings["flush_interval_seconds"]
                )
        batches = self._buffer.pull(received)
        ending = self._ending if not batches and self._buffer.empty else ""
        if self._closes and not batches and self._when_nobody_is_left is None:
            # What comes until the scheduler is gone must be in this answer: no other
            # question will reach it.
            await self._wait_until_nobody_is_left()
            self._detach_hooks("the scheduler closed")
            batches = self._buffer.pull(received, everything=True)
            ending = self._ending
        if ending:
            self._leave()
        return {"batches": [(b.number, b.content) for b in batches], "ending": ending}

    def pull_the_rest(self) -> tuple[list[tuple[int, bytes]], str]:
        """Hand over all there is, when nobody can wait for an answer any more.

        Returns
        -------
        list of (int, bytes)
            Batches as :meth:`pull` gives them, some of which may be written already.
        str
            How the recording ended.
        """
        self._detach_hooks("the scheduler closed")
        batches = self._buffer.pull(0, everything=True)
        self._leave()
        return [(batch.number, batch.content) for batch in batches], self._ending

    async def detach(
        self, *, ending: str = "recording was stopped", abandon: bool = False
    ) -> None:
        """End the recording; the client goes on pulling until nothing is left.

        Parameters
        ----------
        ending : str
            Why, as the trailer will say it.
        abandon : bool
            The client will not pull; what was recorded is thrown away.
        """
        if abandon:
            self._leave()
            return
        if not self._attached:
            return
        await self._hear_workers()
        await asyncio.wait([self._snapshot, self._describing])
        self._detach_hooks(ending)
        await self._meters.unregister()

    # -- hooks ---------------------------------------------------------------------------

    def _transition_hook(self) -> Callable[..., None]:
        """Make the hook that Dask calls at each transition.

        A closure with named arguments, since looking up attributes, and a dict for the
        details, would cost as much again as all that it does.
        """
        tasks = self._tasks
        values = self._buffer.transitions
        extend = values.extend
        seal = self._buffer.seal
        limit = TRANSITION_VALUES_PER_BATCH
        now = time
        explain = self._explain_failure
        look_at = self._look_at_keys

        def transition(
            key: Any,
            start: str,
            finish: str,
            *,
            stimulus_id: str,
            worker: str | None = None,
            thread: int | None = None,
            nbytes: int | None = None,
            typename: str | None = None,
            startstops: Any = None,
            type: Any = None,  # noqa: A002, ARG001 - named to be left out
            metadata: Any = None,  # noqa: ARG001
            status: Any = None,  # noqa: ARG001
            **others: Any,
        ) -> None:
            if finish == "processing":
                task = tasks[key]
                on = task.processing_on
                address = on.address if on else None
                extend((now(), key, start, finish, stimulus_id, address, task.run_id))
            elif start == "processing":
                run_id = tasks[key].run_id
                failure = None
                if finish != "memory":
                    worker, thread, startstops, failure = explain(
                        key, stimulus_id, run_id, worker, thread, startstops, others
                    )
                extend(
                    (
                        now(),
                        key,
                        start,
                        finish,
                        stimulus_id,
                        worker,
                        run_id,
                        thread,
                        nbytes,
                        typename,
                        startstops,
                        failure,
                    )
                )
            else:
                if start == "memory" and key.__class__ is not str:
                    look_at((tasks[key],))  # it may be data that a client has scattered
                extend((now(), key, start, finish, stimulus_id))
            if len(values) > limit:
                seal()

        return transition

    def update_graph(
        self,
        scheduler: Scheduler,
        *,
        client: str,
        tasks: list[Any],
        stimulus_id: str | None = None,
        **_others: Any,
    ) -> None:
        """Record the tasks that enter, and which of them are coffea chunks."""
        if not self._attached:
            return
        known = self._tasks
        # The other states belong to tasks that the scheduler knew before.
        new = [task for key in tasks if (task := known.get(key)) and task.state == "released"]
        self._look_at_keys(new)
        t = time()
        self._append_graph(new, t, client, stimulus_id, snapshot=False)
        if "chunk" in self._kinds:
            self._append_chunks(new, t)
        if "computation" in self._kinds and (news := self._computations.news(scheduler)):
            fields = {**news, "client": client, "stimulus_id": stimulus_id}
            self._append(("computation", t, 1, fields))

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Record a worker that has come."""
        state = scheduler.workers[worker]
        # It may have come while the snapshot was being written.
        if self._server_ids.get(worker) != state.server_id:
            self._server_ids[worker] = state.server_id
            self._record("worker_added", **environment.worker_facts(state))

    def remove_worker(
        self,
        scheduler: Scheduler,
        worker: str,
        *,
        stimulus_id: str | None = None,
        **_others: Any,
    ) -> None:
        """Record a worker that has gone; the scheduler has forgotten it already."""
        self._record(
            "worker_removed",
            worker=worker,
            server_id=self._server_ids.pop(worker, None),
            stimulus_id=stimulus_id,
        )
        self._see_who_is_left(scheduler)

    def add_client(self, scheduler: Scheduler, client: str) -> None:  # noqa: ARG002
        """Record a client that has connected."""
        self._record("client_added", client=client)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Record a client that has gone."""
        self._record("client_removed", client=client)
        self._see_who_is_left(scheduler)

    def log_event(self, topic: str, msg: Any) -> None:
        """Record an event of any topic, and what meters tell."""
        if self._meters.receive(topic, msg):
            return
        worker = msg.get("worker") if isinstance(msg, dict) else None
        if not isinstance(worker, str):
            worker = topic if topic in self._server_ids else None
            if isinstance(msg, dict) and msg.get("action") == "remove-worker":
                self._leaving = {**msg, "worker": topic}
        if self._attached and "event" in self._kinds:
            fields = {"topic": topic, "worker": worker, "payload": msg}
            self._buffer.append(("event", time(), 1, fields))

    async def before_close(self) -> None:
        """Take what the workers still have to say while they are there."""
        await self._hear_workers()
        await asyncio.wait([self._snapshot, self._describing])
        self._sample()

    async def close(self) -> None:
        """Wait until somebody is waiting for what comes after this.

        The scheduler calls this hook and then lets its workers and clients go: that makes
        transitions, too.
        """
        self._closes = True
        self._see_who_is_left(self._scheduler)
        if self._when_nobody_is_left is not None:
            return  # who pulls is here, and stays until then
        self._woken.set()
        while not self._last_pull_waits.is_set():
            if monotonic() - self._buffer.last_pull > CLOSE_TIMEOUT_SECONDS:
                logger.warning("roast: nobody fetches the end of %s", self._trace_id)
                return
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._last_pull_waits.wait(), 0.1)

    # -- what Dask tells no plugin -------------------------------------------------------

    def _explain_failure(
        self,
        key: Any,
        stimulus_id: str,
        run_id: int | None,
        worker: str | None,
        thread: int | None,
        startstops: Any,
        details: dict[str, Any],
    ) -> tuple[str | None, int | None, Any, dict[str, Any] | None]:
        """Complete what Dask tells of an attempt that ended without a result.

        Returns
        -------
        tuple
            Worker, thread, startstops, and a dict of what is known of the error.
        """
        if details:
            return worker, thread, startstops, _error_of(details)
        message = self._erred_message
        if message and message["key"] == key and message.get("run_id") in (None, run_id):
            # It will be tried again, and Dask does not say what went wrong.
            worker, thread = message.get("worker"), message.get("thread")
            return worker, thread, message.get("startstops"), _error_of(message)
        leaving = self._leaving
        if leaving.get("stimulus_id") == stimulus_id and key in leaving.get(
            "processing-tasks", ()
        ):
            # Since stealing moves tasks without a transition, the worker that has gone
            # need not be the one of ``→processing``.
            worker = leaving["worker"]
        return worker, thread, startstops, None

    def _on_task_erred(self, message: dict[str, Any] | None) -> None:
        self._erred_message = message

    def _on_heartbeat(self, message: dict[str, Any] | None) -> None:
        """Record what a worker has added to its fine metrics.

        Those of tasks come with their span; what else a worker measures has none.
        """
        if message is None or not self._attached:
            return
        worker = message["address"]
        extensions = message.get("extensions") or {}
        digests = message["metrics"].get("digests_total_since_heartbeat", {})
        beside_tasks = {
            name: delta
            for name, delta in digests.items()
            if type(name) is tuple and len(name) == 3
        }
        deltas = {**(extensions.get("spans") or {}), **beside_tasks}
        if not _NUMBERS.issuperset(map(type, deltas.values())):
            deltas = {name: float(delta) for name, delta in deltas.items()}
        if deltas:
            content = (worker, self._server_ids.get(worker), deltas)
            self._buffer.append(("fine_metric", time(), len(deltas), content))

    async def _hear_workers(self) -> None:
        """Ask every worker for the heartbeat and whatever else it would send next.

        What a worker measured since the last ones is lost otherwise; and one that came just
        now may still be about to say what it is.
        """
        wanted = not self._kinds.isdisjoint(
            {"fine_metric", "profile", "environment", *OPT_IN_KINDS}
        )
        if not wanted or not self._scheduler.workers:
            return
        function = cloudpickle.dumps(_say_now(PLUGIN_NAME.format(trace_id=self._trace_id)))
        asked = [
            asyncio.create_task(self._hear(worker, function))
            for worker in list(self._scheduler.workers)
        ]
        # Not by the scheduler's pool of connections: one that is being opened to a worker
        # that does not answer must be gone before the scheduler closes.
        _, late = await asyncio.wait(asked, timeout=HEARTBEAT_TIMEOUT_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    async def _hear(self, worker: str, function: bytes) -> None:
        comm = await connect(
            worker, timeout=HEARTBEAT_TIMEOUT_SECONDS, **self._scheduler.connection_args
        )
        try:
            await send_recv(comm, op="run", function=function, reply=True)
        finally:
            comm.abort()

    # -- rows ----------------------------------------------------------------------------

    def _append(self, row: Row) -> None:
        if self._attached:
            self._buffer.append(row)

    def _record(self, kind: str, **fields: Any) -> None:
        if kind != "environment" or kind in self._kinds:
            self._append((kind, time(), 1, fields))

    def _append_graph(
        self,
        tasks: list[TaskState],
        t: float,
        client: str | None,
        stimulus_id: str | None,
        *,
        snapshot: bool,
    ) -> None:
        append = self._buffer.append
        spans = self._seen_spans
        with_tasks = "task" in self._kinds
        as_it_is = not self._buffer.keys_as_text
        for task in tasks:
            group = task.group
            span_id = getattr(group, "span_id", None)
            if span_id not in spans:
                self._record_span(span_id)
            if not with_tasks:
                continue
            on = task.processing_on if snapshot else None
            others = [other.key for other in task.dependencies] if task.dependencies else ()
            priority = task.priority
            values = (
                task.key if as_it_is else str(task.key),
                task.prefix.name,
                group.name,
                others if as_it_is else list(map(str, others)),
                priority if priority and type(priority[0]) is int else plain(priority),
                _plain_or_named(task.annotations) if task.annotations else None,
                span_id,
                client,
                stimulus_id,
                task.state if snapshot else None,
                on.address if on else None,
                task.run_id if on else None,
            )
            append(("task", t, 1, values))

    def _look_at_keys(self, tasks: Sequence[TaskState]) -> None:
        if not self._odd_keys_came and _are_odd(tasks):
            self._odd_keys_came = self._buffer.keys_as_text = True

    def _append_chunks(self, tasks: list[TaskState], t: float) -> None:
        seen_usermeta: dict[int, Any] = {}
        for task in tasks:
            try:
                chunk = chunks.chunk_identity(task.run_spec, seen_usermeta)
            except Exception:
                logger.debug("roast: cannot look into task %s", task.key, exc_info=True)
                continue
            if chunk is not None:
                self._append(("chunk", t, 1, {"key": str(task.key), **chunk}))

    def _record_span(self, span_id: str | None) -> None:
        """Record a span and those around it, the first time that a task is in it."""
        extension = self._scheduler.extensions.get("spans")
        while span_id is not None and span_id not in self._seen_spans:
            self._seen_spans.add(span_id)
            span = extension.spans.get(span_id) if extension else None
            parent = span.parent.id if span and span.parent else None
            if span is not None and "span" in self._kinds:
                self._record("span", span_id=span_id, span_name=span.name, parent_id=parent)
            span_id = parent

    def _sample(self) -> None:
        if not self._attached or "worker_sample" not in self._kinds:
            return
        t = time()
        append = self._buffer.append
        for worker in self._scheduler.workers.values():
            append(("worker_sample", t, 1, sample(worker)))

    def _take_profile(self) -> None:
        """Take what the profiler saw of the scheduler's own event loop."""
        self._profiled = monotonic()
        if self._profiler and (records := self._profiler.take()):
            content = (None, self._scheduler.id, pack(records))
            self._append(("profile", time(), len(records), content))

    async def _tick(self) -> None:
        while True:
            try:
                self._sample()
                if monotonic() - self._profiled >= self._settings["profile_interval_seconds"]:
                    self._take_profile()
            except Exception:
                logger.exception("roast: a sample could not be taken")
            if self._orphaned:
                logger.info("roast: nobody has fetched recording %s", self._trace_id)
                self._leave()
                return
            await asyncio.sleep(self._settings["sample_interval_seconds"])

    # -- who is there --------------------------------------------------------------------

    @property
    def _orphaned(self) -> bool:
        if self._client_id is None or self._client_id in self._scheduler.clients:
            return False
        return monotonic() - self._buffer.last_pull > ORPHANED_SECONDS

    def when_nobody_is_left(self, call: Callable[[], None]) -> None:
        """Have something called when a scheduler that closes has let all go."""
        self._when_nobody_is_left = call

    def _see_who_is_left(self, scheduler: Scheduler) -> None:
        if self._closes and not scheduler.workers and not _clients(scheduler):
            self._nobody_left.set()
            if self._when_nobody_is_left is not None:
                self._when_nobody_is_left()

    async def _wait_until_nobody_is_left(self) -> None:
        self._last_pull_waits.set()
        try:
            await self._nobody_left.wait()
            # What comes next cancels this, and would cancel an answer on its way.
            await asyncio.sleep(CLOSE_TIMEOUT_SECONDS)
        except asyncio.CancelledError:
            # The scheduler cancels what still runs for its clients, this too, and with it
            # what lets workers and clients go. That is quick; this answer comes after.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._nobody_left.wait(), CLOSE_TIMEOUT_SECONDS)


def _clients(scheduler: Scheduler) -> list[str]:
    """Name the clients, but for the one that Dask invents for tasks that nobody awaits."""
    return [client for client in scheduler.clients if client != "fire-and-forget"]


#: What metrics are, unless somebody's own code computes them with numpy.
_NUMBERS = frozenset({float, int})


def _are_odd(tasks: Sequence[TaskState]) -> bool:
    """Tell whether some keys hold what must become text before it is encoded."""
    for task in tasks:
        key = task.key
        if key.__class__ is not str and needs_text(key):
            return True
        if task.dependencies:
            # Data that a client has scattered enter with no graph of their own.
            for other in task.dependencies:
                if other.key.__class__ is not str and needs_text(other.key):
                    return True
    return False


def _plain_or_named(value: Any) -> Any:
    try:
        return plain(value)
    except Exception as error:  # noqa: BLE001 - users' objects may raise anything
        return f"<{type(value).__name__} that cannot be written: {type(error).__name__}>"


def _ignore(*_args: Any, **_details: Any) -> None:
    """Take a transition that comes after the end of recording."""


def _say_now(meter_name: str) -> Callable[..., Any]:
    """Make a function that travels to workers by value, whatever they have installed."""

    async def say_now(dask_worker: Any) -> None:
        await dask_worker.heartbeat()
        meter = dask_worker.plugins.get(meter_name)
        if meter is not None:
            await meter.flush()

    return say_now


def operation_name(operation: str, trace_id: str) -> str:
    """Name a recorder's operation among the scheduler's handlers."""
    return f"roast_{operation}_{trace_id}"


def _error_of(told: dict[str, Any]) -> dict[str, Any]:
    """Take the readable part of what Dask or a worker tells of an error."""
    text, exception = told.get("exception_text"), told.get("exception")
    if not text and isinstance(exception, bytes):
        # A task that killed its workers: Dask has only a pickle, of its own exception.
        text = _text_of_pickle(exception)
    return {
        "exception": text,
        "traceback": told.get("traceback_text"),
        "cause": None if told.get("cause") is None else str(told["cause"]),
    }


def _text_of_pickle(exception: bytes) -> str:
    try:
        error = pickle.loads(exception)  # noqa: S301 - the scheduler's own
        return repr(error).partition("(")[0] + f": {error}"
    except Exception:  # noqa: BLE001
        return "an exception that cannot be read"
