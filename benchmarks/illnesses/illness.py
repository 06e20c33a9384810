"""Illnesses, the findings that each should cause, and the clusters to record them."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import distributed
from distributed import Client, Nanny, Scheduler, SpecCluster

import roast_recorder


@dataclass(frozen=True)
class Cause:
    """An injected cause, and the findings that identify it.

    Parameters
    ----------
    ids : tuple of str
        Accepted ids of findings; several if one problem causes another.
    entities : tuple of str
        Accepted entities, exact or as the last part of a path or key; empty accepts any.
    """

    ids: tuple[str, ...]
    entities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Illness:
    """A program that runs with and without an illness; a control has no cause."""

    name: str
    program: Callable[[Run], None]
    causes: tuple[Cause, ...]
    #: Quantity that is smaller in the run without the illness: ``wall`` seconds, ``core``
    #: seconds, or None if neither is.
    saves: str | None

    @property
    def module(self) -> str:
        """Return the module of the program."""
        return self.program.__module__

    def record(self, run: Run) -> None:
        """Run the program, and record it."""
        self.program(run)

    @property
    def text(self) -> str:
        """Return the description of the program."""
        return " ".join((self.program.__doc__ or "").split())

    @property
    def forms(self) -> dict[str, bool]:
        """Return whether the illness is injected, by name of the recording."""
        twin = {f"{self.name}_healthy": False} if self.causes else {}
        return {self.name: bool(self.causes), **twin}


ILLNESSES: dict[str, Illness] = {}


def cause(ids: str, *entities: str) -> Cause:
    """Return a cause with ids separated by spaces."""
    return Cause(tuple(ids.split()), entities)


def illness(*causes: Cause, saves: str | None = "wall") -> Callable:
    """Register a program; without causes it is a healthy control."""

    def register(program: Callable[[Run], None]) -> Callable[[Run], None]:
        name = program.__name__
        ILLNESSES[name] = Illness(name, program, causes, saves)
        return program

    return register


def _forkserver() -> str:
    """Preload the modules with programs in the fork server; return the method's name."""
    modules = ["distributed", *{ill.program.__module__ for ill in ILLNESSES.values()}]
    multiprocessing.get_context("forkserver").set_forkserver_preload(modules)
    # Otherwise Dask would replace the preload by its own, larger list.
    distributed.utils._forkserver_preload_set = True
    return "forkserver"


class Run:
    """A run to record.

    Parameters
    ----------
    trace : Path
    ill : bool
        Whether the illness is injected.
    data : Path
        Folder of input files, kept between runs.
    """

    def __init__(self, trace: Path, ill: bool, data: Path) -> None:
        self.trace = trace
        self.ill = ill
        self.data = data
        self.wall_seconds = 0.0
        self.cluster: Any = None

    @contextmanager
    def recorded(
        self,
        workers: int = 4,
        threads: int = 1,
        memory: str = "2GB",
        config: dict[str, Any] | None = None,
        hosts: tuple[str, ...] = (),
        prepare: Callable[[Client], None] | None = None,
        fork: bool = True,
        **settings: Any,
    ) -> Iterator[Client]:
        """Start a cluster and record it; `prepare` is called before the recording.

        Workers are forked from a process with the programs' imports, unless `fork` is false.
        """
        nanny = {
            "nthreads": threads,
            "memory_limit": memory,
            "local_directory": "scratch",
            "silence_logs": logging.CRITICAL,
        }
        # As a LocalCluster, but with a host for each worker.
        nannies = {
            number: {"cls": Nanny, "options": {**nanny, "host": host}}
            for number, host in enumerate(hosts or ["127.0.0.1"] * workers)
        }
        method = _forkserver() if fork else "spawn"
        scheduler = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        with (
            dask.config.set({"distributed.worker.multiprocessing-method": method}),
            dask.config.set(config or {}),
            SpecCluster(
                workers=nannies,
                scheduler={"cls": Scheduler, "options": scheduler},
                worker={"cls": Nanny, "options": {**nanny, "host": "127.0.0.1"}},
                silence_logs=logging.CRITICAL,
            ) as self.cluster,
            Client(self.cluster) as client,
        ):
            client.wait_for_workers(len(nannies))
            if prepare is not None:
                prepare(client)
            with roast_recorder.record(client, self.trace, **settings):
                begin = time.perf_counter()
                yield client
                self.wall_seconds = time.perf_counter() - begin

    def address(self, name: int) -> str:
        """Return the address of a worker."""
        return next(
            state.address
            for state in self.cluster.scheduler.workers.values()
            if state.name == name
        )

    def pid(self, name: int) -> int:
        """Return the process id of a worker."""
        return self.cluster.workers[name].pid
