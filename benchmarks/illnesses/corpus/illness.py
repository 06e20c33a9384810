"""Illnesses, the findings that each should cause, and the clusters to record them.

A row of a table is an illness: a shape (what runs), a cluster, and afflictions (what is wrong).
The healthy twin is the same shape on the same cluster without afflictions.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import distributed
from distributed import Client, Nanny, Scheduler, SpecCluster, Worker

import roast_recorder

MEGABYTE = 10**6

#: Folder of this run, which all of its processes share; and a file, as old as its recording.
SCRATCH = Path(tempfile.gettempdir())
BEGIN = SCRATCH / "begin"


class Described:
    """An object whose text has the values that differ from the defaults."""

    def __repr__(self) -> str:
        parts = []
        for one in dataclasses.fields(self):
            value, default = getattr(self, one.name), one.default
            if one.default_factory is not dataclasses.MISSING:
                default = one.default_factory()
            if default is dataclasses.MISSING:
                parts.append(repr(value))
            elif value != default:
                parts.append(f"{one.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True)
class Cause:
    """An injected cause, and the findings that identify it."""

    ids: tuple[str, ...]  #: Accepted ids of findings; several if one problem causes another.
    #: Accepted entities, exact or as the last part of a path or key; empty accepts any.
    entities: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Cause:
        """Parse ``id|id entity entity``."""
        ids, *entities = text.split()
        return cls(tuple(ids.split("|")), tuple(entities))


#: What is smaller without an illness, if it is not wall time: ``core`` seconds, or nothing.
SAVES = {
    "excess-workers": "core",
    "expensive-dataset": None,
    "skipped-files": None,
    "version-mismatch": None,
}


@dataclass(frozen=True, repr=False)
class Cluster(Described):
    """Worker processes of a cluster."""

    workers: int = 4
    threads: int = 1  #: Threads of each worker.
    memory: str = "2GB"  #: Memory limit of each worker.
    #: Dask configuration; names without a prefix are below ``distributed.worker.memory``.
    config: dict[str, Any] = field(default_factory=dict)
    #: Last number of the address of the host of each worker, instead of `workers`.
    hosts: tuple[int, ...] = ()
    fork: bool = True  #: Fork workers from a process with the programs' imports.
    #: Resources of workers, by their name; or of all, by None.
    resources: dict[int | None, dict[str, float]] = field(default_factory=dict)
    uplink: float | None = None  #: Bytes per second that a worker sends.
    senders: int = 1  #: Number of answers that a worker sends at a time, each with this speed.

    def nannies(self, **options: Any) -> dict[int, dict[str, Any]]:
        """Return the specification of the workers."""
        hosts = [f"127.0.0.{host}" for host in self.hosts or [1] * self.workers]
        resources = self.resources.get(None)
        return {
            name: {
                "cls": Nanny,
                "options": {
                    **options,
                    "host": host,
                    "resources": self.resources.get(name, resources),
                },
            }
            for name, host in enumerate(hosts)
        }

    def dask_config(self) -> dict[str, Any]:
        """Return the Dask configuration with full names."""
        memory = "distributed.worker.memory."
        return {
            name if "." in name else memory + name: value for name, value in self.config.items()
        }


class Shape(Described):
    """What a program runs."""

    def inputs(self, run: Run) -> AbstractContextManager[Any]:
        """Write or serve the input before the cluster starts."""
        return nullcontext()

    def prepare(self, run: Run, client: Client) -> None:
        """Set up workers before the recording."""

    def compute(self, run: Run, client: Client, inputs: Any) -> None:
        """Run the program."""
        raise NotImplementedError


class Affliction(Described):
    """What is wrong in a program."""

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        """Return the shape and the cluster of the ill program."""
        return shape, cluster

    def change_each(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        """Change each shape of a program that consists of several."""
        shapes = tuple(self.change(one, cluster)[0] for one in shape.shapes)
        return dataclasses.replace(shape, shapes=shapes), cluster

    def prepare(self, run: Run, client: Client) -> None:
        """Set up workers or the scheduler before the recording."""

    def during(self, run: Run, client: Client) -> AbstractContextManager[Any]:
        """Act while the program runs."""
        return nullcontext()


@dataclass(frozen=True)
class Illness:
    """A program that runs with and without an illness; a control has no cause."""

    name: str
    causes: tuple[Cause, ...]
    shape: Shape
    cluster: Cluster
    afflictions: tuple[Affliction, ...]
    module: str  #: Module of the table.

    @property
    def saves(self) -> str | None:
        """Return what is smaller without the illness: wall or core seconds, or nothing."""
        return SAVES.get(self.causes[0].ids[0], "wall") if self.causes else "wall"

    @property
    def text(self) -> str:
        """Return the description of the program."""
        ill = ", ".join(map(repr, self.afflictions))
        return f"{self.shape!r} on {self.cluster!r}" + (f"; {ill}" if ill else "")

    @property
    def forms(self) -> dict[str, bool]:
        """Return whether the illness is injected, by name of the recording."""
        twin = {f"{self.name}_healthy": False} if self.causes else {}
        return {self.name: bool(self.causes), **twin}

    def record(self, run: Run) -> None:
        """Run the program, and record it."""
        shape, cluster = self.shape, self.cluster
        afflictions = self.afflictions if run.ill else ()
        for affliction in afflictions:
            shape, cluster = affliction.change(shape, cluster)

        def prepare(client: Client) -> None:
            for part in (shape, *afflictions):
                part.prepare(run, client)

        with ExitStack() as stack:
            inputs = stack.enter_context(shape.inputs(run))
            client = stack.enter_context(run.recorded(cluster, prepare))
            for affliction in afflictions:
                stack.enter_context(affliction.during(run, client))
            shape.compute(run, client, inputs)


ILLNESSES: dict[str, Illness] = {}


def row(
    name: str, causes: str, shape: Shape, cluster: Cluster, *afflictions: Affliction
) -> None:
    """Add an illness; `causes` are separated by semicolons, and a control has none."""
    module = sys._getframe(1).f_globals["__name__"]
    parsed = tuple(Cause.parse(text) for text in causes.split(";") if text)
    if name in ILLNESSES or bool(parsed) != bool(afflictions):
        raise ValueError(f"row {name!r} is there twice, or lacks a cause or an affliction")
    ILLNESSES[name] = Illness(name, parsed, shape, cluster, afflictions, module)


def _forkserver() -> str:
    """Preload the modules with programs in the fork server; return the method's name."""
    modules = ["distributed", *{ill.module for ill in ILLNESSES.values()}]
    multiprocessing.get_context("forkserver").set_forkserver_preload(modules)
    # Otherwise Dask would replace the preload by its own, larger list.
    distributed.utils._forkserver_preload_set = True
    return "forkserver"


def limit_uplink(bytes_per_second: float, senders: int, dask_worker: Worker) -> None:
    """Limit the speed at which this worker sends data to other workers."""
    get_data, slots = dask_worker.handlers["get_data"], asyncio.Semaphore(senders)

    async def slow_get_data(comm: Any, keys: Any, **keywords: Any) -> Any:
        tasks = dask_worker.state.tasks
        nbytes = sum(tasks[key].get_nbytes() for key in keys if key in tasks)
        async with slots:
            await asyncio.sleep(nbytes / bytes_per_second)
        return await get_data(comm, keys=keys, **keywords)

    dask_worker.handlers["get_data"] = slow_get_data


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
    def recorded(self, cluster: Cluster, prepare: Callable[[Client], None]) -> Iterator[Client]:
        """Start a cluster and record it; `prepare` is called before the recording."""
        options = {
            "nthreads": cluster.threads,
            "memory_limit": cluster.memory,
            "local_directory": "scratch",
            "silence_logs": logging.CRITICAL,
        }
        nannies = cluster.nannies(**options)
        method = _forkserver() if cluster.fork else "spawn"
        scheduler = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        with (
            dask.config.set({"distributed.worker.multiprocessing-method": method}),
            dask.config.set(cluster.dask_config()),
            # As a LocalCluster, but with a host for each worker.
            SpecCluster(
                workers=nannies,
                scheduler={"cls": Scheduler, "options": scheduler},
                worker={"cls": Nanny, "options": {**options, "host": "127.0.0.1"}},
                silence_logs=logging.CRITICAL,
            ) as self.cluster,
            Client(self.cluster) as client,
        ):
            client.wait_for_workers(len(nannies))
            if cluster.uplink:
                client.run(limit_uplink, cluster.uplink, cluster.senders)
            prepare(client)
            with roast_recorder.record(client, self.trace):
                BEGIN.touch()
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
