"""Load of the host, of the control group of this process, and of the cores that it may use.

Counters are recorded as the system keeps them; views compute their differences. A counter
that a system lacks, such as the pressure on Linux before 4.20, is an absent field.

One process of a recording samples each host: the first worker that binds a name there. When
it ends, the system releases the name, and the next worker to try takes over. The scheduler
samples its host while no worker does.
"""

from __future__ import annotations

import errno
import math
import os
import socket
import sys
import threading
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from time import monotonic, time
from typing import Any, Final

import psutil

from roast_recorder.probes import SchedulerProbe, WorkerProbe
from roast_recorder.scheduler.wire_format import Row, pack

#: Name that the sampling process of a host binds: an abstract address of a Unix socket, which
#: no other host or network namespace sees, and which leaves no file.
TURN: Final = "\0roast-host-{trace_id}"

#: Only Linux has abstract addresses. Elsewhere, the scheduler alone samples its host.
HAS_TURNS: Final = sys.platform == "linux"

#: Time after which the scheduler samples its host for the first time, unless a worker does.
FIRST_SAMPLE_SECONDS: Final = 1.0

#: Part of the names of threads in which Dask's workers compute tasks.
TASK_THREADS: Final = "Dask-Default-Threads"

#: Most bytes read of a file. Lines of cores come first in /proc/stat.
MAX_FILE_BYTES: Final = 65_536


class OnScheduler(SchedulerProbe):
    """Sample the scheduler's host while no worker of it does."""

    def _install(self) -> None:
        core = self.core
        self._host = HostSampler(core.trace_id, is_scheduler=True)
        interval = core.settings["host_interval_seconds"]
        first = min(interval, FIRST_SAMPLE_SECONDS)
        core.tap.every("host_sample", interval, self.finish, first)

    def finish(self) -> None:
        """Record a sample."""
        if (sample := self._host.take()) is not None:
            server_id = self.core.tap.read("host_sample", self.core.scheduler, "id")
            self.core.record("host_sample", server_id=server_id, **sample)


class OnWorker(WorkerProbe):
    """Sample the host, if this is the worker that does."""

    def _install(self) -> None:
        core = self.core
        self._samples: list[dict[str, Any]] = []
        self._host: HostSampler | None = HostSampler(core.trace_id)
        core.tap.until_closed(self._host.close)
        core.tap.every("host_sample", core.settings["host_interval_seconds"], self._sample)

    def _sample(self) -> None:
        if self._host is not None and (sample := self._host.take()) is not None:
            self._samples.append({"t": time(), **sample})

    def take(self) -> list[Row]:
        """Return the samples since the last call, on the scheduler's clock."""
        samples, self._samples = self._samples, []
        if not samples:
            return []
        about = {"worker": self.core.read("host_sample", "address")}
        about["server_id"] = self.core.read("host_sample", "id")
        delay = self.core.median_delay()
        samples = [{**one, "t": round(one["t"] + delay, 6), **about} for one in samples]
        return [("host_sample", len(samples), pack(samples))]

    def take_last(self) -> list[Row]:
        """Return the last samples: none follow."""
        self._sample()
        self._host = None
        return self.take()


class HostSampler:
    """Samples the host of one process, while it is the turn of this process.

    A worker keeps its turn until it is closed. The scheduler, with ``is_scheduler``, takes it
    for one sample, so that a worker which joins later becomes the sampling process.
    """

    def __init__(
        self, trace_id: str, *, is_scheduler: bool = False, root: Path = Path("/")
    ) -> None:
        self._name = TURN.format(trace_id=trace_id)
        self._is_scheduler = is_scheduler
        self._turn: socket.socket | None = None
        self._host = socket.gethostname()
        self._counters = Counters(root)

    def take(self) -> dict[str, Any] | None:
        """Return the fields of a sample; None while another process samples this host."""
        if not self._is_my_turn():
            return None
        try:
            return {"host": self._host, "metrics": self._counters.read()}
        finally:
            if self._is_scheduler:
                self.close()

    def close(self) -> None:
        """Leave the sampling of the host to another process."""
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.close()

    def _is_my_turn(self) -> bool:
        if not HAS_TURNS:
            return self._is_scheduler
        if self._turn is None:
            turn = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                turn.bind(self._name)
            except OSError as error:
                turn.close()
                if error.errno == errno.EADDRINUSE:
                    return False
                raise
            self._turn = turn
        return True


class Counters:
    """Counters of the host and of the control group of this process.

    `root` is the folder that contains ``proc`` and ``sys``.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._proc = root / "proc"
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")
        self._group = _control_group(root)

    def read(self) -> dict[str, Any]:
        """Return the current ``metrics`` of a sample, without those that are not known."""
        usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        metrics: dict[str, Any] = {
            "clock_seconds": monotonic(),
            "cores": os.cpu_count(),
            "usable_cores": None if usable is None else len(usable),
            "load_average": os.getloadavg()[0],
            **(self._seconds_of_cores(usable) or _seconds_of_all_cores()),
        }
        for resource in ("cpu", "io"):
            pressure = _pressure(_read(self._proc / "pressure" / resource))
            metrics[f"{resource}_pressure_avg10"] = pressure.get("some avg10")
            metrics[f"{resource}_pressure_seconds"] = _micro(pressure.get("some total"))
            if resource == "io":
                metrics["io_full_pressure_seconds"] = _micro(pressure.get("full total"))
        if self._group is not None:
            metrics |= _usage(self._group)
        metrics |= self._seconds_of_threads("threads", task_threads())
        native = native_threads(self._proc)
        if native is not None:
            metrics["native_threads"] = len(native)
            metrics |= self._seconds_of_threads("native", native)
        return {name: value for name, value in metrics.items() if value is not None}

    def _seconds_of_threads(self, name: str, threads: Iterable[int]) -> dict[str, float]:
        """Return how long threads were on a core so far, and ready without one."""
        paths = [self._proc / "self/task" / str(thread) / "schedstat" for thread in threads]
        # In nanoseconds; the third value is a number of turns.
        spent = [[*map(int, text.split())] for text in map(_read, paths) if text]
        if not spent:
            return {}
        busy, waiting, _ = map(sum, zip(*spent, strict=True))
        return {f"{name}_busy_seconds": busy / 1e9, f"{name}_waiting_seconds": waiting / 1e9}

    def _seconds_of_cores(self, usable: set[int] | None) -> dict[str, float]:
        """Return what all cores, and those that this process may use, did so far."""
        lines = takewhile(
            lambda line: line.startswith("cpu"), _read(self._proc / "stat").splitlines()
        )
        ticks = {name: [*map(int, numbers)] for name, *numbers in map(str.split, lines)}
        if "cpu" not in ticks:
            return {}
        busy, idle, iowait, steal = _uses(ticks["cpu"])
        found = {
            "host_busy_seconds": busy,
            "host_idle_seconds": idle,
            "host_iowait_seconds": iowait,
            "host_steal_seconds": steal,
        }
        if usable is not None and len(usable) < len(ticks) - 1:
            cores = [ticks[f"cpu{core}"] for core in usable if f"cpu{core}" in ticks]
            busy, idle, iowait, _ = _uses([*map(sum, zip(*cores, strict=True))])
            found |= {"usable_busy_seconds": busy, "usable_idle_seconds": idle + iowait}
        return {name: number / self._ticks_per_second for name, number in found.items()}


def task_threads() -> list[int]:
    """Return the system's IDs of the threads that compute tasks in this process."""
    return [
        thread.native_id
        for thread in threading.enumerate()
        if thread.native_id is not None and TASK_THREADS in thread.name
    ]


def native_threads(proc: Path) -> list[int] | None:
    """Return the IDs of threads of this process that Python did not start.

    Those of libraries, such as of BLAS and OpenMP. None on a system without /proc.
    """
    try:
        threads = {int(thread.name) for thread in (proc / "self/task").iterdir()}
    except OSError:
        return None
    return sorted(threads - {thread.native_id for thread in threading.enumerate()})


def _uses(ticks: list[int]) -> tuple[int, int, int, int]:
    """Return ticks that were busy, idle, idle with I/O, and used by other virtual machines."""
    user, nice, system, idle, iowait, irq, softirq, steal, *_ = ticks
    return user + nice + system + irq + softirq, idle, iowait, steal


def _seconds_of_all_cores() -> dict[str, float]:
    """Return what all cores did so far, on a system without /proc."""
    times = psutil.cpu_times()
    return {"host_busy_seconds": sum(times) - times.idle, "host_idle_seconds": times.idle}


def _control_group(root: Path) -> tuple[Path, Path | None] | None:
    """Return the folder of the control group that limits the CPU time of this process.

    It is the group with the smallest quota among that of the process and those around it, or
    else its own. The second folder has the CPU time of the group in version 1.
    """
    groups: dict[str, list[str]] = {}
    for line in _read(root / "proc/self/cgroup").splitlines():
        controllers, _, group = line.partition(":")[2].partition(":")
        parts = [part for part in group.split("/") if part not in ("", "..")]
        groups |= dict.fromkeys(controllers.split(","), parts)
    mounted = root / "sys/fs/cgroup"
    # The group of version 2 has no controllers. It does not limit if version 1 has the CPU.
    for controller, base in (("cpu", mounted / "cpu"), ("", mounted)):
        parts = groups.get(controller, [])
        # In a container, the group is mounted as the root, but has its outside name here.
        around = [base.joinpath(*parts[:length]) for length in range(len(parts), -1, -1)]
        around = [folder for folder in around if (folder / "cpu.stat").is_file()]
        if controller in groups and around:
            folder = min(around, key=lambda folder: _quota(folder) or math.inf)
            accounts = mounted / "cpuacct" / folder.relative_to(base) if controller else None
            return folder, accounts
    return None


def _quota(folder: Path) -> float | None:
    """Return the number of cores that a control group may use; None without a limit."""
    # Version 2 has "quota period" in one file, version 1 has two files.
    quota, _, period = _read(folder / "cpu.max").partition(" ")
    if not quota:
        quota = _read(folder / "cpu.cfs_quota_us")
        period = _read(folder / "cpu.cfs_period_us")
    if not quota.isdigit() or not period.isdigit():  # "max", -1 or no file
        return None
    return int(quota) / int(period)


def _usage(group: tuple[Path, Path | None]) -> dict[str, Any]:
    """Return the ``metrics`` of a control group."""
    folder, accounts = group
    lines = map(str.split, _read(folder / "cpu.stat").splitlines())
    counters = {name: int(value) for name, value in lines}
    nanoseconds = _read(accounts / "cpuacct.usage") if accounts else ""
    throttled = counters.get("throttled_time")  # of version 1, in nanoseconds
    pressure = {} if accounts else _pressure(_read(folder / "cpu.pressure"))
    return {
        "cgroup_cores": _quota(folder),
        "cgroup_busy_seconds": (
            int(nanoseconds) / 1e9 if nanoseconds else _micro(counters.get("usage_usec"))
        ),
        "cgroup_periods": counters.get("nr_periods"),
        "cgroup_throttled_periods": counters.get("nr_throttled"),
        "cgroup_throttled_seconds": (
            _micro(counters.get("throttled_usec")) if throttled is None else throttled / 1e9
        ),
        "cgroup_pressure_seconds": _micro(pressure.get("some total")),
    }


def _pressure(text: str) -> dict[str, float]:
    """Return the values of a pressure file, by names such as ``some avg10``."""
    return {
        f"{share} {name}": float(value)
        for share, *values in map(str.split, text.splitlines())
        for name, _, value in (pair.partition("=") for pair in values)
    }


def _micro(microseconds: float | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6


def _read(path: Path) -> str:
    """Return the text of a small file; an empty one if it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(file, MAX_FILE_BYTES).decode("ascii", "replace").strip()
    except OSError:  # pressure can be switched off at boot: the file is there, but unreadable
        return ""
    finally:
        os.close(file)
