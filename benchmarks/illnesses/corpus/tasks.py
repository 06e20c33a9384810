"""Tasks of plain programs: what one computes, and on which others it depends.

Tasks sleep unless the illness concerns CPU time, so that other load on the machine does not
change a run.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import time
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from dask.utils import SerializableLock
from illness import Described
from troubles import Part, Trouble

#: The C library, called without and with the GIL.
FREE, HOLDING = ctypes.CDLL(None), ctypes.PyDLL(None)


def about(seconds: float, spread: float, *key: Any) -> float:
    """Return a duration around a mean, the same for the same key."""
    return seconds * (1 - spread + 2 * spread * zlib.crc32(repr(key).encode()) / 2**32)


# -- results ---------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Handling(Described):
    """How long it takes to handle a result."""

    pickle_seconds: float = 0.0  #: Time to pickle it, and to unpickle it.
    #: Bytes per second at which it is pickled and unpickled, as when workers spill to a network
    #: file system.
    disk_speed: float | None = None
    sizeof_seconds: float = 0.0  #: Time to find its size.


class Result:
    """A result that is slow to handle."""

    def __init__(self, values: np.ndarray, form: Handling) -> None:
        self.values, self.form = values, form

    def __len__(self) -> int:
        return len(self.values)

    def __sizeof__(self) -> int:
        time.sleep(self.form.sizeof_seconds)
        return self.values.nbytes

    def _wait(self) -> None:
        seconds = self.form.pickle_seconds
        if self.form.disk_speed:
            seconds += self.values.nbytes / self.form.disk_speed
        time.sleep(seconds)

    def __getstate__(self) -> tuple[np.ndarray, Handling]:
        self._wait()
        return self.values, self.form

    def __setstate__(self, state: tuple[np.ndarray, Handling]) -> None:
        self.values, self.form = state
        self._wait()


# -- stages ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class Stage(Described):
    """A kind of task; an instance is the function that tasks of this kind call."""

    name: str  #: Prefix of the keys.
    seconds: float = 0.0  #: Time to sleep, on average.
    #: Tasks of the stage before on which a task depends.
    needs: Needs = field(default_factory=lambda: Each())  # noqa: PLW0108 - it is defined below
    spread: float = 0.25  #: Largest deviation from `seconds`, as a part of them.
    #: Seconds of some tasks, by their number.
    long: dict[int, float] = field(default_factory=dict)
    per_input: float = 0.0  #: Further seconds for each input.
    nbytes: int = 0  #: Size of a result.
    form: Handling | None = None  #: How slow results are to handle.
    calls: tuple[int, float] = (0, 0.0)  #: Number and seconds of calls of a C library.
    holds_gil: bool = False  #: Whether these calls hold the GIL.
    primes: int = 0  #: Numbers that are tested in pure Python.
    #: Number of linear algebra problems of a library with threads of its own.
    matrices: int = 0
    lock: str = ""  #: Name of a lock of the process, which is held while the task sleeps.
    events: int = 0  #: Number of events that a task logs in topic ``progress``.
    #: Whether the task runs in the event loop of its worker, and blocks it.
    is_coroutine: bool = False
    blocks: bool = False
    in_turn: bool = False  #: Whether the tasks are bound to the workers in turn.
    priority: int = 0  #: Options of the tasks, as of ``Client.submit``; `workers` are names.
    retries: int = 0
    workers: tuple[int, ...] = ()
    resources: dict[str, float] = field(default_factory=dict)
    troubles: tuple[Trouble, ...] = ()

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def function(self) -> Callable[..., Any]:
        """Return the function of a task."""
        return partial(answer, self) if self.is_coroutine else self

    def duration(self, number: int) -> float:
        """Return the seconds for which a task sleeps."""
        if number in self.long:
            return self.long[number]
        return about(self.seconds, self.spread, self.name, number)

    def __call__(self, number: int, needed: Any = (), *_arguments: Any) -> Any:
        """Compute a task."""
        seconds = self.duration(number) + self.per_input * len(needed)
        part = Part((self.name,), number, seconds)
        with SerializableLock(self.lock) if self.lock else nullcontext():
            time.sleep(seconds)
        count, call_seconds = self.calls
        for call in range(count):
            microseconds = int(1e6 * about(call_seconds, self.spread, number, call))
            (HOLDING if self.holds_gil else FREE).usleep(microseconds)
        if self.primes:
            first = 10**6 + self.primes * number
            count_primes(first, first + self.primes)
        for turn in range(self.matrices):
            matrix = np.random.default_rng(number).normal(size=(300, 300))
            np.linalg.eigvals(matrix + turn)
        for event in range(self.events):
            part.worker.log_event("progress", {"number": number, "part": event})
        for trouble in self.troubles:
            trouble.strike(part)
        if not self.nbytes:
            return number
        values = np.full(self.nbytes, number % 100, dtype="u1")
        return Result(values, self.form) if self.form else values


async def answer(stage: Stage, number: int, *_arguments: Any) -> int:
    """Wait for an answer in the event loop, with or without blocking it."""
    if stage.blocks:
        time.sleep(stage.duration(number))  # noqa: ASYNC251 - the illness
    else:
        await asyncio.sleep(stage.duration(number))
    return number


def count_primes(first: int, last: int) -> int:
    """Count primes in pure Python, which holds the GIL."""
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(first, last))


# -- dependencies ----------------------------------------------------------------------------

#: Adds tasks of a stage with given inputs to a graph; returns them.
Submit = Callable[[Stage, list[list[Any]]], list[Any]]


@dataclass(frozen=True, repr=False)
class Needs(Described):
    """On which tasks of the stage before each task depends."""

    #: Whether it is one at most.
    is_single: ClassVar[bool] = False

    def grow(self, stage: Stage, before: list[Any], submit: Submit) -> list[Any]:
        """Add the tasks of a stage; return those on which the next one may depend.

        `before` are the tasks of the stage before, or None for each task of the first stage.
        """
        return submit(stage, self.groups([[] if one is None else [one] for one in before]))

    def groups(self, before: list[list[Any]]) -> list[list[Any]]:
        """Return the inputs of each task."""
        return before


@dataclass(frozen=True, repr=False)
class Each(Needs):
    """On the task with the same number."""

    is_single = True


@dataclass(frozen=True, repr=False)
class Neighbours(Needs):
    """On the tasks at some distances, in the first `most` tasks.

    If the distances are `apart`, there is a task for each of them.
    """

    shifts: tuple[int, ...] = (0, 1)
    apart: bool = False
    most: int | None = None

    def groups(self, before: list[list[Any]]) -> list[list[Any]]:
        count = len(before)
        shifts = [(0, shift) for shift in self.shifts] if self.apart else [self.shifts]
        return [
            [one for shift in some for one in before[(number + shift) % count]]
            for some in shifts
            for number in range(count)
        ][: self.most]


@dataclass(frozen=True, repr=False)
class Pairs(Needs):
    """On two tasks: all pairs, or some of these."""

    most: int | None = None

    def groups(self, before: list[list[Any]]) -> list[list[Any]]:
        pairs = [[*one, *other] for one, other in itertools.combinations(before, 2)]
        step = max(1, len(pairs) // (self.most or len(pairs)))
        return pairs[::step][: self.most]


@dataclass(frozen=True, repr=False)
class Groups(Needs):
    """On so many successive tasks."""

    size: int

    def groups(self, before: list[list[Any]]) -> list[list[Any]]:
        firsts = range(0, len(before), self.size)
        return [list(itertools.chain(*before[at : at + self.size])) for at in firsts]


@dataclass(frozen=True, repr=False)
class All(Needs):
    """On all tasks; so many tasks do."""

    tasks: int = 1

    def groups(self, before: list[list[Any]]) -> list[list[Any]]:
        return [list(itertools.chain(*before))] * self.tasks


@dataclass(frozen=True, repr=False)
class Fan(Needs):
    """On one task, as do so many."""

    tasks: int

    def groups(self, before: list[list[Any]]) -> list[list[Any]]:
        return [one for one in before for _ in range(self.tasks)]


@dataclass(frozen=True, repr=False)
class Tree(Needs):
    """On so many tasks, and so on until one task is left."""

    fan_in: int = 8

    def grow(self, stage: Stage, before: list[Any], submit: Submit) -> list[Any]:
        while len(before) > 1:
            before = Groups(self.fan_in).grow(stage, before, submit)
        return before


@dataclass(frozen=True, repr=False)
class InARow(Needs):
    """On the task with the same number, and on the task of this stage before it."""

    def grow(self, stage: Stage, before: list[Any], submit: Submit) -> list[Any]:
        last: list[Any] = []
        for one in before:
            last = submit(stage, [[*last, *([] if one is None else [one])]])
        return last


@dataclass(frozen=True, repr=False)
class Chain(Needs):
    """On the task before it in a chain of so many steps."""

    steps: int
    shifts: tuple[int, ...] = (0,)
    is_single = True

    def grow(self, stage: Stage, before: list[Any], submit: Submit) -> list[Any]:
        for _ in range(self.steps):
            before = Neighbours(self.shifts).grow(stage, before, submit)
        return before


@dataclass(frozen=True, repr=False)
class Wavefront(Needs):
    """On the tasks to its left and above it, in so many rows."""

    rows: int

    def grow(self, stage: Stage, before: list[Any], submit: Submit) -> list[Any]:
        above = before
        for _ in range(self.rows):
            cells: list[Any] = []
            for one in above:
                cells += submit(stage, [cells[-1:] + ([] if one is None else [one])])
            above = cells
        return above[-1:]


@dataclass(frozen=True, repr=False)
class Divided(Needs):
    """On a task of a larger part, from one part to all; each level takes as long in total."""

    levels: int

    def grow(self, stage: Stage, before: list[Any], submit: Submit) -> list[Any]:
        parts = submit(stage, All().groups([[one] for one in before if one is not None]))
        for level in range(1, self.levels):
            smaller = replace(stage, seconds=stage.seconds / 2**level)
            parts = Fan(2).grow(smaller, parts, submit)
        return parts
