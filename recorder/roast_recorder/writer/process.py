"""The writing process: decodes, redacts, compresses and writes what its client sends.

This work happens here because it would otherwise compete for the interpreter of the
scheduler or of the user's program. :class:`roast_recorder.writer.client.Writer` starts the
process; its module describes the protocol. When the client dies, the process fetches the
remaining batches from the scheduler (:mod:`roast_recorder.scheduler.recording`), closes the
trace and exits. With a store, it finally starts the process that adds the trace to it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any

from roast_recorder.writer.segments import Segments

#: Time between two checks whether the client's process is alive.
PARENT_CHECK_SECONDS = 1.0


def main(descriptor: int) -> None:
    """Serve the client at the other end of a connection, until it is closed."""
    # Signals of the terminal and the batch system are for the recording process. When that
    # ends, this process finishes the trace and ends, too.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    serve(Connection(descriptor))


def serve(connection: Connection) -> None:
    """Answer requests until ``finish`` or ``abandon``, or until the client is gone."""
    parent = os.getppid()
    request = _receive(connection, parent)
    if request is None:
        return
    operation, (order,) = request
    rescue, store = order.pop("rescue", None), order.pop("store", None)
    try:
        segments = Segments(**order)
    except Exception as error:  # noqa: BLE001 - raised by the client
        if not isinstance(error, (OSError, ValueError)):
            error = OSError(f"{type(error).__name__}: {error}")
        connection.send((error, None, []))
        return
    if store:
        atexit.register(_add_to_store, order["target"], store)
    while True:
        # If the client is gone, the next request is None.
        with contextlib.suppress(OSError):
            connection.send((None, segments.state, segments.warnings))
        if operation in ("finish", "abandon"):
            return
        segments.warnings.clear()
        request = _receive(connection, parent)
        if request is None:
            break
        operation, arguments = request
        getattr(segments, operation)(*arguments)
    if rescue is not None:
        from roast_recorder.scheduler.recording import fetch_rest

        if fetch_rest(segments, rescue):
            return
    segments.abandon()


def _add_to_store(target: str, store: str) -> None:
    """Start a process that adds the trace to a store, without waiting for it."""
    os.nice(10)
    subprocess.Popen(  # noqa: S603 - this interpreter and the analysis package
        [sys.executable, "-P", "-m", "roast_analyze", "store", "add", target, "--to", store],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )


def _receive(connection: Connection, parent: int) -> tuple[str, tuple[Any, ...]] | None:
    """Return the next request, or None if the client is gone."""
    try:
        while not connection.poll(PARENT_CHECK_SECONDS):
            # Forks of the client's process can keep its end of the connection open.
            if os.getppid() != parent:
                return None
        request: tuple[str, tuple[Any, ...]] = connection.recv()
    except (OSError, EOFError):
        return None
    return request
