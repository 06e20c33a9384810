"""Progress of a run, from its records as they are written.

Unlike the views, which read a whole trace, a :class:`Progress` keeps counts and, for each task,
its prefix. An expected end is the time of the tasks that are left at the rate of the last
minute: it assumes that they are like those, and that no more are submitted.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from roast_schemas.describe import is_valid, number_fields
from roast_schemas.units import VALID, Unit

#: Time of the past that rates are computed from.
RATE_SECONDS: Final = 60.0

#: Number of failures that are kept.
FAILURES: Final = 5

#: Roles of the processes on whose machine a trace can be written.
_WRITERS: Final = ("scheduler", "client")


@dataclass
class Amount:
    """Tasks of a prefix, or chunks of a dataset."""

    total: int = 0
    done: int = 0
    failed: int = 0
    events: int = 0
    done_events: int = 0
    #: Time of each result of the last minute, and its events.
    recent: deque[tuple[float, int]] = field(default_factory=deque)

    def add_result(self, t: float, events: int = 0) -> None:
        """Count a result."""
        self.done += 1
        self.done_events += events
        self.recent.append((t, events))
        self._forget(t)

    def _forget(self, now: float) -> None:
        while self.recent and self.recent[0][0] < now - RATE_SECONDS:
            self.recent.popleft()

    def rates(self, now: float, start_t: float) -> tuple[float, float]:
        """Return results and events a second over the last minute."""
        self._forget(now)
        seconds = max(min(RATE_SECONDS, now - start_t), 1.0)
        return len(self.recent) / seconds, sum(events for _, events in self.recent) / seconds

    def left_seconds(self, now: float, start_t: float) -> float | None:
        """Return the expected time until all are done; None if nothing was done lately."""
        rate, _ = self.rates(now, start_t)
        return max(self.total - self.done, 0) / rate if rate else None


@dataclass
class _Task:
    prefix: str
    dataset: str | None = None
    events: int = 0
    is_done: bool = False


@dataclass
class _Worker:
    name: str
    nthreads: int = 0
    memory: int = 0
    memory_limit: int = 0


class Progress:
    """The progress of a run. Call :meth:`add` with its records in order."""

    def __init__(self) -> None:
        self.header: dict[str, Any] = {}
        self.label: str | None = None
        self._program: str | None = None
        #: Programs that clients reported, and the clients that submitted tasks.
        self._programs: dict[str, str] = {}
        self._submitters: set[str] = set()
        self.end_reason: str | None = None
        #: Hosts of the scheduler and the recording client, one of which writes the trace.
        self.hosts: set[str] = set()
        self.start_t = self.now = 0.0
        #: First submission of a task, from which rates are computed.
        self.work_t: float | None = None
        self.tasks = Amount()
        self.prefixes: dict[str, Amount] = {}
        self.datasets: dict[str, Amount] = {}
        self.workers: dict[str, _Worker] = {}
        self.joined = self.left = self.peak_workers = 0
        self.retried = 0
        self.failures: deque[tuple[float, str, str]] = deque(maxlen=FAILURES)
        self.lost: Counter[str] = Counter()
        #: When each task was assigned that a worker has now, the first one first.
        self.processing: dict[str, float] = {}
        self._tasks: dict[str, _Task] = {}

    @property
    def program(self) -> str | None:
        """Return the program that records, or else the known ones that submitted tasks."""
        known = {self._programs[client] for client in self._submitters & self._programs.keys()}
        return self._program or ", ".join(sorted(known)) or None

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record; one with values that cannot be is ignored.

        As in a trace that is opened, numbers that are not valid are null, and a record without
        a valid time is none.
        """
        with suppress(KeyError, TypeError, AttributeError, ValueError):
            numbers = number_fields(record["kind"])
            invalid = [
                name
                for name, value in record.items()
                if name in numbers and not is_valid(value, numbers[name].valid)
            ]
            if invalid:
                record = {**record, **dict.fromkeys(invalid)}
                if any(numbers[name].required for name in invalid):
                    return  # damaged: the report counts it
            t = record["t"]
            self.now = max(self.now, t)
            self.start_t = self.start_t or t
            if add := getattr(self, f"_add_{record['kind']}", None):
                add(t, record)  # can be of another version

    def _add_header(self, _: float, record: Mapping[str, Any]) -> None:
        self.header = self.header or dict(record)
        if label := (record.get("settings") or {}).get("label"):
            self.label = str(label)

    def _add_environment(self, _: float, record: Mapping[str, Any]) -> None:
        if record["section"] == "process" and record["value"]["role"] in _WRITERS:
            self.hosts.add(str(record["value"]["machine"]["host"]))
        # A recorder that is attached from a shell is not the program.
        is_program = (record["section"], record["name"]) == ("client", "program")
        if is_program and record["value"] != "roast-record":
            self._program = str(record["value"])

    def _add_client_program(self, _: float, record: Mapping[str, Any]) -> None:
        if record.get("name"):
            self._programs[str(record["client"])] = str(record["name"])

    def _add_trailer(self, _: float, record: Mapping[str, Any]) -> None:
        if record["reason"] != "rotated":
            self.end_reason = str(record["reason"])

    def _add_task(self, t: float, record: Mapping[str, Any]) -> None:
        key, prefix = str(record["key"]), str(record.get("prefix") or "unknown")
        if key not in self._tasks:
            self.work_t = self.work_t or t
            self._submitters.add(str(record.get("client")))
            self._tasks[key] = _Task(prefix)
            self.tasks.total += 1
            self.prefixes.setdefault(prefix, Amount()).total += 1

    def _add_chunk(self, _: float, record: Mapping[str, Any]) -> None:
        task = self._tasks.get(str(record.get("key")))
        # The record with an attempt has the same entries.
        if task and task.dataset is None and record.get("dataset") is not None:
            if record.get("entry_stop") is None:
                return  # a metadata read
            task.dataset = str(record["dataset"])
            task.events = record["entry_stop"] - record["entry_start"]
            amount = self.datasets.setdefault(task.dataset, Amount())
            amount.total += 1
            amount.events += task.events

    def _add_transition(self, t: float, record: Mapping[str, Any]) -> None:
        start, finish, key = record["start"], record["finish"], str(record["key"])
        if finish == "processing":
            self.processing[key] = t
            return
        if start != "processing":
            return
        self.processing.pop(key, None)
        task = self._tasks.get(key)
        if task is None:  # its record was lost
            self._add_task(t, {"key": key})
            task = self._tasks[key]
        amounts = [self.tasks, self.prefixes[task.prefix]]
        if task.dataset is not None:
            amounts.append(self.datasets[task.dataset])
        if finish == "memory" and not task.is_done:
            task.is_done = True
            for amount in amounts:
                amount.add_result(t, task.events)
        elif finish == "erred":
            for amount in amounts:
                amount.failed += 1
            self.failures.append((t, key, str(record.get("exception") or "failed")))
        elif record.get("exception"):
            self.retried += 1
            self.failures.append((t, key, f"retried: {record['exception']}"))

    def _add_worker_added(self, _: float, record: Mapping[str, Any]) -> None:
        address = str(record["worker"])
        self.joined += address not in self.workers
        self.workers[address] = _Worker(str(record.get("name")), record.get("nthreads") or 0)
        self.peak_workers = max(self.peak_workers, len(self.workers))

    def _add_worker_removed(self, _: float, record: Mapping[str, Any]) -> None:
        self.left += self.workers.pop(str(record["worker"]), None) is not None

    def _add_worker_sample(self, _: float, record: Mapping[str, Any]) -> None:
        if worker := self.workers.get(str(record["worker"])):
            worker.nthreads = record.get("nthreads") or worker.nthreads
            memory: Any = (record.get("metrics") or {}).get("memory")
            worker.memory = memory if is_valid(memory, VALID[Unit.BYTES]) else 0
            worker.memory_limit = record.get("memory_limit") or 0

    def _add_loss(self, _: float, record: Mapping[str, Any]) -> None:
        self.lost[str(record.get("record_kind"))] += record.get("records") or 1
