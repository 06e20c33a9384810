"""A run that is being recorded: its records are counted as they are appended."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from pathlib import Path
from socket import gethostname
from typing import Any, Final

from roast_analyze.algorithms.progress import Progress
from roast_analyze.open.growing import GrowingTrace
from roast_analyze.report.live import ABANDONED_SECONDS, Silence, usual_seconds

#: Time between two tests of the lock: while it is tested, a recorder could not lock the file.
_LOCK_SECONDS: Final = 2.0


class Following:
    """The progress of a run so far."""

    def __init__(self, *paths: Path) -> None:
        self.progress = Progress()
        #: Number of records that were read.
        self.records = 0
        self._paths = paths
        self._lock_is_known_until = 0.0
        self._is_locked: bool | None = None
        self._trace = GrowingTrace(*paths)
        self._records: Iterator[dict[str, Any] | None] = iter(())

    @property
    def has_ended(self) -> bool:
        """Whether its trailer was read."""
        return self.progress.end_reason is not None

    def is_locked(self) -> bool | None:
        """Return whether a process has locked the last file, to write it; None if not known.

        Some network file systems have no locks.
        """
        if time.monotonic() >= self._lock_is_known_until:
            self._is_locked = _is_locked(self._paths[-1])
            self._lock_is_known_until = time.monotonic() + _LOCK_SECONDS
        return self._is_locked

    def silence(self, seconds: float) -> Silence:
        """Return what is known of the writing process, if nothing was written for some time.

        A lock of another machine is not seen on all file systems, so only the process of a
        trace of this machine is known to have gone.
        """
        usual = min(usual_seconds(self.progress), ABANDONED_SECONDS)
        if seconds <= usual or (is_locked := self.is_locked()):
            return Silence(seconds, has_writer=True)
        is_of_here = self.progress.hosts == {gethostname()}
        has_gone = is_locked is False and is_of_here and not self.has_ended
        return Silence(seconds, has_writer=False if has_gone else None)

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
                    self.records += 1
                    self.progress.add(record)
                if time.monotonic() > until:
                    return False
        return True


def _is_locked(path: Path) -> bool | None:
    try:
        if path.is_dir():
            path = max(file for file in path.iterdir() if file.is_file())
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ValueError):  # without locks; removed just now, or an empty folder
        return None
    return False
