"""Situations that people reported, their right answers, and the clusters to record them.

A program is a function of a :class:`Run`. Tasks measure the time in question with
:func:`clocked`, which appends to a file, so that times of killed workers remain.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Future, LocalCluster, wait

import roast_recorder

#: Environment variable with the path of the file to which tasks write their clocks.
CLOCK = "ROAST_REPORT_CLOCK"

Program = Callable[["Run"], None]


@dataclass(frozen=True)
class Answer:
    """What an expert would reply to the author of the program.

    Parameters
    ----------
    ids : tuple of str
        Findings that name the cause; empty if nothing is wrong.
    consequences : tuple of str
        Further findings that are true, but do not name the cause.
    entities : tuple of str
        Accepted entities: the whole one, or a part of a path or key; empty accepts any.
    words : tuple of str
        Regular expressions, each of which occurs in the sentence or the advice.
    wrong_words : tuple of str
        Regular expressions of wrong causes and harmful advice.
    """

    ids: tuple[str, ...]
    consequences: tuple[str, ...]
    entities: tuple[str, ...]
    words: tuple[str, ...]
    wrong_words: tuple[str, ...]


@dataclass(frozen=True)
class Situation:
    """A program, the thread in which somebody reported it, and its right answer."""

    program: Program
    link: str
    answer: Answer

    @property
    def name(self) -> str:
        """Return the name of the program."""
        return self.program.__name__

    @property
    def text(self) -> str:
        """Return the description of the program."""
        return " ".join((self.program.__doc__ or "").split())


SITUATIONS: dict[str, Situation] = {}


def reported(
    link: str, ids: str, entities: str = "", words: str = "", wrong: str = "", also: str = ""
) -> Callable[[Program], Program]:
    """Register a program with its answer, whose parts are separated by spaces.

    Spaces within regular expressions are dots. `also` are ids of consequences.
    """
    answer = Answer(*(tuple(text.split()) for text in (ids, also, entities, words, wrong)))

    def register(program: Program) -> Program:
        SITUATIONS[program.__name__] = Situation(program, link, answer)
        return program

    return register


@contextmanager
def clocked() -> Iterator[None]:
    """Append the duration of a block to the clock of the run."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        with Path(os.environ[CLOCK]).open("a") as file:
            file.write(f"{time.perf_counter() - begin}\n")


def wait_in_vain(futures: list[Future], seconds: float) -> None:
    """Wait for results, as a user who gives up after some time."""
    try:
        wait(futures, timeout=seconds)
    except TimeoutError:
        return
    raise AssertionError("the program ended")


class Run:
    """A run to record.

    Parameters
    ----------
    trace : Path
    scratch : Path
        An empty folder.
    module : str
        Module of the program, which workers import before the recording begins.
    """

    def __init__(self, trace: Path, scratch: Path, module: str) -> None:
        self.trace = trace
        self.module = module
        self.scratch = scratch
        self.wall_seconds = 0.0
        #: Measured seconds that a right answer names, if not those of the clock.
        self.true_seconds: float | None = None
        self.cluster: Any = None
        self._clock = scratch / "clock"
        self.jobs: list[subprocess.Popen] = []
        os.environ[CLOCK] = str(self._clock)

    @property
    def clock_seconds(self) -> float | None:
        """Return the sum of all clocks of tasks, if there are any."""
        if not self._clock.exists():
            return None
        return sum(map(float, self._clock.read_text().split()))

    @contextmanager
    def recorded(
        self,
        workers: int = 2,
        threads: int = 1,
        memory: str = "1GB",
        config: dict[str, Any] | None = None,
        prepare: Callable[[Client], None] | None = None,
        **settings: Any,
    ) -> Iterator[Client]:
        """Start a cluster of worker processes and record it, after `prepare`."""
        with (
            dask.config.set(config or {}),
            LocalCluster(
                n_workers=workers,
                threads_per_worker=threads,
                memory_limit=memory,
                host="127.0.0.1",
                dashboard_address=None,
                local_directory=str(self.scratch),
                silence_logs=50,
            ) as self.cluster,
            Client(self.cluster) as client,
        ):
            try:
                if workers:
                    client.wait_for_workers(workers)
                if prepare is not None:
                    prepare(client)
                client.run(importlib.import_module, self.module)
                with roast_recorder.record(client, self.trace, **settings):
                    begin = time.perf_counter()
                    yield client
                    self.wall_seconds = time.perf_counter() - begin
            finally:
                for job in self.jobs:
                    job.kill()
                    job.wait()

    def start_job(
        self, *options: str, limit_seconds: int | None = None, **environment: str
    ) -> subprocess.Popen:
        """Start a worker as a process of its own, in a batch job if there is a time limit."""
        if limit_seconds is not None:
            begin = int(time.time())
            environment |= {
                "SLURM_JOB_ID": str(1000 + len(self.jobs)),
                "SLURM_JOB_NAME": "dask-worker",
                "SLURM_JOB_START_TIME": str(begin),
                "SLURM_JOB_END_TIME": str(begin + limit_seconds),
                "SLURM_CPUS_PER_TASK": "1",
            }
        command = [sys.executable, "-m", "distributed.cli.dask_worker"]
        command += [self.cluster.scheduler_address, "--nthreads", "1", "--no-dashboard"]
        command += ["--memory-limit", "1GB", "--local-directory", str(self.scratch), *options]
        job = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.jobs.append(job)
        return job

    def start_two_jobs(self, client: Client) -> None:
        """Start two workers without nannies in batch jobs of an hour, and wait for them."""
        for _ in range(2):
            self.start_job("--no-nanny", limit_seconds=3600)
        client.wait_for_workers(2)
