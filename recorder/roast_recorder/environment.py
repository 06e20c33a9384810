"""Facts about the set-up of a run, as the scheduler and the client know them.

What a process runs with and on, :mod:`roast_recorder.process` says.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterator
from datetime import datetime
from time import time
from typing import TYPE_CHECKING, Any, Final

from roast_recorder import __version__, deployment, program

if TYPE_CHECKING:
    from distributed import Client, Scheduler
    from distributed.scheduler import WorkerState

#: One fact: section, name, value.
Fact = tuple[str, str, Any]

#: Names of plugins that are told.
MAX_PLUGINS: Final = 200


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
    """Describe the scheduler, and what there was when recording began."""
    yield "scheduler", "address", scheduler.address
    yield "scheduler", "id", scheduler.id
    yield "scheduler", "pid", os.getpid()
    yield "scheduler", "workers when recording began", len(scheduler.workers)
    yield "scheduler", "threads when recording began", scheduler.total_nthreads
    yield "scheduler", "tasks when recording began", len(scheduler.tasks)
    yield from plugin_facts(scheduler)


def plugin_facts(scheduler: Scheduler) -> Iterator[Fact]:
    """Name the plugins and extensions of the scheduler, and those that workers get."""
    for name, plugins in (
        ("plugins", scheduler.plugins),
        ("extensions", scheduler.extensions),
        ("worker plugins", scheduler.worker_plugins),
        ("nanny plugins", scheduler.nanny_plugins),
    ):
        yield "scheduler", name, _names(plugins)


def client_facts(client: Client) -> Iterator[Fact]:
    """Describe the client that records, its program, and its cluster."""
    yield "client", "id", client.id
    yield from program_facts()
    for name, value in deployment.describe(client.cluster):
        yield "cluster", name, value


def program_facts() -> Iterator[Fact]:
    """Describe the program that records."""
    yield "client", "pid", os.getpid()
    for name, value in program.describe():
        yield "client", name, value


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


def _names(plugins: Any) -> list[str]:
    """Name plugins, but for the recorder's own."""
    names = [str(name) for name in plugins][:MAX_PLUGINS]
    return sorted(name for name in names if not name.startswith("roast-"))


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
