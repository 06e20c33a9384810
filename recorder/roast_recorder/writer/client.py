"""The client of the writing process: sends it batches and returns once they are on disk.

The client sends one request at a time, ``(operation, arguments)``, over a
:class:`multiprocessing.connection.Connection`. The answer is ``(error, state, warnings)``:
an exception or None, the state from which another process can continue, and lines for the
user. A process that was killed is replaced: the new one starts from the state of the last
answer and gets the unanswered request again, so every batch is written exactly once.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import multiprocessing
import os
import re
import shlex
import subprocess
import sys
import threading
import uuid
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import roast_recorder
import roast_schemas
from roast_recorder.scheduler import wire_format
from roast_recorder.writer.segments import State
from roast_schemas.documentation import docs
from roast_schemas.urls import is_like_url

if TYPE_CHECKING:
    from collections import Counter
    from multiprocessing.connection import Connection

    from roast_recorder.settings import Settings

logger = logging.getLogger("roast_recorder")

#: Number of a batch, and its encoded rows.
Batch = tuple[int, bytes]

#: Writing processes that may die in a row over one request.
MAX_TRIES = 3

#: Problem of a trace to which nothing more is written, before its end.
ENDED = "the writing process died repeatedly"

#: Longest time to start the writing process, which can be slow from a shared disk. Dask waits
#: 30 s for a scheduler.
OPEN_TIMEOUT_SECONDS = 20.0
#: Longest time that the end of this process waits for the writing process.
EXIT_TIMEOUT_SECONDS = 10.0
#: Shorter, because a released process needs nothing more from this one.
RELEASE_TIMEOUT_SECONDS = 1.0
#: Time between two checks whether an answer is still awaited.
ENDED_CHECK_SECONDS = 0.5

_PROGRAM = (
    "import sys; sys.path += {paths!r}; "
    "from roast_recorder.writer.process import main; main({descriptor})"
)


def unnamed_trace() -> str:
    """Return the path of a new trace in the working directory."""
    identity = uuid.uuid4().hex[:6]  # several programs can start in one second
    return str(Path.cwd() / f"roast-{datetime.now():%Y%m%d-%H%M%S}-{identity}.jsonl.zst")


def checked_path(path: str | os.PathLike[str]) -> str:
    """Return the path of a trace; raise ValueError if it is empty or like a URL."""
    text = os.fspath(path)
    if not text:
        raise ValueError("the path is empty: name a file or a folder, or leave it out")
    if is_like_url(text) and (url := re.match(r"[A-Za-z0-9+.-]*:?/*", text)):
        # The rest can contain credentials.
        raise ValueError(
            f"a trace cannot be written to {url[0]}…: name a local file or folder, and upload "
            f"it afterwards {docs('how-to/remote')}"
        )
    return text


def how_to_open(path: str) -> str:
    """Return the command that opens a trace, as a part of a message."""
    return f"open the trace with: roast-analyze {shlex.quote(path)} --open"


class TraceOwner:
    """A recording that writes a trace.

    Attributes
    ----------
    trace_id : str
        Identity of the recording, which is in the trace's header.
    path : str
        The trace; if none is given, a new file in the working directory.
    settings : Settings
    """

    def __init__(self, path: str | os.PathLike[str] | None, settings: Settings) -> None:
        self.trace_id = uuid.uuid4().hex
        self._is_named = path is not None
        self.path = unnamed_trace() if path is None else checked_path(path)
        self.settings = settings
        self._writer: Writer | None = None
        #: Why the recording ended, unless the cluster ends first.
        self._end_reason = "recording was stopped"

    @property
    def records_by_kind(self) -> Counter[str]:
        """Number of records in the trace so far."""
        return self._started.state.records_by_kind

    @property
    def dropped_by_kind(self) -> Counter[str]:
        """Number of records that were dropped so far."""
        return self._started.state.dropped_by_kind

    @property
    def nbytes(self) -> int:
        """Size of the trace so far."""
        return self._started.state.nbytes

    def _report_end(self) -> None:
        """Print how to open the trace, unless the user has chosen its name."""
        if not self._is_named and not (self._writer and self._writer.state.removed):
            print(f"roast: recorded; {how_to_open(self.path)}", file=sys.stderr)

    @property
    def _started(self) -> Writer:
        if self._writer is None:
            raise RuntimeError(f"the recording of {self.path!r} has not been started")
        return self._writer

    def stop(self) -> Any:
        """End the recording."""
        raise NotImplementedError

    def __exit__(self, exception_type: type[BaseException] | None, *_exception: object) -> None:
        self._note_exception(exception_type)
        try:
            self.stop()
        except Exception:
            # Raising it would hide an exception of the user's block.
            logger.exception("roast: recording %s did not end cleanly", self.path)

    def _note_exception(
        self, exception_type: type[BaseException] | None, origin: str = "the recorded block"
    ) -> None:
        if exception_type is not None:
            self._end_reason = f"{origin} raised {exception_type.__name__}"


class Writer:
    """Writes a trace in a separate process.

    The parameters are those of :class:`roast_recorder.writer.segments.Segments`; `rescue`, of
    :func:`roast_recorder.scheduler.recording.rescue_order`: how the process fetches the
    remaining batches if this process dies; and `store`, to which it adds the trace at its end.
    """

    def __init__(
        self, target: str, header: dict[str, Any], settings: dict[str, Any], **order: Any
    ) -> None:
        self.target = target
        self._order = {"target": target, "header": header, "settings": settings, **order}
        #: State of the trace at the last answer, and what was dropped since.
        self.state = State()
        #: When nothing was left to be written for the last time, on the monotonic clock.
        self.written_at = monotonic()
        # When the request that has no answer yet was made.
        self._asked_at: float | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        # Requests wait for a disk: they are made in a thread, in the order of the calls.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="roast-writer")
        # At interpreter exit the thread takes no more work, and may still make a request.
        self._requesting = threading.Lock()
        self._ended = False

    def log_end(self, ending: str) -> None:
        """Log what the trace contains and how it ended; `ending` is empty if not cleanly."""
        state, dropped = self.state, self.state.dropped_by_kind.total()
        if state.removed:
            logger.warning(
                "roast: %s is missing: it was removed or replaced while it was recorded; "
                "%d records were dropped",
                self.target,
                dropped,
            )
            return
        if not state.closed:
            ending = ""  # it is not in the trace
        logger.log(
            logging.INFO if ending and not dropped else logging.WARNING,
            "roast: %s has %d records in %d bytes; %d records were dropped; %s",
            self.target,
            state.records_by_kind.total(),
            state.nbytes,
            dropped,
            ending or "the recording did not end cleanly",
        )

    async def open(self) -> None:
        """Start the process and the trace, or raise its ValueError or OSError."""
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_SECONDS):
                await self._in_thread(self._start)
        except TimeoutError:
            self._give_up()
            self._submit(self._end, "abandon")
            raise OSError(
                f"{self.target} could not be opened within {OPEN_TIMEOUT_SECONDS:g} s: "
                "check its disk"
            ) from None

    async def begin(self) -> None:
        """Write the header before the first record."""
        await self._in_thread(self._request, "begin")

    async def write_batches(self, batches: list[Batch]) -> None:
        """Write encoded batches of rows; they are in the trace on return."""
        await self._in_thread(self._request, "write_batches", batches)

    def note_idle(self) -> None:
        """Note that no batch is waiting to be written."""
        if not self.problem:
            self.written_at = monotonic()

    @property
    def silent_seconds(self) -> float:
        """Time since a request was made that has no answer yet."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else monotonic() - asked_at

    @property
    def problem(self) -> str:
        """Why the last records are not in the trace; empty if they are."""
        return ENDED if self._ended else next((why for why, _ in self.state.losses), "")

    async def write(self, records: list[dict[str, Any]]) -> None:
        """Write records that this process made."""
        await self._in_thread(self._request, "write", records)

    async def finish(self, t: float, reason: str) -> None:
        """End the trace in order, and the process."""
        await self._in_thread(self._end, "finish", t, reason)

    async def abandon(self) -> None:
        """End the trace without a trailer, and the process."""
        await self._in_thread(self._end, "abandon")

    def finish_now(self, batches: list[Batch], t: float, reason: str) -> None:
        """Write the last batches and end the trace, without an event loop."""

        def finish() -> None:
            self._request("write_batches", batches)
            self._end("finish", t, reason)

        self._in_thread_now(finish, EXIT_TIMEOUT_SECONDS)

    def release(self) -> None:
        """Leave the end of the trace to the process, which fetches the remaining records."""

        def release() -> None:
            if process := self._disconnect():
                atexit.register(_wait, process)

        # The event loop is ending and must not wait for a hanging disk.
        self._in_thread_now(release, RELEASE_TIMEOUT_SECONDS)
        self._thread.shutdown(wait=False)

    async def _in_thread(self, function: Any, *arguments: Any) -> None:
        # The caller may be cancelled; a request that was sent gets its answer.
        await asyncio.shield(asyncio.wrap_future(self._submit(function, *arguments)))

    def _in_thread_now(self, function: Any, timeout_seconds: float) -> None:
        # The thread may still be waiting for the answer to an earlier request.
        done = self._submit(function)
        try:
            done.result(timeout_seconds)
        except TimeoutError:
            # A hanging disk must not hang the end of the scheduler or the user's program.
            logger.warning("roast: %s could not be finished in time", self.target)
            self._give_up()
            # The thread counts the dropped records.
            wait({done}, timeout_seconds)

    def _give_up(self) -> None:
        """Make no more requests, and kill the process."""
        self._ended = True
        if self._process is not None:
            self._process.kill()

    def _submit(self, function: Any, *arguments: Any) -> Future[None]:
        try:
            return self._thread.submit(self._call, function, *arguments)
        except RuntimeError:  # the interpreter is exiting
            self._call(function, *arguments)
            done: Future[None] = Future()
            done.set_result(None)
            return done

    # -- in the thread -------------------------------------------------------------------

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._requesting:
            function(*arguments)

    def _start(self, resume: State | None = None) -> None:
        self._process, self._connection = _spawn()
        opened = self._exchange("open", {**self._order, "resume": resume})
        if not opened and not self._ended:
            code = _exit_code(self._process)
            raise OSError(f"the writing process ended at once (exit code {code})")

    def _request(self, operation: str, *arguments: Any) -> None:
        """Make a request, of several processes if necessary, or count it as dropped."""
        for _ in range(MAX_TRIES):
            if self._ended:
                break
            if self._exchange(operation, *arguments):
                return
            if not self._ended:
                self._restart()
        if not self._ended:
            logger.warning(
                "roast: %s ends here: it cannot be written; the run continues", self.target
            )
            # The process is idle since it cut the trace back to the last answer.
            self._give_up()
        if operation == "write":
            self.state.dropped_by_kind.update(record["kind"] for record in arguments[0])
        elif operation == "write_batches":
            for number, batch in arguments[0]:
                # At the end, unacknowledged batches are handed over a second time.
                if number > self.state.received:
                    try:
                        self.state.dropped_by_kind.update(wire_format.count_records(batch))
                    except Exception:  # noqa: BLE001 - the processes may have died of it
                        self.state.dropped_by_kind["batch"] += 1
                    self.state.received = number

    def _exchange(self, operation: str, *arguments: Any) -> bool:
        """Send a request and read the answer; return whether there was one."""
        if self._connection is None:
            return False
        self._asked_at = monotonic()
        try:
            self._connection.send((operation, arguments))
            while not self._connection.poll(ENDED_CHECK_SECONDS):
                # While it waits for a disk, even a killed process may not end.
                if self._ended:
                    return False
            error, state, warnings = self._connection.recv()
        except (OSError, EOFError):
            return False
        finally:
            self._asked_at = None
        if error is not None:
            if process := self._disconnect():
                process.wait()
            raise error
        self.state = state
        self.note_idle()
        for warning in warnings:
            logger.warning("roast: %s", warning)
        return True

    def _restart(self) -> None:
        if self._process is not None and self._connection is not None:
            self._connection.close()
            logger.warning(
                "roast: the process that writes %s died (exit code %s); another continues",
                self.target,
                _exit_code(self._process),
            )
        try:
            self._start(self.state)
        except (OSError, ValueError) as error:
            logger.warning("roast: %s cannot be continued: %s", self.target, error)
            self._process = self._connection = None

    def _end(self, operation: str, *arguments: Any) -> None:
        self._request(operation, *arguments)
        if process := self._disconnect():
            _wait(process)
        self._thread.shutdown(wait=False)

    def _disconnect(self) -> subprocess.Popen[bytes] | None:
        """Make no more requests; return the process."""
        self._ended = True
        if self._connection is not None:
            self._connection.close()
        process, self._process, self._connection = self._process, None, None
        return process


def _spawn() -> tuple[subprocess.Popen[bytes], Connection]:
    # The packages may come from paths that another interpreter does not search.
    paths = [
        str(Path(package.__path__[0]).parent) for package in (roast_recorder, roast_schemas)
    ]
    ours, theirs = multiprocessing.Pipe()
    descriptor = theirs.fileno()
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - this interpreter and this package
            # -P: modules in the working folder must not shadow the standard library.
            [sys.executable, "-P", "-c", _PROGRAM.format(paths=paths, descriptor=descriptor)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[descriptor],
            # In another session, neither Ctrl-C nor a closed terminal ends it.
            start_new_session=True,
        )
    return process, ours


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code of a process that does not answer; kill it if it is alive."""
    try:
        return process.wait(1)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(EXIT_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        logger.warning("roast: the writing process %d is still working", process.pid)
