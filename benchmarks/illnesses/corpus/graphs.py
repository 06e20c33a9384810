"""Shapes of plain programs: graphs of tasks, and searches that submit tasks one by one."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
from distributed import (
    Client,
    Future,
    as_completed,
    get_client,
    get_worker,
    rejoin,
    secede,
    wait,
)
from illness import Described, Run, Shape
from tasks import Stage

if TYPE_CHECKING:
    from troubles import Trouble


@dataclass(frozen=True, repr=False)
class Argument(Described):
    """An argument of the tasks of the first stage."""

    nbytes: int = 0  #: Size of a table.
    #: ``each``: each task has a table of its own in the graph. ``call``: each call is given the
    #: same one. ``function``: the function contains it. ``future``: it is scattered first.
    given: str = "future"
    #: Time of the client to find its token, once for each pure call.
    token_seconds: float = 0.0
    lists: int = 0  #: Number of lists of short lists, in which Dask looks for tasks.

    def make(self, client: Client) -> Any:
        """Return the argument, once for all tasks."""
        if self.token_seconds:
            return Tokenized(self.token_seconds)
        if self.lists:
            sections = {str(run): [[run, run + 9]] * 8 for run in range(self.lists)}
            is_future = self.given == "future"
            return dask.delayed(sections, traverse=False) if is_future else sections
        table = np.random.default_rng(0).integers(0, 200, self.nbytes, dtype="u1")
        return client.scatter(table, broadcast=True) if self.given == "future" else table

    def values(self, shared: Any, count: int) -> list[Any]:
        """Return the argument of each of so many tasks."""
        if self.given == "each":
            return [shared + number for number in range(count)]
        return [None if self.token_seconds and self.given == "future" else shared] * count


class Tokenized:
    """A model for whose token all of its parameters are read."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __dask_tokenize__(self) -> str:
        time.sleep(self.seconds)
        return "model"


class Containing:
    """A function that contains a table."""

    def __init__(self, stage: Stage, table: Any) -> None:
        self.stage, self.table = stage, table

    def __call__(self, *arguments: Any) -> Any:
        return self.stage(*arguments)


@dataclass(frozen=True, repr=False)
class Graph(Shape):
    """Stages of tasks."""

    tasks: int  #: Number of tasks of the first stage.
    stages: tuple[Stage, ...]
    #: ``map``: futures, submitted a stage at a time. ``delayed``: in one graph.
    via: str = "map"
    rounds: int = 1  #: How often the graph is computed.
    kept: int = 0  #: Stages that are computed once and kept for all rounds.
    #: Seconds of the client after each round but the last, before it submits the next one.
    gap: float = 0.0
    ahead: int = 1  #: Rounds that are submitted before the client waits for one.
    retains: bool = False  #: Whether the client keeps the futures of all rounds.
    #: Whether the client waits for each stage before it submits the next one.
    waits: bool = False
    #: The client gets the results of the last stage if they are small. ``last``: in any case.
    #: ``each``: it gets the results of each stage, and passes them on.
    gathers: str = ""
    #: Size of a result that a worker holds, and the name of the worker.
    held: tuple[int, ...] = ()
    poll: float = 0.0  #: Seconds between two looks of the client whether a round is done.
    #: Whether the tasks of the first stage are submitted in the reverse order.
    reverse: bool = False
    #: What the client does with failed tasks: ``retry`` them, ``resubmit`` them with other
    #: numbers, or ``ignore`` them; it fails otherwise.
    on_error: str = ""
    argument: Argument | None = None
    troubles: tuple[Trouble, ...] = ()

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        builder = Builder(self, run, client)
        first: list[Any] = [None] * self.tasks
        if self.kept:
            first = builder.futures(builder.build(self.stages[: self.kept], first))
            wait(first)
        history = [builder.hold(*self.held)] if self.held else []
        running: list[list[Future]] = []
        for turn in range(self.rounds):
            running.append(builder.futures(builder.build(self.stages[self.kept :], first)))
            history.append(builder.made if self.retains else None)
            if len(running) < self.ahead and turn < self.rounds - 1:
                continue
            self.finish(client, running.pop(0), builder)
            if turn < self.rounds - 1:
                time.sleep(self.gap)
        for futures in running:
            self.finish(client, futures, builder)
            time.sleep(self.gap)

    def finish(self, client: Client, futures: list[Future], builder: Builder) -> None:
        """Wait for the results of a round."""
        while self.poll and not all(future.done() for future in futures):
            time.sleep(self.poll)
        wait(futures)
        failed = [future for future in futures if future.status == "error"]
        if failed and self.on_error == "retry":
            client.retry(failed)
            wait(failed)
        elif failed and self.on_error == "resubmit":
            wait(builder.futures(builder.build(self.stages[:1], [None] * len(failed))))
        elif failed and self.on_error != "ignore":
            failed[0].result()
        if self.gathers == "last" or not (self.stages[-1].nbytes or failed):
            client.gather(futures)


class Builder:
    """Submits the tasks of a graph."""

    def __init__(self, graph: Graph, run: Run, client: Client) -> None:
        self.graph, self.run, self.client = graph, run, client
        self.counts: Counter[str] = Counter()
        #: Tasks of the last build.
        self.made: list[Any] = []
        argument = graph.argument
        self.shared = argument.make(client) if argument else None

    def build(self, stages: tuple[Stage, ...], before: list[Any]) -> list[Any]:
        """Submit the tasks of some stages; return those of the last one."""
        self.made = []
        for position, stage in enumerate(stages):
            ill = replace(stage, troubles=self.graph.troubles)
            submit = partial(self.submit, is_first=position == 0)
            before = ill.needs.grow(ill, before, submit)
            if self.graph.waits:
                wait(before)
            if self.graph.gathers == "each" and position < len(stages) - 1:
                before = self.client.gather(before)
        return before

    def hold(self, nbytes: int, worker: int) -> Future:
        """Return a result that a worker holds."""
        stage = Stage("produce", 0.2, nbytes=nbytes, workers=(worker,))
        [held] = self.submit(stage, [[]])
        wait(held)
        return held

    def submit(
        self, stage: Stage, needed: list[list[Any]], is_first: bool = False
    ) -> list[Any]:
        """Submit tasks of a stage with given inputs."""
        first = self.counts[stage.name]
        self.counts[stage.name] += len(needed)
        numbers = list(range(first, first + len(needed)))
        if is_first and self.graph.reverse:
            numbers.reverse()
        function: Callable[..., Any] = stage.function
        inputs: list[list[Any]] = [numbers, needed]
        argument = self.graph.argument
        if is_first and argument is not None:
            values = argument.values(self.shared, len(needed))
            if argument.given == "function":
                function = Containing(stage, values[0])
            else:
                inputs.append(values)
        keys = [f"{stage.name}-{number}" for number in numbers]
        options: dict[str, Any] = {"priority": stage.priority, "retries": stage.retries}
        if stage.workers:
            options["workers"] = [self.run.address(name) for name in stage.workers]
        if stage.in_turn:
            return [
                self.client.submit(function, *values, key=key, workers=[address])
                for key, address, *values in zip(keys, self.addresses(), *inputs, strict=False)
            ]
        if stage.resources:
            options["resources"] = stage.resources
        if self.graph.via == "map" or self.graph.gathers == "each":
            made = self.client.map(function, *inputs, key=keys, **options)
        else:
            with dask.annotate(**{name: value for name, value in options.items() if value}):
                is_pure = bool(argument and argument.token_seconds and is_first)
                call = dask.delayed(function, name=stage.name, pure=is_pure)
                made = [
                    call(*values, dask_key_name=None if is_pure else key)
                    for key, *values in zip(keys, *inputs, strict=True)
                ]
        self.made = [*self.made, *made]
        return list(made)

    def addresses(self) -> Iterator[str]:
        """Return the addresses of the workers, again and again."""
        return itertools.cycle([self.run.address(name) for name in self.run.cluster.workers])

    def futures(self, tasks: list[Any]) -> list[Future]:
        """Compute delayed tasks."""
        return tasks if isinstance(tasks[0], Future) else self.client.compute(tasks)


# -- searches --------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Search(Shape):
    """Tasks of which some are in flight; each result lets the client submit the next one."""

    tasks: int
    stage: Stage
    in_flight: int = 10
    client_seconds: float = 0.0  #: Time of the client for each result.
    every: int = 1  #: For one of so many results, the client submits a task of `then`, too.
    then: Stage | None = None
    #: Time between two tasks, which are submitted whether or not there are results.
    arrival_seconds: float = 0.0
    troubles: tuple[Trouble, ...] = ()

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        stages = [
            replace(stage, troubles=self.troubles) for stage in (self.stage, self.then) if stage
        ]
        submit = partial(self.submit, client, stages[0])
        numbers = iter(range(self.tasks))
        if self.arrival_seconds:
            arrived = []
            for number in numbers:
                arrived.append(submit(number))
                time.sleep(self.arrival_seconds)
            wait(arrived)
            return
        running = as_completed(map(submit, itertools.islice(numbers, self.in_flight)))
        done = 0
        for future in running:
            time.sleep(self.client_seconds)
            if not future.key.startswith(self.stage.name):
                continue
            for number in itertools.islice(numbers, 1):
                running.add(submit(number))
            done += 1
            if self.then and done % self.every == 0:
                running.add(self.submit(client, stages[1], done, [future]))

    def submit(self, client: Client, stage: Stage, number: int, needed: Any = ()) -> Future:
        return client.submit(stage, number, needed, key=f"{stage.name}-{number}")


@dataclass(frozen=True, repr=False)
class Stacking(Shape):
    """Shots that are added to an actor, whose method is a coroutine in an event loop."""

    tasks: int
    seconds: float
    add_seconds: float = 0.001
    troubles: tuple[Trouble, ...] = ()

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        options = {"actor": True, "workers": [run.address(0)]}
        stack = client.submit(Stack, self.add_seconds, **options).result()
        stage = Stage("migrate_shot", self.seconds)
        wait(client.map(add_shot, range(self.tasks), stage=stage, stack=stack))


class Stack:
    """The sum of all shots."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.fold = seconds, 0

    async def add(self, number: int) -> int:
        time.sleep(self.seconds)  # noqa: ASYNC251 - the illness
        self.fold += 1
        return self.fold


def add_shot(number: int, stage: Stage, stack: Any) -> int:
    """Migrate a shot, add it to the stack, and wait until it is added."""
    stage(number)
    added = stack.add(number)
    if asyncio.iscoroutine(added):  # the actor is on this worker
        loop = get_worker().loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(added, loop).result()
    return added.result()


@dataclass(frozen=True, repr=False)
class Folding(Shape):
    """Independent steps, as tasks or as calls of a method of one actor."""

    steps: int
    seconds: float
    in_actor: bool = False
    troubles: tuple[Trouble, ...] = ()

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        stage = Stage("fold", self.seconds)
        if not self.in_actor:
            wait(client.map(stage, range(self.steps), [()] * self.steps, key="fold"))
            return
        folds = client.submit(Folds, stage, actor=True).result()
        for number in range(self.steps):
            folds.fold(number).result()


class Folds:
    """An actor that does all steps."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def fold(self, number: int) -> None:
        self.stage(number, ())


@dataclass(frozen=True, repr=False)
class Nested(Shape):
    """Tasks that submit others, secede to wait for them, and compute afterwards."""

    tasks: int
    seconds: float
    rejoins: bool = True
    troubles: tuple[Trouble, ...] = ()

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        wait(client.map(nest, range(self.tasks), seconds=self.seconds, rejoins=self.rejoins))


def nest(number: int, seconds: float, rejoins: bool) -> int:
    """Wait for two tasks without work, and compute for some seconds of CPU time."""
    client = get_client()
    futures = client.map(Stage("probe"), (2 * number, 2 * number + 1), [(), ()])
    secede()
    wait(futures)
    if rejoins:
        rejoin()
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass
    return number


@dataclass(frozen=True, repr=False)
class AtOnce(Shape):
    """Programs that run at the same time, in threads of the client; or one after the other."""

    shapes: tuple[Any, ...]
    in_turn: bool = False

    @contextmanager
    def inputs(self, run: Run) -> Iterator[list[Any]]:
        with ExitStack() as stack:
            yield [stack.enter_context(shape.inputs(run)) for shape in self.shapes]

    def prepare(self, run: Run, client: Client) -> None:
        for shape in self.shapes:
            shape.prepare(run, client)

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        threads = [
            threading.Thread(target=shape.compute, args=(run, client, given))
            for shape, given in zip(self.shapes, inputs, strict=True)
        ]
        for thread in threads:
            thread.start()
            if self.in_turn:
                thread.join()
        for thread in threads:
            thread.join()
