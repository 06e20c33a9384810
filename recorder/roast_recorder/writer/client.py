"""The other end of the writing process: hand over a batch, hear that it is written.

A process that is killed is replaced by another, which goes on from the last answer of the
one before; what was asked of that one is asked again. So nothing is lost, and nothing is
there twice.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import roast_recorder
import roast_schemas
from roast_recorder.scheduler import wire_format
from roast_recorder.writer import pipes

logger = logging.getLogger("roast_recorder")

#: Writing processes in a row that may die over one question.
MAX_TRIES = 3

#: How long the end of this process waits for the writing process to finish the file.
EXIT_TIMEOUT_SECONDS = 10.0
RELEASE_TIMEOUT_SECONDS = 1.0

_PROGRAM = (
    "import sys; sys.path += {paths!r}; from roast_recorder.writer.process import main; main()"
)

_REFUSALS = {"ValueError": ValueError, "ImportError": ImportError}


class Writer:
    """Writes a trace in a process of its own.

    Parameters
    ----------
    target : str
        A file or a folder, as :class:`roast_recorder.writer.segments.Segments` takes it.
    header : dict
    settings : dict
        As :class:`roast_recorder.settings.Settings` gives them.
    rescue : dict, optional
        As :func:`roast_recorder.scheduler.rescue.rescue_order` gives it.
    retain_root : str, optional

    Attributes
    ----------
    records_by_kind, dropped_by_kind : Counter
        Records in the trace, and those that never reached it.
    nbytes : int
        Size of the trace.
    """

    def __init__(
        self,
        target: str,
        header: dict[str, Any],
        settings: dict[str, Any],
        *,
        rescue: dict[str, Any] | None = None,
        retain_root: str | None = None,
    ) -> None:
        self.target = target
        self.records_by_kind: Counter[str] = Counter()
        self.dropped_by_kind: Counter[str] = Counter()
        self.nbytes = 0
        self._order = {
            "target": target,
            "header": header,
            "settings": settings,
            "retain_root": retain_root,
        }
        self._rescue = rescue
        self._progress: bytes | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="roast-writer")
        self._given_up = False
        self._ended = False
        self._written = 0

    # -- what the recorder asks ----------------------------------------------------------

    async def open(self) -> None:
        """Start the process and the trace.

        Raises
        ------
        ValueError, OSError, ImportError
            If there can be no trace at the target.
        """
        await self._in_thread(self._start)

    async def write_batches(self, batches: list[tuple[int, bytes]]) -> None:
        """Write encoded batches of rows; they are in the trace on return."""
        await self._in_thread(self._ask, "batches", batches)

    async def write(self, records: list[dict[str, Any]]) -> None:
        """Write records that are none of the scheduler's."""
        await self._in_thread(self._ask, "records", records)

    async def finish(self, t: float, reason: str) -> None:
        """End the trace in order, and the process."""
        await self._in_thread(self._end, "finish", t, reason)

    async def abandon(self) -> None:
        """End the trace without saying that it is whole, and the process."""
        await self._in_thread(self._end, "abandon")

    def do_now(self, operation: str, *arguments: Any) -> None:
        """Do ``batches``, ``finish`` or ``abandon`` without an event loop."""
        method = {"batches": self._ask, "finish": self._end, "abandon": self._end}[operation]
        self._do_in_thread(method, operation, *arguments)

    def release(self) -> None:
        """Let the process end the trace by itself, with what it can still fetch."""
        # The loop that is ending must not wait for a disk that hangs.
        self._do_in_thread(self._release, timeout_seconds=RELEASE_TIMEOUT_SECONDS)
        self._thread.shutdown(wait=False)

    # -- in the thread -------------------------------------------------------------------

    def _do_in_thread(
        self, function: Any, *arguments: Any, timeout_seconds: float | None = None
    ) -> None:
        try:
            running = self._thread.submit(function, *arguments)
        except RuntimeError:
            function(*arguments)  # the interpreter ends, and starts no more work
        else:
            try:
                running.result(timeout_seconds or EXIT_TIMEOUT_SECONDS)
            except TimeoutError:
                # A disk that hangs must not hang the scheduler's or the user's last step.
                logger.warning("roast: %s is not written to its end in time", self.target)
                self._ended = self._given_up = True
                if self._process is not None:
                    self._process.kill()

    async def _in_thread(self, function: Any, *arguments: Any) -> None:
        loop = asyncio.get_running_loop()
        try:
            running = loop.run_in_executor(self._thread, function, *arguments)
        except RuntimeError:
            function(*arguments)  # the interpreter ends, and starts no more work
        else:
            # Whoever waits may be cancelled; what has begun is not.
            await asyncio.shield(running)

    def _start(self) -> None:
        self._process = process = _spawn()
        order = {**self._order, "progress": self._progress}
        answer = self._exchange(process, ("begin", order, self._rescue))
        if answer is None:
            raise OSError(f"the writing process ended at once (exit code {process.wait()})")
        if answer[0] == "refused":
            _, kind, arguments = answer
            process.wait()
            self._process = None
            raise _REFUSALS.get(kind, OSError)(*arguments)
        self._hear(answer)

    def _ask(self, *question: Any) -> None:
        if self._ended:
            self._count_as_dropped(question)
            return
        for _ in range(MAX_TRIES):
            answer = self._process and self._exchange(self._process, question)
            if answer:
                self._hear(answer)
                if question[0] == "batches" and question[1]:
                    self._written = question[1][-1][0]
                return
            if self._given_up:
                break
            self._restart()
        self._give_up(question)

    def _end(self, *question: Any) -> None:
        self._ask(*question)
        self._ended = True
        process, self._process = self._process, None
        if process is not None:
            _close_pipes(process)
            _wait(process)
        self._thread.shutdown(wait=False)

    def _release(self) -> None:
        self._ended = True
        process, self._process = self._process, None
        if process is not None:
            _close_pipes(process)
            atexit.register(_wait, process)

    def _exchange(
        self, process: subprocess.Popen[bytes], question: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        to_it, from_it = process.stdin, process.stdout
        if to_it is None or from_it is None:
            raise TypeError("the process has no pipes")
        try:
            pipes.send(to_it, question)
            return pipes.receive(from_it)
        except OSError:
            return None

    def _hear(self, answer: tuple[Any, ...]) -> None:
        # Only the next process looks into its progress.
        _, told, self._progress = answer
        self.records_by_kind = Counter(told["records_by_kind"])
        self.dropped_by_kind = Counter(told["dropped_by_kind"])
        self.nbytes = told["nbytes"]
        for warning in told["warnings"]:
            logger.warning("roast: %s", warning)

    def _restart(self) -> None:
        process = self._process
        if process is not None:
            _close_pipes(process)
            code = _end_of(process)
            logger.warning(
                "roast: the process that writes %s has died (exit code %s); another goes on",
                self.target,
                code,
            )
        try:
            self._start()
        except (OSError, ValueError, ImportError) as error:
            logger.warning("roast: %s cannot be gone on with: %s", self.target, error)
            self._process = None

    def _give_up(self, question: tuple[Any, ...]) -> None:
        if not self._given_up:
            self._given_up = True
            logger.warning(
                "roast: %s ends here: it could not be written on; the run goes on", self.target
            )
            self._leave_as_it_is()
        self._count_as_dropped(question)

    def _count_as_dropped(self, question: tuple[Any, ...]) -> None:
        if question[0] == "records":
            self.dropped_by_kind.update(record["kind"] for record in question[1])
        elif question[0] == "batches":
            for number, content in question[1]:
                # What is written was handed over by another way as well, at the end.
                if number > self._written:
                    self.dropped_by_kind.update(_count_records(content))

    def _leave_as_it_is(self) -> None:
        """Have the process that was started last close the trace."""
        process, self._process = self._process, None
        if process is not None:
            self._exchange(process, ("abandon",))
            _close_pipes(process)
            _wait(process)


def _count_records(content: bytes) -> Counter[str]:
    try:
        return wire_format.count_records(content)
    except Exception:  # noqa: BLE001 - it may be what the writing processes died of
        return Counter(batch=1)


def _end_of(process: subprocess.Popen[bytes]) -> int:
    """Give the exit code of a process that does not answer, and see that it has one."""
    try:
        return process.wait(1)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _spawn() -> subprocess.Popen[bytes]:
    # The package may have been found on a path that another interpreter does not have.
    paths = [
        str(Path(package.__file__ or "").parents[1])
        for package in (roast_recorder, roast_schemas)
    ]
    return subprocess.Popen(  # noqa: S603 - our own interpreter and program
        # -P: no module of the working folder's takes the place of Python's own.
        [sys.executable, "-P", "-c", _PROGRAM.format(paths=paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A session of its own: neither Ctrl-C nor a closed terminal ends it.
        start_new_session=True,
    )


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        try:
            if stream is not None:
                stream.close()
        except OSError:
            pass


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(EXIT_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        logger.warning("roast: the writing process %d is still at work", process.pid)
