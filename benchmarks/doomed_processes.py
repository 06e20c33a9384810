"""Run a scheduler, two workers and a client in separate processes that can be killed.

Each process ends with its ``with`` block; no other processes are affected.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

import transition_log

BESIDE = Path(__file__).parent
START_TIMEOUT_SECONDS = 90.0
#: A scheduler whose log does not grow for this time is idle.
QUIET_SECONDS = 0.4

#: File with the output of the processes, to find out why one of them ended.
OUTPUT = "output.txt"


class Cluster:
    """A scheduler that logs its transitions, and two workers."""

    def __init__(self, folder: Path, scheduler: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.scheduler = psutil.Process(scheduler.pid)
        self.scheduler_file = folder / "scheduler.json"
        self.log = folder / "transitions.log"

    @property
    def address(self) -> str:
        return json.loads(self.scheduler_file.read_text())["address"]

    def log_nbytes(self) -> int:
        """Wait until the scheduler is idle, and return the size of its log."""
        nbytes, since = -1, time.monotonic()
        until = since + START_TIMEOUT_SECONDS
        while time.monotonic() - since < QUIET_SECONDS:
            if time.monotonic() > until:
                raise TimeoutError("the scheduler does not become idle")
            now = self.log.stat().st_size
            if now != nbytes:
                nbytes, since = now, time.monotonic()
            time.sleep(0.02)
        return nbytes


@contextmanager
def cluster(folder: Path, *, traces: Path | None = None, threads: int = 1) -> Iterator[Cluster]:
    """Start a cluster.

    Parameters
    ----------
    folder : Path
        Folder of its files.
    traces : Path, optional
        Folder to which the scheduler itself records.
    threads : int
        Threads of each worker.
    """
    folder.mkdir(parents=True)
    environment = {transition_log.VARIABLE: str(folder / "transitions.log")}
    preloads = ["--preload", str(BESIDE / "transition_log.py")]
    if traces is not None:
        traces.mkdir(parents=True)
        environment["DASK_ROAST__RECORDER__DIRECTORY"] = str(traces)
        preloads += ["--preload", "roast_recorder.preload"]
    # All start at once, since imports take long; workers wait for the file.
    file = ["--scheduler-file", str(folder / "scheduler.json")]
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    with contextlib.ExitStack() as stack:
        arguments = ["scheduler", *file, *here, "--port", "0", *preloads]
        scheduler = stack.enter_context(_dask(folder, *arguments, **environment))
        for _ in range(2):
            arguments = ["worker", *file, *here, "--no-nanny", "--nthreads", str(threads)]
            arguments += ["--local-directory", str(folder), "--death-timeout", "60"]
            stack.enter_context(_dask(folder, *arguments))
        yield Cluster(folder, scheduler)


class RecordedClient:
    """Connection to a ``recorded_client.py``."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.process = psutil.Process(popen.pid)
        self._popen = popen
        self._received = b""
        self.receive(START_TIMEOUT_SECONDS)

    def send(self, command: str, **keywords: Any) -> None:
        """Send a command without waiting for its answer."""
        self._popen.stdin.write(json.dumps([command, keywords]).encode() + b"\n")
        self._popen.stdin.flush()

    def receive(self, timeout_seconds: float = 120.0) -> Any:
        """Return the next answer.

        Raises
        ------
        TimeoutError
            If there is none, or the client has gone.
        """
        until = time.monotonic() + timeout_seconds
        output = self._popen.stdout.fileno()
        while b"\n" not in self._received:
            left = max(until - time.monotonic(), 0)
            readable, _, _ = select.select([output], [], [], left)
            piece = os.read(output, 2**16) if readable else b""
            if not piece:
                raise TimeoutError("the client does not answer")
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    def ask(self, command: str, **keywords: Any) -> Any:
        """Send a command and return its answer."""
        self.send(command, **keywords)
        return self.receive()


@contextmanager
def recorded_client(on: Cluster) -> Iterator[RecordedClient]:
    """Start a client of a cluster whose workers have joined."""
    command = [sys.executable, str(BESIDE / "recorded_client.py"), str(on.scheduler_file)]
    with _started(on.folder, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as popen:
        yield RecordedClient(popen)


def writing_process(recorder: psutil.Process) -> psutil.Process:
    """Return the writing process of a client or scheduler."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        for child in recorder.children():
            with contextlib.suppress(psutil.Error):
                if any("roast_recorder.writer.process" in part for part in child.cmdline()):
                    return child
        time.sleep(0.02)
    raise TimeoutError(f"process {recorder.pid} has no writing process")


def wait_until_gone(process: psutil.Process, timeout_seconds: float) -> bool:
    """Wait until a process has ended; it need not be a child."""
    with contextlib.suppress(psutil.Error):
        process.wait(timeout_seconds)
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@contextmanager
def _dask(folder: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-m", "dask", *arguments]
    with _started(folder, command, env={**os.environ, **environment}) as process:
        yield process


@contextmanager
def _started(folder: Path, command: list[str], **options: Any) -> Iterator[subprocess.Popen]:
    """Run a process; finally kill it and its descendants."""
    with (folder / OUTPUT).open("ab") as output:
        process = subprocess.Popen(command, **{"stdout": output, "stderr": output, **options})
        started = psutil.Process(process.pid)
        try:
            yield process
        finally:
            descendants = []
            with contextlib.suppress(psutil.Error):
                descendants = started.children(recursive=True)
            process.kill()
            process.communicate()
            for descendant in descendants:
                # Writing processes end by themselves, unless they fail.
                if not wait_until_gone(descendant, 15):
                    descendant.kill()
