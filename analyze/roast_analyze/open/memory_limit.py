"""Memory limit of the database."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Final

import psutil

from roast_analyze.errors import TraceError

#: Default: this share of the free memory, and at most this number of bytes.
DEFAULT_SHARE: Final = 0.6
DEFAULT_MOST_BYTES: Final = 4 * 2**30

#: DuckDB cannot read a file with less than this.
LEAST_BYTES: Final = 128 * 2**20
#: DuckDB accepts no larger limit.
_MOST_BYTES: Final = 2**60

_UNITS: Final = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip

#: Control groups of Linux, version 2 and 1: controller, folder of the root, the files with
#: limit and usage, and the name of the page cache in ``memory.stat``.
_CGROUPS: Final = (
    ("", Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"),
    (
        "memory",
        Path("/sys/fs/cgroup/memory"),
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)

#: File with the control groups of this process: lines of number, controllers and path.
_OWN_GROUPS: Final = Path("/proc/self/cgroup")


def limit_bytes(text: str | int | None) -> int:
    """Parse a memory limit, such as ``1GiB`` or a number of bytes; None is the default.

    Raises
    ------
    TraceError
        If it is not a size, or too small.
    """
    if text is None:
        free = [int(psutil.virtual_memory().available)]
        own: dict[str, str] = {}
        with contextlib.suppress(OSError):
            for line in _OWN_GROUPS.read_text().splitlines():
                _, controllers, path = line.split(":", 2)
                own |= dict.fromkeys(controllers.split(","), path)
        for controller, root, limit, usage, cached in _CGROUPS:
            group = root / own.get(controller, "").strip("/")
            # Each limit applies to all groups within its group.
            for folder in (group, *group.parents[: len(group.parts) - len(root.parts)]):
                # The file is missing outside of a cgroup, and contains "max" without a limit.
                with contextlib.suppress(OSError, ValueError, KeyError):
                    stat = (folder / "memory.stat").read_text().splitlines()
                    # The usage includes files that were read, which the kernel can drop.
                    reclaimable = int(dict(line.split() for line in stat)[cached])
                    used = int((folder / usage).read_text()) - reclaimable
                    free.append(int((folder / limit).read_text()) - used)
        # A container or a batch job often has less than its machine.
        return max(LEAST_BYTES, min(int(DEFAULT_SHARE * min(free)), DEFAULT_MOST_BYTES))
    nbytes = size_bytes(text, "memory limit")
    if nbytes < LEAST_BYTES:
        raise TraceError(
            f"memory limit {str(text)!r} is too small: use {LEAST_BYTES // 2**20}MiB or more"
        )
    return min(nbytes, _MOST_BYTES)


def size_bytes(text: str | int, noun: str = "size") -> int:
    """Parse a size, such as ``1GiB`` or a number of bytes; `noun` names it in the error.

    Raises
    ------
    TraceError
        If it is not a size.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(text))
    if not match or match[2].lower() not in _UNITS:
        raise TraceError(f"invalid {noun} {str(text)!r}: use a size such as 1GiB")
    return int(float(match[1]) * _UNITS[match[2].lower()])
