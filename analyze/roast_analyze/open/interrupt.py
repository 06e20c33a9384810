"""Ctrl-C that works while DuckDB computes.

Python acts on Ctrl-C between two of its own steps, and DuckDB asks for it only between two
steps of a query, which can take hours. So whoever holds :func:`listening` also has a thread
that hears of the signal at once, waits a moment for an orderly end, and ends the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a shell expects of a command that Ctrl-C ended.
INTERRUPTED: Final = 130

#: How long an orderly end may take.
GRACE_SECONDS: Final = 2.0


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """End the process with 130 if it outlives Ctrl-C by the grace period."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are not ours to handle
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(reader, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _watch(reader: int, ended: threading.Event) -> None:
    # Python's own handler writes the number of each signal; the end of the file is ours.
    while number := os.read(reader, 1):
        if number[0] == signal.SIGINT and not ended.wait(GRACE_SECONDS):
            os._exit(INTERRUPTED)
