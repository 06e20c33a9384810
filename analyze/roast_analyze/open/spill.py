"""Folders for data that DuckDB spills to disk when it exceeds the memory limit.

Each connection has one, which DuckDB creates when it spills and removes when it closes. A
killed process leaves its folder behind, which can be as large as the trace.
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

from roast_analyze.open.cache import ABANDONED_SECONDS

_PREFIX: Final = "roast-spill-"

#: Name of a file of DuckDB, which contains the id of the process.
_OWNER: Final = re.compile(r"duckdb_temp_(\d+)_\d+_owner")


def new_spill_folder() -> Path:
    """Return the path of a new folder."""
    return Path(gettempdir()) / f"{_PREFIX}{uuid.uuid4().hex}"


def remove_abandoned_spills() -> None:
    """Remove folders of killed processes that were not used for a day."""
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            files = list(folder.iterdir())
            age_seconds = time.time() - max(path.stat().st_mtime for path in (folder, *files))
            owners = filter(None, (_OWNER.fullmatch(file.name) for file in files))
            # Containers can share the temporary folder, but not see each other's processes, so
            # the absence of the process is not sufficient.
            if age_seconds > ABANDONED_SECONDS and not any(
                psutil.pid_exists(int(owner[1])) for owner in owners
            ):
                shutil.rmtree(folder, ignore_errors=True)
