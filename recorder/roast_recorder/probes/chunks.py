"""Coffea's chunks, and sections that users name in their code.

On the scheduler, tasks are recognized as chunks before they run. :mod:`roast_recorder.coffea`
measures them, and sections, in the threads of workers.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any

import distributed.worker
from distributed import get_worker

from roast_recorder.coffea.instrumentation import add_listener, remove_listener
from roast_recorder.coffea.task_identity import chunk_identity
from roast_recorder.probes import SchedulerProbe, WorkerProbe
from roast_recorder.scheduler.wire_format import Row, loss, pack

if TYPE_CHECKING:
    from distributed.scheduler import TaskState

    from roast_recorder.coffea.measurement import Records

logger = logging.getLogger("roast_recorder")


class OnScheduler(SchedulerProbe):
    """Record which tasks of a graph are chunks."""

    def on_graph(
        self,
        tasks: list[TaskState],
        t: float,
        client: str,  # noqa: ARG002
        stimulus_id: str | None,  # noqa: ARG002
    ) -> None:
        """Record the identity of each chunk."""
        seen_usermeta: dict[int, Any] = {}
        for task in tasks:
            try:
                chunk = chunk_identity(task.run_spec, seen_usermeta)
                if chunk is not None:
                    self.core.append(("chunk", t, 1, {"key": str(task.key), **chunk}))
            except AttributeError as error:
                if error.obj is not task:
                    logger.debug("roast: task %s cannot be read", task.key, exc_info=True)
                    continue
                self.core.tap.read("chunk", task, "run_spec")
                return
            except Exception:
                logger.debug("roast: task %s cannot be read", task.key, exc_info=True)


class OnWorker(WorkerProbe):
    """Report what the threads of tasks have measured, before the ends of these tasks."""

    setting = "measure_chunks"

    def _install(self) -> None:
        core = self.core
        # Filled by the threads of tasks and emptied by the event loop: a deque needs no lock.
        self._measured: deque[Records] = deque()
        name = core.name_here
        core.tap.until_closed(lambda: remove_listener(name))
        add_listener(name, self._on_measured)
        # At each transition of a task here, so without a call in between.
        core.transition = self._before_transition  # type: ignore[method-assign]

    def _before_transition(self, *_arguments: Any, **_others: Any) -> None:
        """Send the chunk of a task before the scheduler is informed of the task's end."""
        if self._measured:
            self.core.send(self.take())

    def _on_measured(self, records: Records) -> None:
        """Queue the records of a chunk or section of this worker.

        This runs in the task's thread. Waking the event loop here would delay the task.
        """
        with self.core.tap.guard("chunk"):
            self._queue(records)

    def _queue(self, records: Records) -> None:
        worker, delay, read = (
            self.core.worker,
            self.core.delay(),
            partial(self.core.read, "chunk"),
        )
        try:
            if get_worker() is not worker:
                return
            # Through the module: a `threading.local` cannot be pickled by value.
            threads: Any = distributed.worker
            key: Any = getattr(threads.thread_state, "key", None)
            if threading.get_ident() == read("thread_id"):
                return  # a coroutine on the event loop
        except ValueError:
            if threading.current_thread() is threading.main_thread():
                return  # the program's own section
            key = None  # a thread that a task started
        task = (read("state.tasks") or {}).get(key)
        address = read("address")
        # Without a run id, a record would be one of a task instead of an attempt. Dask's are
        # positive.
        unknown = -int(1e6 * time())
        run_id = None if task is None else self.core.tap.read("chunk", task, "run_id", unknown)
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

    def take(self) -> list[Row]:
        """Return the chunks and sections since the last call."""
        by_kind: dict[str, list[dict[str, Any]]] = {}
        while self._measured:
            for kind, fields in self._measured.popleft():
                by_kind.setdefault(kind, []).append(fields)
        # Packed: Dask closes the connection when it cannot encode a name.
        return [(kind, len(several), pack(several)) for kind, several in by_kind.items()]
