"""Worker processes: when they were there, and which of them an address meant when."""

from dataclasses import dataclass

from nightly.recording import Recording, Row, once
from nightly.tasks import task_runs
from nightly.totals import column, grouped, known, most, total


@dataclass
class Process:
    """A worker process: how it came, and how it went if it did."""

    address: str
    #: The record of how it came; empty if none was recorded.
    added: dict
    removed: dict | None = None
    #: What Dask said of it when it went.
    said: dict | None = None

    @property
    def reason(self) -> str | None:
        """Name what made it go, without the time that Dask adds to it."""
        if self.removed is None or self.removed.get("stimulus_id") is None:
            return None
        name, _, number = self.removed["stimulus_id"].rpartition("-")
        return name if name and set(number) <= set("0123456789.") else f"{name}-{number}"

    @property
    def is_lost(self) -> bool:
        """Tell whether it went unexpectedly: as Dask says, else if its connection broke."""
        if self.removed is None:
            return False
        if self.said and self.said.get("expected") is not None:
            return not self.said["expected"]
        return (self.reason or "").startswith("handle-worker-cleanup")


@once
def processes(recording: Recording) -> list[Process]:
    """Find the processes, in the order in which they came.

    First come addresses that ran or measured something, or were sampled, and of which
    nobody told that they came.
    """
    added = grouped(
        recording.of("worker_added"),
        lambda line: (line.get("worker"), line.get("server_id") or id(line)),
    )
    came = [Process(address, lines[0]) for (address, _), lines in added.items()]
    for process in came:
        process.removed = _removal(process, came, recording)
        process.said = _said(process, recording)
    seen = {
        *column(task_runs(recording), "worker"),
        *known(line.get("worker") for line in recording.of("worker_sample")),
        *known(line.get("worker") for line in recording.of("chunk")),
    }
    unknown = sorted(seen - {process.address for process in came})
    return [*(Process(address, {}) for address in unknown), *came]


def _removal(process: Process, came: list[Process], recording: Recording) -> dict | None:
    """Find the first removal that names the process, or its address while it was its own.

    The address is its own from when it came until the next one came.
    """
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


def _said(process: Process, recording: Recording) -> dict | None:
    """Find what Dask's event says of the removal."""
    if process.removed is None:
        return None
    for line in recording.of("event"):
        payload = line.get("payload")
        if line["topic"] != "all" or not isinstance(payload, dict):
            continue
        worker = line.get("worker") or payload.get("worker")
        is_it = (payload.get("action"), worker, payload.get("stimulus_id"))
        if is_it == ("remove-worker", process.address, process.removed.get("stimulus_id")):
            return payload
    return None


def process_of(recording: Recording, address: str | None, t: float | None) -> int | None:
    """Give the number of the process that an address meant: the one that came last until t.

    The first process of an address is meant before it came, too, and if no time is known:
    that was before the recording.
    """
    numbers = [n for n, p in enumerate(processes(recording)) if p.address == address]
    came = [n for n in numbers[1:] if t is not None and processes(recording)[n].added["t"] <= t]
    return (came or numbers[:1] or [None])[-1]


@once
def presence(recording: Recording) -> list[tuple[float, float, int | None]]:
    """Tell when each process came and went, as far as it was recorded, and its threads."""
    start_t, stop_t = extent(recording)
    return [
        (
            process.added.get("t", start_t),
            process.removed["t"] if process.removed else stop_t,
            _nthreads(process, recording),
        )
        for process in processes(recording)
    ]


@once
def cluster(recording: Recording) -> Row:
    """Add up what workers there were, from when they came, or the beginning, until they went.

    A peak is over instants; what comes and goes at one instant counts together.
    """
    stays = presence(recording)
    instants = sorted({t for come, go, _ in stays for t in (come, go)})
    present = [[n for come, go, n in stays if come <= t < go] for t in instants]
    lengths = [max(go - come, 0) for come, go, _ in stays]
    return {
        "workers": len(stays),
        "peak_workers": max(map(len, present), default=0),
        "peak_nthreads": max((sum(known(there)) for there in present), default=0),
        "worker_seconds": total(lengths),
        "core_seconds": total(
            n * length
            for (_, _, n), length in zip(stays, lengths, strict=True)
            if n is not None
        ),
    }


def _nthreads(process: Process, recording: Recording) -> int | None:
    """Give the threads that it came with, else the most that samples of its address say."""
    if process.added.get("nthreads") is not None:
        return process.added["nthreads"]
    samples = recording.of("worker_sample")
    return most(line.get("nthreads") for line in samples if line["worker"] == process.address)


def extent(recording: Recording) -> tuple[float, float]:
    """Give the times of the first and the last record."""
    instants = [line["t"] for line in recording.lines]
    return min(instants), max(instants)
