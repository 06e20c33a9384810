"""The activity of the recording client's program: waiting for Dask, or own work.

The event loop of a synchronous client reads the stack of the program's main thread at short
intervals, like Dask's profiler. Consecutive samples of the same function become one record.
A client that runs in the main thread itself cannot be sampled.
"""

from __future__ import annotations

import asyncio
import re
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from roast_recorder.probes import ClientProbe

#: Time between two samples, and the longest record.
SAMPLE_SECONDS: Final = 0.1
RECORD_SECONDS: Final = 10.0

_STANDARD_LIBRARY: Final = sysconfig.get_path("stdlib")

#: Folders of installed packages, also of the user and on PYTHONPATH.
_PACKAGES: Final = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
_DASK: Final = frozenset({"dask", "distributed"})
_NOT_THE_USERS: Final = _DASK | {"roast_recorder"}

Fields = dict[str, Any]


class OnClient(ClientProbe):
    """Record the activity, on the scheduler's clock."""

    def _install(self) -> None:
        sampling = self.core.run(self._sample())
        # It then records the last activity, before the recording ends.
        self.core.tap.until_closed(sampling.cancel)

    async def _sample(self) -> None:
        with self.core.tap.guard("client_activity", 0):
            await sample_activity(self._append)

    def _append(self, fields: Fields) -> None:
        offset = self.core.clock_offset_seconds
        times = {name: fields[name] - offset for name in ("start_t", "stop_t")}
        self.core.record("client_activity", **{**fields, **times})


async def sample_activity(callback: Callable[[Fields], None]) -> None:
    """Call `callback` with fields of ``client_activity`` records until cancelled.

    Times are on the clock of this process.
    """
    main = threading.main_thread().ident
    if main is None or main == threading.get_ident():
        return
    record: Fields | None = None
    t, cpu_seconds = time.time(), _cpu_seconds(main)
    try:
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            frame = sys._current_frames().get(main)
            found = describe_activity(frame)
            del frame  # it would keep the program's objects
            before, t = t, time.time()
            cpu_before, cpu_seconds = cpu_seconds, _cpu_seconds(main)
            is_same = (
                record is not None and found is not None and found.items() <= record.items()
            )
            began = before
            if record and not is_same:
                # A function that holds the GIL delays the samples, also the one after its end.
                began = record["stop_t"] = max(before, t - SAMPLE_SECONDS)
            if record and (not is_same or t - record["start_t"] > RECORD_SECONDS):
                callback(record)
                record = None
            if found:
                record = record or {
                    **found,
                    "start_t": began,
                    "measured": {"cpu_seconds": 0.0},
                }
                record["stop_t"] = t
                record["measured"]["cpu_seconds"] += cpu_seconds - cpu_before
    finally:
        if record:
            callback(record)


def describe_activity(frame: FrameType | None) -> Fields | None:
    """Return the activity and the user's innermost function; None if no such function runs."""
    innermost, calls_dask = frame, False
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        calls_dask = calls_dask or package in _DASK
        code = frame.f_code
        if not (
            package in _NOT_THE_USERS
            or code.co_filename.startswith((_STANDARD_LIBRARY, "<frozen "))
            or _PACKAGES.search(code.co_filename)
        ):
            waits = innermost is not None and innermost.f_globals.get("__name__") == "threading"
            activity = ("wait" if waits else "dask") if calls_dask else "own"
            filename = Path(code.co_filename).name
            return {"activity": activity, "name": code.co_name, "filename": filename}
        frame = frame.f_back
    return None


def _cpu_seconds(thread: int) -> float:
    """Return the CPU time of a thread; of the whole process where the system has no other."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time()
    return time.clock_gettime(time.pthread_getcpuclockid(thread))
