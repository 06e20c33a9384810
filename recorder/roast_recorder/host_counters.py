"""Counters of a host, of the control group of this process, and of the cores that it may use.

They are those that the system keeps; views compute their differences. A counter that a system
lacks, such as the pressure on Linux before 4.20, is an absent field.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from time import monotonic
from typing import Any, Final

import psutil

#: Part of the names of threads in which Dask's workers compute tasks.
TASK_THREADS: Final = "Dask-Default-Threads"

#: Most bytes read of a file. Lines of cores come first in /proc/stat.
MAX_FILE_BYTES: Final = 65_536


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
