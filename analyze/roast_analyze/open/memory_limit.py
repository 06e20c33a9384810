"""How much memory the database may take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import psutil

from roast_analyze.errors import TraceError

#: Without a word of the user's: this share of what is free, and never more than that.
DEFAULT_SHARE: Final = 0.6
DEFAULT_MOST_BYTES: Final = 4 * 2**30

#: With less than this DuckDB cannot even read a file.
LEAST_BYTES: Final = 128 * 2**20

_UNITS: Final = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip

#: Where Linux says what a container, or a batch job, may take: version 2 and 1 of cgroups.
_CGROUP_FILES: Final = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def limit_bytes(text: str | int | None) -> int:
    """Tell how many bytes are meant.

    Parameters
    ----------
    text : str, int or None
        ``1GiB``, ``500 MB``, a number of bytes; None for the default: 60 % of the memory
        that is free, at most 4 GiB.

    Raises
    ------
    TraceError
        If it is no size, or too little to work with.
    """
    if text is None:
        share = int(DEFAULT_SHARE * _free_bytes())
        return max(LEAST_BYTES, min(share, DEFAULT_MOST_BYTES))
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(text))
    if not match or match[2].lower() not in _UNITS:
        raise TraceError(f"{str(text)!r} is no size of memory; give one such as 1GiB")
    nbytes = int(float(match[1]) * _UNITS[match[2].lower()])
    if nbytes < LEAST_BYTES:
        raise TraceError(
            f"{str(text)!r} is too little memory; give {LEAST_BYTES // 2**20}MiB or more"
        )
    return nbytes


def _free_bytes() -> int:
    free = [int(psutil.virtual_memory().available)]
    for limit, usage in _CGROUP_FILES:
        try:
            free.append(int(limit.read_text()) - int(usage.read_text()))
        except (OSError, ValueError):  # no such file, or no limit: "max"
            continue
    return max(0, min(free))
