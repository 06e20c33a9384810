"""The writing process: decodes, redacts, compresses and writes what its client sends.

This work happens here because it would otherwise compete for the interpreter of the
scheduler or of the user's program. :class:`roast_recorder.writer.client.Writer` starts the
process; its module describes the protocol. When the client dies, the process fetches the
remaining batches from the scheduler (:mod:`roast_recorder.scheduler.recording`), closes the
trace and exits.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Any

from roast_recorder.scheduler import wire_format
from roast_recorder.writer.segments import Segments

#: Time between two checks whether the client's process is alive.
PARENT_CHECK_SECONDS = 1.0


class BatchWriter:
    """Writes batches of rows and records to a trace. Its methods are the operations.

    Parameters
    ----------
    target, header, settings, retain_root
        As in :class:`~roast_recorder.writer.segments.Segments`.
    resume : bytes or None
        Last :meth:`answer` of a process that was killed.

    Attributes
    ----------
    received : int
        Number of the last batch in the trace.

    Raises
    ------
    ValueError, OSError
        If no trace can be written to the target.
    """

    def __init__(
        self,
        target: str,
        header: dict[str, Any],
        settings: dict[str, Any],
        retain_root: str | None = None,
        resume: bytes | None = None,
    ) -> None:
        self.received, state = 0, None
        if resume is not None:
            self.received, state = pickle.loads(resume)  # noqa: S301 - made by `answer`
        self._warnings: list[str] = []
        self._segments = Segments(
            target,
            header,
            settings,
            retain_root=retain_root,
            resume=state,
            warn=self._warnings.append,
        )
        self.write = self._segments.write
        self.finish = self._segments.finish
        self.abandon = self._segments.abandon

    def write_batches(self, batches: Iterable[tuple[int, bytes]]) -> None:
        """Write the batches that are not in the trace yet."""
        for number, batch in batches:
            if number > self.received:
                self.write(wire_format.records(batch))
                self.received = number

    def answer(self) -> tuple[None, dict[str, Any], bytes]:
        """Return the answer to a request: no error, the counts, and the state to resume."""
        status = {
            "records_by_kind": self._segments.records_by_kind,
            "dropped_by_kind": self._segments.dropped_by_kind,
            "nbytes": self._segments.nbytes,
            "warnings": self._warnings[:],
        }
        self._warnings.clear()
        return None, status, pickle.dumps((self.received, self._segments.state))


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
    _, (order,) = request
    rescue = order.pop("rescue", None)
    try:
        writer = BatchWriter(**order)
    except Exception as error:  # noqa: BLE001 - raised by the client
        if not isinstance(error, (OSError, ValueError)):
            error = OSError(f"{type(error).__name__}: {error}")
        connection.send((error, None, None))
        return
    operation = "open"
    while True:
        # If the client is gone, the next request is None.
        with contextlib.suppress(OSError):
            connection.send(writer.answer())
        if operation in ("finish", "abandon"):
            return
        request = _receive(connection, parent)
        if request is None:
            break
        operation, arguments = request
        getattr(writer, operation)(*arguments)
    if rescue is not None:
        from roast_recorder.scheduler.recording import fetch_rest

        if fetch_rest(writer, rescue):
            return
    writer.abandon()


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
