"""A scheduler, two workers and a client, each a process of its own that can be killed.

Nothing here outlives its ``with`` block, and only what was started in it is ended.
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
QUIET_SECONDS = 0.4

#: Why a process ended may be the question when something did not hold.
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
        """Wait until the scheduler is at rest, and give the size of its log."""
        nbytes, since = -1, time.monotonic()
        until = since + START_TIMEOUT_SECONDS
        while time.monotonic() - since < QUIET_SECONDS:
            if time.monotonic() > until:
                raise TimeoutError("the scheduler does not come to rest")
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
        For its files.
    traces : Path, optional
        Have the scheduler itself record, to this folder.
    threads : int
        Of each worker.
    """
    folder.mkdir(parents=True)
    environment = {transition_log.VARIABLE: str(folder / "transitions.log")}
    preloads = ["--preload", str(BESIDE / "transition_log.py")]
    if traces is not None:
        traces.mkdir(parents=True)
        environment["DASK_ROAST__RECORDER__DIRECTORY"] = str(traces)
        preloads += ["--preload", "roast_recorder.preload"]
    # What is started together is imported together; workers wait for the file.
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
    """The campaign's end of ``recorded_client.py``."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.process = psutil.Process(popen.pid)
        self._popen = popen
        self._heard = b""
        self.hear(START_TIMEOUT_SECONDS)

    def tell(self, command: str, **keywords: Any) -> None:
        """Give a command, and do not wait for its answer."""
        self._popen.stdin.write(json.dumps([command, keywords]).encode() + b"\n")
        self._popen.stdin.flush()

    def hear(self, timeout_seconds: float = 120.0) -> Any:
        """Give the next answer.

        Raises
        ------
        TimeoutError
            If there is none, or the client has gone.
        """
        until = time.monotonic() + timeout_seconds
        output = self._popen.stdout.fileno()
        while b"\n" not in self._heard:
            left = max(until - time.monotonic(), 0)
            readable, _, _ = select.select([output], [], [], left)
            piece = os.read(output, 2**16) if readable else b""
            if not piece:
                raise TimeoutError("the client does not answer")
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def ask(self, command: str, **keywords: Any) -> Any:
        """Give a command and wait for its answer."""
        self.tell(command, **keywords)
        return self.hear()


@contextmanager
def recorded_client(on: Cluster) -> Iterator[RecordedClient]:
    """Start a client of a cluster whose workers have come."""
    command = [sys.executable, str(BESIDE / "recorded_client.py"), str(on.scheduler_file)]
    with _started(on.folder, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as popen:
        yield RecordedClient(popen)


def writing_process(recorder: psutil.Process) -> psutil.Process:
    """Find the process that writes for a client, or for a scheduler."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        for child in recorder.children():
            with contextlib.suppress(psutil.Error):
                if any("roast_recorder.writer.process" in part for part in child.cmdline()):
                    return child
        time.sleep(0.02)
    raise TimeoutError(f"process {recorder.pid} has no writing process")


def wait_until_gone(process: psutil.Process, timeout_seconds: float) -> bool:
    """Wait for a process, which need not be a child."""
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
    """Run a process, and at the end kill it and what it has started."""
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
                # A writing process ends by itself; one that does not is seen to here.
                if not wait_until_gone(descendant, 15):
                    descendant.kill()
