"""The machine that a process runs on, and how much of it the process may use."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

#: Where Linux tells of itself.
ROOT: Final = Path("/")

#: What cgroups of the first version say for no limit is larger than this.
_NO_LIMIT: Final = 2**60

_FILE_BYTES: Final = 65_536


def describe(root: Path = ROOT) -> dict[str, Any]:
    """Say what is known; what is not is left out.

    Parameters
    ----------
    root : Path
        Of the file system.

    Returns
    -------
    dict
        host, system, platform, kernel, architecture, cpu_model; cores, usable_cores
        (those that the process may run on), cgroup_cores (how many of them its control
        group may keep busy); memory_bytes, cgroup_memory_bytes; open_files_limit.
    """
    cores, memory = cgroup_limits(root)
    facts = {
        "host": socket.gethostname(),
        "system": platform.system(),
        "platform": platform.platform(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu_model": _cpu_model(root),
        "cores": os.cpu_count(),
        "usable_cores": _usable_cores(),
        "cgroup_cores": cores,
        "memory_bytes": _memory_bytes(),
        "cgroup_memory_bytes": memory,
        "open_files_limit": _open_files_limit(),
    }
    return {name: value for name, value in facts.items() if value is not None}


def cgroup_limits(root: Path = ROOT) -> tuple[float | None, int | None]:
    """Give how many cores and how much memory (bytes) the control group may use.

    A limit holds for all groups within the one that it is set for, so the smallest from
    this process's group up to the root counts. None is no limit, or none that can be seen.
    """
    cores: list[float] = []
    memory: list[int] = []
    for controllers, group in _groups(root):
        for folder in _folders(root, controllers, group):
            if (found := _cores_of(folder)) is not None:
                cores.append(found)
            if (limit := _memory_of(folder)) is not None:
                memory.append(limit)
    return min(cores, default=None), min(memory, default=None)


def _groups(root: Path) -> Iterator[tuple[str, str]]:
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        _, _, told = line.partition(":")
        controllers, _, group = told.partition(":")
        names = controllers.split(",")
        if not controllers:
            yield "", group
        elif "cpu" in names or "memory" in names:
            yield "cpu" if "cpu" in names else "memory", group


def _folders(root: Path, controllers: str, group: str) -> Iterator[Path]:
    """Give the folders of a group and of those around it."""
    top = root / "sys/fs/cgroup" / controllers
    parts = [part for part in group.split("/") if part not in ("", "..")]
    # A container sees its own group as the root, under the name that it has outside.
    for length in range(len(parts), -1, -1):
        yield top.joinpath(*parts[:length])


def _cores_of(folder: Path) -> float | None:
    if told := _text(folder / "cpu.max"):
        quota, _, period = told.strip().partition(" ")
    else:
        quota = (_text(folder / "cpu.cfs_quota_us") or "").strip()
        period = (_text(folder / "cpu.cfs_period_us") or "").strip()
    if quota.isdecimal() and period.isdecimal() and int(period):
        return int(quota) / int(period)
    return None


def _memory_of(folder: Path) -> int | None:
    told = _text(folder / "memory.max") or _text(folder / "memory.limit_in_bytes") or ""
    limit = told.strip()
    return int(limit) if limit.isdecimal() and int(limit) < _NO_LIMIT else None


def _cpu_model(root: Path) -> str | None:
    for line in (_text(root / "proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()[:200]
    return platform.processor() or None


def _usable_cores() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return None


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _open_files_limit() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit if 0 <= limit < _NO_LIMIT else None


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
