"""Troubles of tasks and chunks: what goes wrong while a worker computes one.

A trouble strikes at the end of the work of a part of the computation: a task, or a chunk of a
coffea analysis.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from distributed import get_worker
from illness import BEGIN, MEGABYTE, SCRATCH, Affliction, Cluster


def is_first(name: str) -> bool:
    """Claim a name; return False if any process of this run has claimed it before."""
    try:
        (SCRATCH / f"claimed-{name}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class Part:
    """A task or chunk."""

    names: tuple[str, ...]  #: Name of its stage; or its dataset and its file.
    number: int  #: Number of the task, or of the first event.
    seconds: float  #: Time of its work.

    @property
    def label(self) -> str:
        return "-".join([*self.names, str(self.number)])

    @property
    def worker(self) -> Any:
        return get_worker()


@dataclass(frozen=True, repr=False, kw_only=True)
class Trouble(Affliction):
    """Something that goes wrong in some parts."""

    only: tuple[str, ...] = ()  #: Names of stages, datasets or files.
    numbers: tuple[int, ...] = ()  #: Numbers of parts.
    share: float = 1.0  #: Share of the parts, which are chosen by their names.
    times: int | None = None  #: How often it strikes a part; always, if None.
    workers: tuple[int, ...] = ()  #: Names of workers.
    hosts: tuple[int, ...] = ()  #: Last numbers of the addresses of hosts.
    since: float = 0.0  #: Seconds of the recording.
    until: float = 1e9

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        if hasattr(shape, "shapes"):
            return self.change_each(shape, cluster)
        return replace(shape, troubles=(*shape.troubles, self)), cluster

    def strike(self, part: Part) -> None:
        """Do what goes wrong, if this part is concerned."""
        if self.only and not set(self.only) & set(part.names):
            return
        if self.numbers and part.number not in self.numbers:
            return
        if zlib.crc32(part.label.encode()[::-1]) / 2**32 >= self.share:
            return
        if self.workers and part.worker.name not in self.workers:
            return
        if self.hosts and int(part.worker.ip.rpartition(".")[2]) not in self.hosts:
            return
        if not self.since <= time.time() - BEGIN.stat().st_mtime <= self.until:
            return
        if self.times is not None:
            names = (f"{type(self).__name__}-{part.label}-{turn}" for turn in range(self.times))
            if not any(map(is_first, names)):
                return
        self.happen(part)

    def happen(self, part: Part) -> None:
        raise NotImplementedError


#: Strikes of this process.
STRIKES: Counter[str] = Counter()


@dataclass(frozen=True, repr=False)
class Slow(Trouble):
    """Work takes longer by a factor, and by some seconds.

    With `growth`, each time takes so many seconds longer than the one before on this worker.
    With `pauses`, it happens only in the first 3 of each 4 seconds.
    """

    factor: float = 1.0
    extra: float = 0.0
    growth: float = 0.0
    pauses: bool = False

    def happen(self, part: Part) -> None:
        STRIKES["slow"] += 1
        if not self.pauses or time.time() % 4 < 3:
            seconds = part.seconds * (self.factor - 1) + self.extra
            time.sleep(seconds + self.growth * STRIKES["slow"])


class Busy:
    """Lock of a device of a process."""

    lock: ClassVar[threading.Lock] = threading.Lock()


@dataclass(frozen=True, repr=False)
class OneAtATime(Trouble):
    """Parts use a device of a process one after the other, for some seconds."""

    seconds: float = 0.5

    def happen(self, part: Part) -> None:
        with Busy.lock:
            time.sleep(self.seconds)


@dataclass(frozen=True, repr=False)
class Fails(Trouble):
    """Work fails with an exception, by default once."""

    error: type[Exception] = OSError
    times: int | None = 1

    def happen(self, part: Part) -> None:
        raise self.error(f"no answer for {part.label}")


@dataclass(frozen=True, repr=False)
class Crashes(Trouble):
    """The process of the worker ends, by a signal or by ``exit``."""

    by: signal.Signals | None = signal.SIGSEGV
    times: int | None = 1

    def happen(self, part: Part) -> None:
        if self.by is None:
            os._exit(3)
        os.kill(os.getpid(), self.by)


@dataclass(frozen=True, repr=False)
class Grows(Trouble):
    """Work takes too much memory, so that the nanny kills the worker."""

    nbytes: int = 1_500 * MEGABYTE
    times: int | None = 1

    def happen(self, part: Part) -> None:
        buffer = np.ones(self.nbytes, dtype="u1")
        time.sleep(5)
        del buffer


#: Memory outside of Dask.
CACHE: list[np.ndarray] = []


@dataclass(frozen=True, repr=False)
class Leaks(Trouble):
    """Work leaves memory in a cache, at most `most` times, which is kept for some seconds.

    With `empties`, the whole cache is emptied so many seconds after its first entry.
    """

    nbytes: int = 30 * MEGABYTE
    most: int = 10**9
    seconds: float | None = None
    empties: float | None = None

    def happen(self, part: Part) -> None:
        if STRIKES["leak"] >= self.most:
            return
        STRIKES["leak"] += 1
        CACHE.append(np.ones(self.nbytes, dtype="u1"))
        if self.seconds is not None:
            threading.Timer(self.seconds, CACHE.pop, [0]).start()
        elif self.empties is not None and STRIKES["leak"] == 1:
            threading.Timer(self.empties, CACHE.clear).start()
