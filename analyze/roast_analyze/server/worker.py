"""Processes that read traces and write reports, while the server answers requests.

A :class:`Worker` does one job at a time in a process of its own, which is started when it is
needed. If the process dies, for example because a trace needs more memory than there is, the
job has failed, and the next one gets a new process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roast_analyze.errors import TraceError, first_paragraph
from roast_analyze.safe_text import one_line

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from roast_analyze.server.facts import Facts
    from roast_analyze.server.kept import Kept
    from roast_analyze.server.sources import Source

#: A process without a job ends after this time, so that its memory is free.
IDLE_SECONDS: Final = 600.0

#: Length limit of an error.
_ERROR: Final = 1_000


@dataclass(frozen=True)
class Task:
    """A run to read: its facts, and its report with this title, are kept."""

    source: Source
    kept: Kept
    #: None if no report is wanted.
    title: str | None = None


class _Result(NamedTuple):
    """The facts of a run, or the reason for which they could not be read."""

    facts: Facts | None
    error: str = ""


@dataclass
class Job:
    """A task of a worker, whose progress is written by the worker."""

    task: Task
    #: Called with the facts, or with the reason for which there are none.
    done: Callable[[Facts | None, str], None]
    stage: str = "waiting for other reports"
    #: Finished share of the stage, from 0 to 1; None if it is not known.
    share: float | None = None
    error: str = ""
    is_done: bool = False

    def finish(self, facts: Facts | None, error: str = "") -> None:
        """End the job."""
        self.error = error
        self.done(facts, error)
        self.is_done = True


class Worker:
    """A process that does jobs in order, and the thread that sends them to it.

    Parameters
    ----------
    niceness : int
        Priority of the process, as for the command ``nice``.
    is_eager : bool
        Whether to start the process at once, so that the first job need not wait for it.
    """

    def __init__(self, niceness: int = 0, *, is_eager: bool = False) -> None:
        self._niceness = niceness
        self._is_eager = is_eager
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._is_ended = False
        #: Held while the process is exchanged.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="roast-worker", daemon=True)
        self._thread.start()

    def add(self, job: Job) -> None:
        """Add a job."""
        self._jobs.put(job)

    def close(self) -> None:
        """End the process, also in the middle of a job."""
        with self._lock:
            self._is_ended = True
            if self._process is not None:
                self._process.kill()
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        if self._is_eager:
            with contextlib.suppress(EOFError, OSError):  # the first job tries again
                self._started()
        while not self._is_ended:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._end_process()
                continue
            if job is not None and not self._is_ended:
                job.finish(*self._result(job))
        self._end_process()

    def _result(self, job: Job) -> _Result:
        """Return the facts of a run, or why there are none."""
        job.stage = "starting"
        try:
            connection = self._started()
            connection.send(job.task)
            while True:
                message = connection.recv()
                if isinstance(message, _Result):
                    return message
                job.stage, job.share = message
        except (EOFError, OSError):
            code = self._end_process()
            if self._is_ended:
                return _Result(None, "the server was stopped")
            reason = signal.strsignal(-code) if code and code < 0 else f"exit code {code}"
            return _Result(None, f"the process that read the trace ended: {reason}")

    def _started(self) -> Connection:
        """Return the connection to the process, which is started if necessary."""
        if self._connection is not None and self._process is not None:
            if self._process.is_alive():
                return self._connection
            self._end_process()
        # Not forked, because other threads of the server may hold locks.
        context = multiprocessing.get_context("spawn")
        with self._lock:
            if self._is_ended:
                raise EOFError
            self._connection, theirs = context.Pipe()
            self._process = context.Process(
                target=_serve, args=(theirs, self._niceness), daemon=True
            )
            self._process.start()
        theirs.close()
        return self._connection

    def _end_process(self) -> int | None:
        """End the process, and return its exit code."""
        with self._lock:
            process, connection = self._process, self._connection
            self._process = self._connection = None
        if process is None or connection is None:
            return None
        connection.close()
        process.kill()
        process.join()
        code = process.exitcode
        process.close()
        return code


def _serve(connection: Connection, niceness: int) -> None:
    """Do tasks until the server ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends this process
    os.nice(niceness)
    import roast_analyze.report.data
    import roast_analyze.report.page
    import roast_analyze.server.facts  # noqa: F401 - loaded while there is no job

    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            task = connection.recv()
            connection.send(_attempt(task, connection))


def _attempt(task: Task, connection: Connection) -> _Result:
    """Do a task."""
    import duckdb

    def send(stage: str, share: float | None) -> None:
        connection.send((stage, share))

    @contextlib.contextmanager
    def progress(stage: str) -> Iterator[Callable[[str, float], None]]:
        send(stage, None)
        yield send

    try:
        return _Result(_read(task, progress))
    except (TraceError, OSError, duckdb.Error) as error:
        return _Result(None, one_line(first_paragraph(error), _ERROR) or type(error).__name__)


def _read(task: Task, progress: Callable[[str], Any]) -> Facts:
    """Keep the facts of a run, and write its report if it is wanted."""
    from roast_analyze.report import write_report
    from roast_analyze.server.facts import query

    with task.source.open(progress) as trace:
        facts = task.kept.read_facts()
        if facts is None:
            facts = query(trace, task.source.runs)
            task.kept.write_facts(facts)
        if task.title is not None:
            with progress("writing the report"):
                write_report(trace, task.kept.report, title=task.title, home="./")
    return facts
