"""Ctrl-C while DuckDB computes.

Python handles a signal between two bytecodes, and DuckDB checks for it only between two steps
of a query, which can take hours. So a thread is notified of the signal at once, waits for an
orderly end, and then ends the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Exit code of a command that was ended by Ctrl-C, by convention of shells.
INTERRUPTED: Final = 130

#: Time for an orderly end.
GRACE_SECONDS: Final = 2.0


@contextlib.contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Exit with 130 if the block still runs after Ctrl-C and the grace period."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    reader, writer = os.pipe()
    # As `set_wakeup_fd` requires.
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    ended = threading.Event()

    def watch() -> None:
        # Python writes the number of each signal; closing the pipe ends the loop.
        while number := os.read(reader, 1):
            if number[0] == signal.SIGINT and not ended.wait(GRACE_SECONDS):
                os._exit(INTERRUPTED)

    watcher = threading.Thread(target=watch, name="roast-interrupt", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(writer)
        watcher.join()
        os.close(reader)
