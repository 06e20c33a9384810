"""The writing process: batches of rows in, a trace out.

Decoding, expanding, redacting, compressing and writing happen here, where they compete for
the interpreter of nobody: neither the scheduler's nor the user's. The process is started
by a :class:`roast_recorder.writer.client.Writer`, which sends one question at a time and waits for
the answer; when that has gone without a word, what is still to be had is fetched from the
scheduler (:mod:`roast_recorder.scheduler.rescue`) and the trace is closed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from roast_recorder.scheduler import wire_format
from roast_recorder.writer import pipes
from roast_recorder.writer.segments import Segments
from roast_schemas.redact import Redactor

#: How often to look whether the process that asks is still there.
PARENT_CHECK_SECONDS = 1.0

Batch = tuple[int, bytes]


class Writing:
    """A trace being written.

    Parameters
    ----------
    order : dict
        ``target``, ``header``, ``settings`` and ``retain_root``, as
        :class:`roast_recorder.writer.client.Writer` takes them, and ``progress``: the last answer
        of a process that was killed, or None.

    Raises
    ------
    ValueError, OSError, ImportError
        If there can be no trace at the target.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        settings = order["settings"]
        progress: dict[str, Any] = {"received": 0, "replaced": 0, "resume": None}
        if order["progress"] is not None:
            progress = pickle.loads(order["progress"])  # noqa: S301 - see `answer`
        self._warnings: list[str] = []
        self._redactor: Redactor | None = None
        if settings["redact"]:
            self._redactor = Redactor(settings["redact_patterns"])
        self.received: int = progress["received"]
        self.segments = Segments(
            order["target"],
            self._redacted(order["header"]),
            limit_bytes=settings["segment_limit_bytes"],
            limit_seconds=settings["segment_limit_seconds"],
            retain_bytes=settings["retain_limit_bytes"],
            retain_root=order["retain_root"],
            level=settings["compression_level"],
            upload_url=settings["upload_url"],
            resume=progress["resume"],
            warn=self._warnings.append,
        )
        if self._redactor and progress["resume"]:
            # The header's were counted when it was written.
            self._redactor.replaced = progress["replaced"]

    @property
    def replaced(self) -> int:
        """Values that were redacted so far."""
        return self._redactor.replaced if self._redactor else 0

    def write_batches(self, batches: Iterable[Batch]) -> None:
        """Write the batches that are not in the trace yet."""
        for number, content in batches:
            if number > self.received:
                self.write(wire_format.records(content))
                self.received = number

    def write(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records; what the recorder lost on its way is counted as lost."""
        kept = []
        for record in records:
            if record["kind"] == "loss":
                self._lose(record)
            else:
                kept.append(self._redacted(record))
        self.segments.write(kept)

    def finish(self, t: float, reason: str) -> None:
        """End the trace in order."""
        self.segments.finish(t, reason, redacted_values=self.replaced)

    def abandon(self) -> None:
        """End the trace without saying that it is whole."""
        self.segments.abandon()

    def answer(self) -> tuple[dict[str, Any], bytes]:
        """Say how things are.

        Returns
        -------
        dict
            What the other end counts and says.
        bytes
            What it gives back to the next process if this one is killed.
        """
        segments = self.segments
        told = {
            "records_by_kind": dict(segments.records_by_kind),
            "dropped_by_kind": dict(segments.dropped_by_kind),
            "nbytes": segments.nbytes,
            "warnings": self._warnings[:],
        }
        self._warnings.clear()
        progress = {
            "resume": segments.state,
            "received": self.received,
            "replaced": self.replaced,
        }
        return told, pickle.dumps(progress)

    def _redacted(self, record: dict[str, Any]) -> dict[str, Any]:
        return self._redactor.record(record) if self._redactor else record

    def _lose(self, record: dict[str, Any]) -> None:
        self.segments.lose(
            record["reason"],
            record["record_kind"],
            record["records"],
            record["start_t"],
            record["stop_t"],
        )


def main() -> None:
    """Answer questions on standard input until there are no more."""
    # The terminal's and the batch system's signals are for the process that records: when
    # it ends, so does this one, with everything written.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    questions = os.fdopen(0, "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    # Nothing that some library prints may get into the answers.
    os.dup2(2, 1)
    serve(_Patient(questions), answers)


def serve(questions: Any, answers: BinaryIO) -> None:
    """Answer questions until ``finish`` or ``abandon``, or until nobody asks any more.

    Parameters
    ----------
    questions, answers : binary file
    """
    begun = pipes.receive(questions)
    if begun is None:
        return
    _, order, rescue = begun
    try:
        writing = Writing(order)
    except Exception as error:  # noqa: BLE001 - the other end raises it
        pipes.send(answers, ("refused", *_told(error)))
        return
    actions: dict[str, Callable[..., None]] = {
        "batches": writing.write_batches,
        "records": writing.write,
        "finish": writing.finish,
        "abandon": writing.abandon,
    }
    operation = ""
    while True:
        # If nobody hears the answer, the next look at the questions finds that.
        with contextlib.suppress(OSError):
            pipes.send(answers, ("done", *writing.answer()))
        if operation in ("finish", "abandon"):
            return
        question = pipes.receive(questions)
        if question is None:
            _end_alone(writing, rescue)
            return
        operation, *arguments = question
        actions[operation](*arguments)


def _told(error: Exception) -> tuple[str, tuple[Any, ...]]:
    """Take an exception apart, so that the other end can raise it."""
    if isinstance(error, OSError) and error.errno is not None:
        return "OSError", (error.errno, error.strerror, error.filename and str(error.filename))
    kinds = (kind for kind in (ValueError, ImportError) if isinstance(error, kind))
    return next(kinds, OSError).__name__, (str(error),)


def _end_alone(writing: Writing, rescue: dict[str, Any] | None) -> None:
    """Close the trace of a recorder that has gone without a word."""
    fetched = False
    if rescue is not None:
        from roast_recorder.scheduler.rescue import fetch_the_rest

        fetched = fetch_the_rest(writing, rescue)
    if not fetched:
        writing.abandon()


class _Patient:
    """Standard input, read until it ends or its writer's process has gone.

    Other processes may hold the pipe's other end open: whatever the user's program forked.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._parent = os.getppid()

    def read(self, nbytes: int) -> bytes:
        """Read so many bytes, or fewer if there will be no more."""
        content = bytearray()
        while len(content) < nbytes:
            readable, _, _ = select.select([self._file], [], [], PARENT_CHECK_SECONDS)
            if readable:
                piece = self._file.read(min(nbytes - len(content), 2**20))
                if not piece:
                    break
                content += piece
            elif os.getppid() != self._parent:
                break
        return bytes(content)
