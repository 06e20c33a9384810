"""A run that is being recorded: its records are counted as they are appended."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from roast_analyze.algorithms.progress import Progress
from roast_analyze.open.growing import GrowingTrace

#: Time without a change after which a trace without a trailer, and without a process that has
#: locked it, is no longer being recorded.
SILENT_SECONDS: Final = 30.0


class Following:
    """The progress of a run so far."""

    def __init__(self, *paths: Path) -> None:
        self.progress = Progress()
        self._paths = paths
        self._locked_until = 0.0
        self._trace = GrowingTrace(*paths)
        self._records: Iterator[dict[str, Any] | None] = iter(())

    @property
    def has_ended(self) -> bool:
        """Whether its trailer was read."""
        return self.progress.end_reason is not None

    def is_locked(self) -> bool:
        """Return whether a process has locked the last file, to write it.

        Some network file systems have no locks; there, no file is locked.
        """
        # Not more often than necessary: while it is tested, a recorder could not lock it.
        if time.monotonic() < self._locked_until:
            return True
        path = self._paths[-1]
        try:
            if path.is_dir():
                path = max(file for file in path.iterdir() if file.is_file())
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self._locked_until = time.monotonic() + SILENT_SECONDS
            return True
        except (OSError, ValueError):  # removed just now, or an empty folder
            pass
        return False

    def read(self, seconds: float) -> bool:
        """Read what was appended, for a limited time; return whether that was all.

        Raises
        ------
        TraceError
            If the trace is damaged.
        """
        until = time.monotonic() + seconds
        # What was not read in the last call comes first.
        for records in (self._records, self._trace.records()):
            self._records = records
            for record in records:
                if record is None:
                    self.progress = Progress()
                else:
                    self.progress.add(record)
                if time.monotonic() > until:
                    return False
        return True
