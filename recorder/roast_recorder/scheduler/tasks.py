"""The tasks of graphs, and those that are older than the recording."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any

from roast_recorder.scheduler.wire_format import Row, plain

if TYPE_CHECKING:
    from distributed.scheduler import TaskState

    from roast_recorder.scheduler.buffer import Buffer
    from roast_recorder.scheduler.plugin import Recorder

#: Maximum number of tasks in a row, and of existing tasks that are recorded before the
#: scheduler's own work continues.
TASKS_PER_STEP = 1_000


class Tasks:
    """Append the tasks of a scheduler to a buffer."""

    def __init__(self, core: Recorder, buffer: Buffer) -> None:
        self._core = core
        self._buffer = buffer
        #: Those of the scheduler, by key.
        self.known: dict[Any, TaskState] = {}
        for kind in ("transition", "task", "span", "chunk"):  # all are read from there
            self.known = core.tap.read(kind, core.scheduler, "tasks", {})
        #: Field ``value`` of tasks, by key: a probe sets it before their graph is recorded.
        self.values: dict[Any, Any] = {}
        #: Called with the identity of a span when its first task enters.
        self.on_span: list[Callable[[str | None], None]] = []
        self._spans: set[str | None] = set()

    async def append_existing(self, tasks: list[TaskState]) -> None:
        """Append the tasks that entered before the recorder."""
        # Until all have been appended, transitions can have keys that need text.
        self._buffer.keys_as_text = True
        for first in range(0, len(tasks), TASKS_PER_STEP):
            self.append(tasks[first : first + TASKS_PER_STEP], time())
            await asyncio.sleep(0)  # yield to the scheduler
        self._buffer.keys_as_text = False

    def append_graph(
        self, keys: list[Any], t: float, client: str, stimulus_id: str | None
    ) -> list[TaskState]:
        """Append the new tasks among those of a client's graph; return them."""
        known = self.known
        # Tasks that entered with an earlier graph are in other states.
        try:
            new = [
                task for key in keys if (task := known.get(key)) and task.state == "released"
            ]
        except Exception:  # noqa: BLE001 - rather record some twice than none
            read = partial(self._core.tap.read, "task")
            new = [
                task
                for task in map(known.get, keys)
                if task and read(task, "state", "released") == "released"
            ]
        for first in range(0, len(new), TASKS_PER_STEP):
            self.append(new[first : first + TASKS_PER_STEP], t, client, stimulus_id)
        return new

    def append(
        self,
        tasks: list[TaskState],
        t: float,
        client: str | None = None,
        stimulus_id: str | None = None,
    ) -> None:
        """Append a row of tasks submitted by a client or, if it is None, of existing tasks."""
        exist = client is None
        new_keys, spans = self._buffer.new_keys, self._spans
        values_by_key = {} if exist else self.values
        with_tasks = "task" in self._core.kinds
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
                        self._enter_span(span_id)
                key = task.key
                others = [other.key for other in task.dependencies] if task.dependencies else ()
                if others or key.__class__ is not str:
                    # With the dependencies: data that a client has scattered are in no graph.
                    new_keys += (key, *others)
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
                    values_by_key.get(key), existing,
                )  # fmt: skip
            except Exception:  # noqa: BLE001 - one of the facts is missing
                group = None
                if with_tasks:
                    values += self._odd_task(task, values_by_key, exist=exist)
        if values:
            self._buffer.append(("task", t, len(tasks), (client, stimulus_id, values)))

    def _odd_task(self, task: TaskState, values_by_key: Any, *, exist: bool) -> Row:
        """Return the values of a task that can be read; the others are None."""
        read = partial(self._core.tap.read, "task")
        key, span_id = read(task, "key"), read(task, "group.span_id")
        dependencies = [read(other, "key") for other in read(task, "dependencies") or ()]
        self._buffer.new_keys += (key, *dependencies)
        self._enter_span(self._core.tap.read("span", task, "group.span_id"))
        existing = None
        if exist:
            on = read(task, "processing_on")
            processing = (read(on, "address"), read(task, "run_id")) if on else ()
            existing = (read(task, "state"), *processing)
        return (
            key, read(task, "prefix.name"), read(task, "group.name"), dependencies,
            plain(read(task, "priority")), plain(read(task, "annotations")) or None, span_id,
            values_by_key.get(key), existing,
        )  # fmt: skip

    def _enter_span(self, span_id: str | None) -> None:
        self._spans.add(span_id)
        for call in self.on_span:
            call(span_id)
