"""Facts about the software and the machines of a run.

Only what is listed here is recorded: configuration by an allow-list, never the process's
environment variables.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import socket
import sys
from collections.abc import Iterator
from datetime import datetime
from time import time
from typing import TYPE_CHECKING, Any, Final

import dask

from roast_recorder import __version__

if TYPE_CHECKING:
    from distributed import Client, Scheduler
    from distributed.scheduler import WorkerState

#: One fact: section, name, value.
Fact = tuple[str, str, Any]

PACKAGES: Final = (
    "dask",
    "distributed",
    "coffea",
    "uproot",
    "awkward",
    "dask-awkward",
    "numpy",
    "pandas",
    "pyarrow",
    "msgpack",
    "tornado",
    "cloudpickle",
    "roast-trace",
)

#: Dask configuration that explains how a run was scheduled and that holds no secrets.
CONFIGURATION: Final = (
    "distributed.scheduler.allowed-failures",
    "distributed.scheduler.worker-saturation",
    "distributed.scheduler.work-stealing",
    "distributed.scheduler.worker-ttl",
    "distributed.scheduler.unknown-task-duration",
    "distributed.worker.memory.target",
    "distributed.worker.memory.spill",
    "distributed.worker.memory.pause",
    "distributed.worker.memory.terminate",
    "distributed.worker.profile.enabled",
    "distributed.worker.profile.interval",
    "distributed.worker.profile.cycle",
    "distributed.comm.compression",
    "optimization.fuse.active",
    "dataframe.shuffle.method",
)


def header_facts(scheduler: Scheduler) -> dict[str, Any]:
    """Say what a trace's header needs to know of the scheduler."""
    utc_offset = datetime.now().astimezone().utcoffset()
    return {
        "t": time(),
        "versions": {
            "dask": _version("dask"),
            "distributed": _version("distributed"),
            "python": platform.python_version(),
            "roast-trace": __version__,
        },
        "scheduler": scheduler.address,
        "scheduler_id": scheduler.id,
        "utc_offset_seconds": utc_offset.total_seconds() if utc_offset is not None else None,
    }


def scheduler_facts(scheduler: Scheduler) -> Iterator[Fact]:
    """Describe the scheduler: versions, machine, configuration."""
    yield from _versions("scheduler versions")
    yield from _machine("scheduler machine")
    yield "scheduler", "address", scheduler.address
    yield "scheduler", "id", scheduler.id
    yield "scheduler", "pid", os.getpid()
    yield "scheduler", "workers when recording began", len(scheduler.workers)
    yield "scheduler", "threads when recording began", scheduler.total_nthreads
    yield "scheduler", "tasks when recording began", len(scheduler.tasks)
    for name in CONFIGURATION:
        yield "dask configuration", name, dask.config.get(name, None)


def client_facts(client: Client) -> Iterator[Fact]:
    """Describe the client that records."""
    yield from process_facts()
    yield "client", "id", client.id
    cluster = type(client.cluster)
    if client.cluster is not None:
        yield "cluster", "type", f"{cluster.__module__}.{cluster.__qualname__}"


def process_facts() -> Iterator[Fact]:
    """Describe the process that records."""
    yield from _versions("client versions")
    yield from _machine("client machine")
    yield "client", "pid", os.getpid()
    yield "client", "program", os.path.basename(sys.argv[0] or "python")  # noqa: PTH119


def worker_facts(worker: WorkerState) -> dict[str, Any]:
    """Describe a worker: the fields of a ``worker_added`` record."""
    return {
        "worker": worker.address,
        "server_id": worker.server_id,
        "name": str(worker.name),
        "host": worker.host,
        "pid": worker.pid,
        "nthreads": worker.nthreads,
        "memory_limit": worker.memory_limit,
        "nanny": worker.nanny,
        "local_directory": worker.local_directory,
        "resources": worker.resources or None,
        "versions": worker.versions.get("packages"),
    }


def _versions(section: str) -> Iterator[Fact]:
    yield section, "python", platform.python_version()
    for package in PACKAGES:
        if version := _version(package):
            yield section, package, version


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _machine(section: str) -> Iterator[Fact]:
    yield section, "host", socket.gethostname()
    yield section, "platform", platform.platform()
    yield section, "cores", os.cpu_count()
