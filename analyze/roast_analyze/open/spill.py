"""Folders into which DuckDB writes what exceeds the memory limit.

Each connection has one, which DuckDB creates when it spills and removes when it closes. A
process that is killed leaves its folder, which can have the size of the trace.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
import uuid
from pathlib import Path
from tempfile import gettempdir
from typing import Final

import psutil

_PREFIX: Final = "roast-spill-"

#: A folder that was last used before this is removed. Containers can share the folder of
#: temporary files and not see the processes of each other.
_STALE_SECONDS: Final = 86_400

#: File of DuckDB whose name contains the id of the process.
_OWNER: Final = re.compile(r"duckdb_temp_(\d+)_\d+_owner")


def new_spill_folder() -> Path:
    """Return the path of a new folder, after removing those that killed processes left."""
    parent = Path(gettempdir())
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            files = list(folder.iterdir())
            used_t = max(file.stat().st_mtime for file in (folder, *files))
            owners = filter(None, (_OWNER.fullmatch(file.name) for file in files))
            is_used = any(psutil.pid_exists(int(owner[1])) for owner in owners)
            if used_t < time.time() - _STALE_SECONDS and not is_used:
                shutil.rmtree(folder, ignore_errors=True)
    return parent / f"{_PREFIX}{uuid.uuid4().hex}"
