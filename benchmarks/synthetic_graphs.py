"""Copies of recorded graphs with new names.

A :class:`Graph` contains the tasks of a recorded run. :meth:`Graph.copied` returns new tasks
of the same structure, with random durations, sizes and outcomes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from recorded_shape import TOKEN, Shape, TaskShape, as_json

if TYPE_CHECKING:
    from synthetic_workers import Worker

# Not fitted, because a recorded run of seconds is too short.
LEAST_FAILING_SHARE = 2e-5
FATAL_SHARE = 0.1  # share of failing tasks that fail at every attempt

DATASETS = 40  # per recorded dataset; copies are assigned round-robin


class Text:
    """JSON text with placeholders for the tokens of a run.

    Parameters
    ----------
    text : str
        The recorded text.
    places : dict of str to int
        Index of each token found so far; new tokens are added.
    """

    def __init__(self, text: str, places: dict[str, int]) -> None:
        found = TOKEN.findall(text)
        self._places = [places.setdefault(token, len(places)) for token in found]
        self._text = TOKEN.sub("%s", text.replace("%", "%%"))

    def filled(self, tokens: list[str]) -> str:
        return self._text % tuple([tokens[place] for place in self._places])


class Kind:
    """The tasks of one prefix and span: their distributions, and their names as JSON."""

    def __init__(self, prefix: str, span_id: str, run: Shape) -> None:
        self.run = run
        self.shape = run.prefixes[prefix]
        self.prefix = as_json(prefix)
        self.span = as_json(span_id)
        self.failing_share = max(self.shape.failing_share, LEAST_FAILING_SHARE)


class Model:
    """A task of a recorded graph, as a template for copies."""

    def __init__(self, task: TaskShape, kind: Kind, places: dict[str, int]) -> None:
        self.kind = kind
        self.key = Text(as_json(task.key), places)
        self.group = Text(as_json(task.group), places)
        self.dependencies = task.dependencies
        self.dependents = task.dependents
        self.annotations = f'"annotations":{task.annotations},' if task.annotations else ""
        self.retries = task.retries
        self.chunk = task.chunk
        self.chunk_identity = Text(task.chunk.identity if task.chunk else "", places)


class Graph:
    """The graph of a recorded run, as a template for copies.

    Attributes
    ----------
    run : Shape
    models : list of Model
        In topological order: dependencies come first.
    kinds : int
        Number of kinds of tasks.
    """

    def __init__(self, run: Shape) -> None:
        self.run = run
        self.models: list[Model] = []
        places: dict[str, int] = {}
        kinds: dict[tuple[str, str], Kind] = {}
        for task in run.tasks:
            name = (task.prefix, task.span_id)
            if name not in kinds:
                kinds[name] = Kind(*name, run)
            self.models.append(Model(task, kinds[name], places))
        self.kinds = len(kinds)
        self._tokens = len(places)

    def copied(self, number: int, rank: int, room: int, rng: random.Random) -> Copy:
        """Return a copy of the graph, or of its first `room` tasks.

        Parameters
        ----------
        number : int
            Number of the copy among all copies of all graphs.
        rank : int
            Rank of the first task; later tasks have consecutive ranks.
        room : int
        rng : random.Random
        """
        tokens = [f"{rng.getrandbits(128):032x}" for _ in range(self._tokens)]
        copy = Copy()
        for place, model in enumerate(self.models[:room]):
            copy.tasks.append(Task(model, copy, tokens, rank + place))
        for task in copy.tasks:
            task.waiters = sum(1 for _ in task.dependents())
            task.draw_fate(rng)
            if task.model.chunk:
                # Each copy reads different files, of one of several datasets.
                chunk, path = task.model.chunk, PurePosixPath(task.model.chunk.filename)
                filename = path.with_name(f"{path.stem}_{number:06d}{path.suffix}")
                names = {
                    "dataset": f"{chunk.dataset}_{number % DATASETS:02d}",
                    "filename": str(filename),
                }
                identity = task.model.chunk_identity.filled(tokens)
                task.identity = f"{as_json(names)[1:-1]},{identity}"
        copy.unresolved = len(copy.tasks)
        return copy


class Copy:
    """A copy of a recorded graph: its tasks, and the number that are not done."""

    __slots__ = ("is_released", "tasks", "unresolved")

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.unresolved = 0
        self.is_released = False


class Task:
    """A task on the scheduler.

    Attributes
    ----------
    rank : int
        Priority; tasks of lower rank run first.
    missing : int
        Number of dependencies that are not in memory, while the task is waiting.
    waiters : int
        Number of dependents that are not computed.
    failures : int
        Number of attempts that are going to fail.
    is_doomed : bool
        Whether the task errs after these failures.
    is_rescheduled : bool
        Whether the next attempt ends by rescheduling the task.
    worker : Worker or None
        Worker that runs the task, or that holds its result.
    group, identity : str
        Task group and identity of the chunk, as JSON.
    """

    __slots__ = (
        "copy", "failures", "group", "identity", "is_doomed", "is_rescheduled", "key",
        "missing", "model", "nbytes", "rank", "run_id", "sent_t", "state", "waiters", "worker",
    )  # fmt: skip

    def __init__(self, model: Model, copy: Copy, tokens: list[str], rank: int) -> None:
        self.model = model
        self.copy = copy
        self.key = model.key.filled(tokens)
        self.group = model.group.filled(tokens)
        self.identity = ""
        self.rank = rank
        self.state = "released"
        self.missing = len(model.dependencies)
        self.waiters = 0
        self.failures = 0
        self.is_doomed = False
        self.is_rescheduled = False
        self.run_id = -1
        self.sent_t = 0.0
        self.nbytes = 0
        self.worker: Worker | None = None

    def dependencies(self) -> list[Task]:
        tasks = self.copy.tasks
        return [tasks[place] for place in self.model.dependencies]

    def dependents(self) -> Iterator[Task]:
        """Return the dependents that are in this copy, which may be partial."""
        tasks = self.copy.tasks
        return (tasks[place] for place in self.model.dependents if place < len(tasks))

    def count_missing(self) -> None:
        """Recount the dependencies that are not in memory."""
        self.missing = sum(held.state != "memory" for held in self.dependencies())

    def draw_fate(self, rng: random.Random) -> None:
        """Draw the number of failures, and whether the task is rescheduled."""
        kind, retries = self.model.kind, self.model.retries
        if rng.random() < kind.failing_share:
            self.is_doomed = not retries or rng.random() < FATAL_SHARE
            self.failures = retries + 1 if self.is_doomed else rng.randint(1, retries)
        share = kind.shape.rescheduled_share
        self.is_rescheduled = share > 0 and rng.random() < share

    def fields(self, submission: int, order: int, client: str, stimulus: str) -> str:
        """Return the fields of the ``task`` record; `client` is JSON."""
        model = self.model
        dependencies = ",".join([dependency.key for dependency in self.dependencies()])
        return (
            f'"key":{self.key},"prefix":{model.kind.prefix},"group":{self.group},'
            f'"dependencies":[{dependencies}],"priority":[0,{submission},{order}],'
            f'{model.annotations}"span_id":{model.kind.span},"client":{client},'
            f'"stimulus_id":"{stimulus}"'
        )
