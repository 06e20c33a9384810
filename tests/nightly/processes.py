"""Worker processes: their lifetime, and the process of an address at a time."""

import re
from dataclasses import dataclass

from nightly.recording import Recording, once
from nightly.tasks import task_runs
from nightly.totals import column, grouped, known, most


@dataclass
class Process:
    """A worker process with the records of its start and end."""

    address: str
    #: The record of its start; empty without one.
    added: dict
    removed: dict | None = None
    #: Dask's event of its removal.
    said: dict | None = None
    #: Dask's event of its nanny, which killed it for memory.
    killed: dict | None = None
    #: Reason that it logged when it closed.
    closing: str | None = None

    @property
    def kill(self) -> str | None:
        """Return how much memory the process had when its nanny killed it."""
        if self.removed is None or self.killed is None:
            return None
        used, limit = self.killed["rss"], self.added.get("memory_limit")
        unit, nbytes, digits = (
            ("GiB", 2**30, 1) if (limit or used) >= 2**30 else ("MiB", 2**20, 0)
        )
        of_limit = f" of {limit / nbytes:.{digits}f}" if limit else ""
        return f"killed by its nanny at {used / nbytes:.{digits}f}{of_limit} {unit}"

    @property
    def kill_bytes(self) -> int | None:
        """Return the memory at which its nanny killed it."""
        return self.killed["rss"] if self.kill else None

    @property
    def reason(self) -> str | None:
        """Return the reason for leaving: the kill, the worker's own, or else Dask's.

        Times that Dask adds are left out.
        """
        if self.kill or self.removed is None:
            return self.kill
        if self.closing:
            name, _, number = self.closing.rpartition("-")
            return name if re.fullmatch(r"[0-9]+[.][0-9]+", number) else self.closing
        if self.removed.get("stimulus_id") is None:
            return None
        name, _, number = self.removed["stimulus_id"].rpartition("-")
        return name if name and set(number) <= set("0123456789.") else f"{name}-{number}"

    @property
    def is_lost(self) -> bool:
        """Return whether the worker was lost: by Dask's event, or else a broken connection."""
        if self.removed is None:
            return False
        if self.said and self.said.get("expected") is not None:
            return not self.said["expected"]
        return (self.removed.get("stimulus_id") or "").startswith("handle-worker-cleanup")


@once
def processes(recording: Recording) -> list[Process]:
    """Return the processes in the order in which they joined.

    Addresses without a recorded start that ran or measured something, or were sampled, come
    first.
    """
    added = grouped(
        recording.of("worker_added"),
        lambda line: (line.get("worker"), line.get("server_id") or id(line)),
    )
    came = [Process(address, lines[0]) for (address, _), lines in added.items()]
    for process in came:
        process.removed = _removal(process, came, recording)
    for line in recording.of("event"):
        payload = line.get("payload")
        is_closing = isinstance(payload, dict) and payload.get("action") == "closing-worker"
        if line["topic"] == "worker-restart-memory" or is_closing:
            address = line["topic"] if is_closing else payload["worker"]
            at = [p for p in came if p.address == address and p.added["t"] <= line["t"]]
            if at and is_closing:
                at[-1].closing = payload["reason"]
            elif at:
                at[-1].killed = payload
        elif line["topic"] == "all" and isinstance(payload, dict):
            removal = line.get("worker") or payload.get("worker"), payload.get("stimulus_id")
            for process in came if payload.get("action") == "remove-worker" else ():
                removed = process.removed
                if removed and removal == (process.address, removed.get("stimulus_id")):
                    process.said = process.said or payload
    seen = {
        *column(task_runs(recording), "worker"),
        *known(line.get("worker") for line in recording.of("worker_sample")),
        *known(line.get("worker") for line in recording.of("chunk")),
    }
    unknown = sorted(seen - {process.address for process in came})
    return [*(Process(address, {}) for address in unknown), *came]


def _removal(process: Process, came: list[Process], recording: Recording) -> dict | None:
    """Return the first removal of the process: by server ID, or else by address and time."""
    since = process.added["t"]
    later = [
        other.added["t"]
        for other in came
        if other.address == process.address and other.added["t"] > since
    ]
    until = min(later, default=float("inf"))

    def is_it(line: dict) -> bool:
        if line.get("server_id") and process.added.get("server_id"):
            return line["server_id"] == process.added["server_id"]
        return line.get("worker") == process.address and since <= line["t"] < until

    return next((line for line in recording.of("worker_removed") if is_it(line)), None)


def process_of(recording: Recording, address: str | None, t: float | None) -> int | None:
    """Return the number of the process of an address: the one that joined last until t.

    Times before the first process joined, and unknown times, belong to the first process.
    """
    numbers = [n for n, p in enumerate(processes(recording)) if p.address == address]
    came = [n for n in numbers[1:] if t is not None and processes(recording)[n].added["t"] <= t]
    return (came or numbers[:1] or [None])[-1]


@once
def presence(recording: Recording) -> list[tuple[float, float, int | None]]:
    """Return the lifetimes of processes within the recording, and their threads."""
    start_t, stop_t = extent(recording)
    return [
        (
            process.added.get("t", start_t),
            process.removed["t"] if process.removed else stop_t,
            # As recorded, or else the largest number in samples of its address.
            process.added.get("nthreads")
            if process.added.get("nthreads") is not None
            else most(
                line.get("nthreads")
                for line in recording.of("worker_sample")
                if line["worker"] == process.address
            ),
        )
        for process in processes(recording)
    ]


def extent(recording: Recording) -> tuple[float, float]:
    """Return the times of the first and the last record."""
    instants = [line["t"] for line in recording.lines]
    return min(instants), max(instants)
