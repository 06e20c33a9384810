"""The scheduler plugin: hooks that append, and the two operations that a client calls.

The hooks run on the scheduler's thread between two of its own steps, so they do nothing
but take what would be gone later and append a row. Encoding happens when the client
pulls; everything else happens on the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
from time import time
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import SchedulerPlugin

from roast_recorder import coffea, environment, tap
from roast_recorder.buffer import Buffer
from roast_recorder.rows import RECORD, TASK, TRANSITION
from roast_recorder.sampler import sample_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Scheduler
    from distributed.scheduler import TaskState

logger = logging.getLogger("roast_recorder")

#: How long a scheduler that closes waits for the client to fetch what is left.
CLOSE_TIMEOUT_SECONDS = 3.0


class RecorderPlugin(SchedulerPlugin):
    """Records one scheduler for one client.

    Parameters
    ----------
    trace_id : str
        Names the plugin and its operations, so that several recorders on one scheduler
        stay apart.
    client_id : str
        When this client goes, so does the recorder.
    settings : dict
        As :class:`roast_recorder.settings.Settings` gives them.
    """

    def __init__(self, trace_id: str, client_id: str, settings: dict[str, Any]) -> None:
        self.name = f"roast-recorder-{trace_id}"
        self._trace_id = trace_id
        self._client_id = client_id
        self._settings = settings

    # -- beginning and end ---------------------------------------------------------------

    async def start(self, scheduler: Scheduler) -> None:
        """Attach to the scheduler and write down what is there already."""
        self._scheduler = scheduler
        self._tasks = scheduler.tasks
        self._buffer = Buffer(self._settings["buffer_limit_bytes"])
        self._append = self._buffer.append
        self._erred_message: dict[str, Any] | None = None
        self._leaving: dict[str, Any] = {}
        self._server_ids: dict[str, str] = {}
        self._attached = True
        self._ending = ""
        self._closing = asyncio.Event()
        self._delivered = asyncio.Event()
        self._write_snapshot()
        self._stop_listening = tap.listen(scheduler, self._on_task_erred)
        for operation, handler in self._operations().items():
            scheduler.handlers[operation] = handler
        self._ticker = asyncio.create_task(self._tick())

    def _operations(self) -> dict[str, Callable[..., Any]]:
        return {
            operation_name("hello", self._trace_id): self.hello,
            operation_name("pull", self._trace_id): self.pull,
            operation_name("detach", self._trace_id): self.detach,
        }

    def _write_snapshot(self) -> None:
        for section, name, value in environment.scheduler_facts(self._scheduler):
            self._record("environment", section=section, name=name, value=value)
        for worker in self._scheduler.workers:
            self.add_worker(self._scheduler, worker)
        for task in self._tasks.values():
            self._append(_task_row(task, time(), None, None, task.state))

    def _detach_hooks(self, ending: str) -> None:
        """Stop recording. What has been recorded can still be pulled.

        The plugin stays registered until then: it must hear when the client or the
        scheduler goes.
        """
        if not self._attached:
            return
        self._attached = False
        self._ending = ending
        self._ticker.cancel()
        self._stop_listening()
        with contextlib.suppress(Exception):
            self._sample()
        self._append = _ignore
        self._closing.set()

    def _leave(self) -> None:
        """Take away the last traces of the recorder."""
        self._detach_hooks("the recorder left")
        self._scheduler.plugins.pop(self.name, None)
        for operation in self._operations():
            self._scheduler.handlers.pop(operation, None)
        self._delivered.set()

    # -- what the client calls -----------------------------------------------------------

    async def hello(self) -> dict[str, Any]:
        """Say what a header needs: versions, addresses, clock."""
        return environment.header_facts(self._scheduler)

    async def pull(self, received: int) -> dict[str, Any]:
        """Hand over the batches that the client lacks.

        An answer comes after the flush interval, or at once when recording ends, so the
        client only needs to ask again and again.

        Parameters
        ----------
        received : int
            Number of the last batch that the client has; 0 is none.

        Returns
        -------
        dict
            ``batches``: list of (number, bytes); ``dropped``: rows lost by kind since the
            last pull; ``ending``: if nothing will follow, why; else empty.
        """
        if not self._closing.is_set() and not self._buffer.crowded:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(
                    self._closing.wait(), self._settings["flush_interval_seconds"]
                )
        batches = self._buffer.pull(received)
        dropped = dict(self._buffer.dropped)
        self._buffer.dropped.clear()
        ending = self._ending if self._buffer.empty else ""
        if ending:
            self._leave()
        return {"batches": batches, "dropped": dropped, "ending": ending}

    async def detach(self, *, abandon: bool = False) -> None:
        """End the recording; the client goes on pulling until nothing is left.

        Parameters
        ----------
        abandon : bool
            The client will not pull; what was recorded is thrown away.
        """
        self._detach_hooks("recording was stopped")
        if abandon:
            self._leave()

    # -- hooks ---------------------------------------------------------------------------

    def transition(
        self,
        key: Any,
        start: str,
        finish: str,
        *_args: Any,
        stimulus_id: str,
        **details: Any,
    ) -> None:
        """Record a transition, with what only this moment knows."""
        t = time()
        worker = run_id = None
        if finish == "processing":
            task = self._tasks[key]
            worker = task.processing_on.address if task.processing_on else None
            run_id = task.run_id
        elif start == "processing":
            run_id = self._tasks[key].run_id
            if finish == "erred":
                details = _with_exception_text(details)
            elif not details:
                details = self._end_without_details(key, run_id, stimulus_id)
            # Nobody reads these, and they can be large.
            details.pop("type", None)
            details.pop("metadata", None)
        self._append(
            (TRANSITION, t, key, start, finish, stimulus_id, worker, run_id, details or None)
        )

    def update_graph(
        self,
        scheduler: Scheduler,  # noqa: ARG002 - Dask's signature
        *,
        client: str,
        tasks: list[Any],
        stimulus_id: str | None = None,
        **_others: Any,
    ) -> None:
        """Record the tasks that enter, and which of them are coffea chunks."""
        t = time()
        seen_usermeta: dict[int, Any] = {}
        for key in tasks:
            task = self._tasks.get(key)
            # The other states belong to tasks that the scheduler knew before.
            if task is None or task.state != "released":
                continue
            self._append(_task_row(task, t, client, stimulus_id, None))
            self._record_chunk(task, t, seen_usermeta)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Record a worker that has come."""
        state = scheduler.workers[worker]
        self._server_ids[worker] = state.server_id
        self._record("worker_added", **environment.worker_facts(state))

    def remove_worker(
        self,
        scheduler: Scheduler,  # noqa: ARG002 - Dask's signature
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

    def log_event(self, topic: str, msg: Any) -> None:
        """Record an event of any topic."""
        worker = msg.get("worker") if isinstance(msg, dict) else None
        if not isinstance(worker, str):
            worker = topic if topic in self._server_ids else None
            if isinstance(msg, dict) and msg.get("action") == "remove-worker":
                self._leaving = {**msg, "worker": topic}
        self._record("event", topic=topic, worker=worker, payload=msg)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:  # noqa: ARG002
        """Leave when the client that records has gone."""
        if client == self._client_id:
            logger.info("roast: the client of recording %s has gone", self._trace_id)
            self._leave()

    async def before_close(self) -> None:
        """Take a last sample while the workers are still there."""
        self._sample()

    async def close(self) -> None:
        """Let the client fetch what is left before the scheduler is gone."""
        self._detach_hooks("the scheduler closed")
        try:
            await asyncio.wait_for(self._delivered.wait(), CLOSE_TIMEOUT_SECONDS)
        except TimeoutError:
            logger.warning("roast: recording %s was not fetched to its end", self._trace_id)

    # -- what Dask tells no plugin -------------------------------------------------------

    def _end_without_details(
        self, key: Any, run_id: int | None, stimulus_id: str
    ) -> dict[str, Any]:
        """Give what is known of an attempt that ended with neither result nor error.

        That is the error if the task will be tried again, and the worker if it has gone:
        since stealing moves tasks without a transition, it need not be the one of
        ``→processing``.
        """
        message = self._erred_message
        if message and message["key"] == key and message.get("run_id") in (None, run_id):
            # A copy without the pickles: the message itself is the scheduler's.
            return {name: message.get(name) for name in _TOLD_OF_FAILURES}
        leaving = self._leaving
        if leaving.get("stimulus_id") == stimulus_id and key in leaving.get(
            "processing-tasks", ()
        ):
            return {"worker": leaving["worker"]}
        return {}

    def _on_task_erred(self, message: dict[str, Any] | None) -> None:
        self._erred_message = message

    # -- rows ----------------------------------------------------------------------------

    def _record_chunk(self, task: TaskState, t: float, seen_usermeta: dict[int, Any]) -> None:
        try:
            chunk = coffea.chunk_identity(task.run_spec, seen_usermeta)
        except Exception:
            logger.debug("roast: cannot look into task %s", task.key, exc_info=True)
            return
        if chunk is not None:
            self._append((RECORD, t, "chunk", {"key": task.key, **chunk}))

    def _record(self, kind: str, **fields: Any) -> None:
        self._append((RECORD, time(), kind, fields))

    def _sample(self) -> None:
        t = time()
        for worker in self._scheduler.workers.values():
            self._append(sample_row(worker, t))

    async def _tick(self) -> None:
        while True:
            try:
                self._sample()
                self._buffer.trim()
            except Exception:
                logger.exception("roast: a sample could not be taken")
            await asyncio.sleep(self._settings["sample_interval_seconds"])


#: What a worker says of a failed attempt that the record of its end takes over.
_TOLD_OF_FAILURES = ("worker", "thread", "startstops", "exception_text", "traceback_text")


def _ignore(row: tuple[Any, ...]) -> None:
    """Take a row that comes after the end of recording."""


def operation_name(operation: str, trace_id: str) -> str:
    """Name a recorder's operation among the scheduler's handlers."""
    return f"roast_{operation}_{trace_id}"


def _task_row(
    task: TaskState, t: float, client: str | None, stimulus_id: str | None, state: str | None
) -> tuple[Any, ...]:
    group = task.group
    return (
        TASK,
        t,
        task.key,
        task.prefix.name,
        group.name,
        [dependency.key for dependency in task.dependencies],
        task.priority,
        task.annotations or None,
        getattr(group, "span_id", None),
        client,
        stimulus_id,
        state,
    )


def _with_exception_text(details: dict[str, Any]) -> dict[str, Any]:
    """Put a text where Dask has only a pickle: a task that killed its workers."""
    exception = details.get("exception")
    if details.get("exception_text") or not isinstance(exception, bytes):
        return details
    try:
        text = repr(error := pickle.loads(exception)).partition("(")[0] + f": {error}"  # noqa: S301 - the scheduler's own
    except Exception:  # noqa: BLE001
        text = "an exception that cannot be read"
    return {**details, "exception_text": text}
