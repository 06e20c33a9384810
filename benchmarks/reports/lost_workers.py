"""Workers that end, are killed, are lost or come late."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from pathlib import Path

import numpy as np
from dask import delayed
from distributed import Client, Future, wait
from situation import Run, clocked, reported

#: Tasks of most runs: several seconds of work for two workers.
TASKS = 30


def fit(number: int, seconds: float = 0.4) -> int:
    time.sleep(seconds)
    return number


@reported(
    "https://github.com/dask/dask-jobqueue/issues/122",
    "worker-ends killed-workers late-workers",
    words="time.limit|walltime lifetime",
    wrong="unknown.reason memory.limit|more.memory",
    also="killed-workers late-workers no-workers",
)
def batch_time_limit(run: Run) -> None:
    """Two batch jobs reach their time limit and are killed; two others finish the work."""
    with run.recorded(workers=0) as client:
        first = [run.start_job("--no-nanny", limit_seconds=12) for _ in range(2)]
        client.wait_for_workers(2)
        deadline = time.monotonic() + 8.5
        futures = client.map(fit, range(TASKS), seconds=0.8)
        time.sleep(max(0.0, deadline - time.monotonic()))
        for job in first:
            job.kill()
            job.wait()
        for _ in range(2):
            run.start_job("--no-nanny", limit_seconds=3600)
        client.gather(futures)


@reported(
    "https://github.com/dask/dask-jobqueue/issues/416",
    "worker-ends late-workers",
    words="lifetime",
    wrong="killed memory",
    also="recomputed-keys",
)
def lifetime(run: Run) -> None:
    """A worker closes itself after its --lifetime, in the middle of the work."""
    with run.recorded(workers=0) as client:
        run.start_job("--no-nanny", "--lifetime", "7s")
        run.start_job("--no-nanny")
        client.wait_for_workers(2)
        client.gather(client.map(fit, range(TASKS)))


@reported(
    "https://github.com/dask/distributed/issues/4591",
    "worker-ends killed-workers late-workers",
    words="SIGTERM|signal.15|signal-15|preempt",
    wrong="unknown.reason memory time.limit",
    also="late-workers killed-workers",
)
def preemption(run: Run) -> None:
    """A preempted worker gets SIGTERM, and another worker has to do its work."""
    with run.recorded(workers=0) as client:
        job = run.start_job("--no-nanny")
        run.start_job("--no-nanny")
        client.wait_for_workers(2)
        futures = client.map(fit, range(TASKS))
        time.sleep(2.5)
        job.send_signal(signal.SIGTERM)
        client.gather(futures)


@reported(
    "https://github.com/dask/distributed/issues/9024",
    "no-workers",
    words="no.worker|without.(a.)?workers?",
    also="worker-ends killed-workers late-workers",
)
def outage(run: Run) -> None:
    """All workers are lost; others join after several seconds in which nothing happens."""
    with run.recorded(workers=0) as client:
        jobs = [run.start_job("--no-nanny") for _ in range(2)]
        client.wait_for_workers(2)
        futures = client.map(fit, range(TASKS))
        time.sleep(2.5)
        for job in jobs:
            job.kill()
            job.wait()
        begin = time.perf_counter()
        time.sleep(4.0)
        for _ in range(2):
            run.start_job("--no-nanny")
        client.wait_for_workers(1)
        run.true_seconds = time.perf_counter() - begin
        client.gather(futures)


@reported(
    "https://github.com/dask/dask-jobqueue/issues/701",
    "no-workers late-workers worker-ends",
    words="adapt|minimum|scale|idle",
    wrong="killed memory",
    also="worker-ends late-workers client-gaps",
)
def adaptive_release(run: Run) -> None:
    """An adaptive cluster releases its idle workers between graphs, and starts them again."""
    with run.recorded() as client:
        run.cluster.adapt(minimum=0, maximum=2, interval="200ms", wait_count=2)
        for first in range(0, 24, 8):
            client.gather(client.map(fit, range(first, first + 8)))
            time.sleep(2.0)


def expand(number: int) -> float:
    time.sleep(0.3)
    if number != 5:
        return 0.0
    values = np.ones(20_000_000)
    time.sleep(1.0)
    return float(values.sum())


@reported(
    "https://github.com/dask/distributed/issues/1829",
    "killed-workers",
    words="memory expand",
    wrong="time.limit unknown.reason",
    also="unmanaged-memory late-workers no-workers worker-ends",
)
def memory_kill(run: Run) -> None:
    """A task needs 160 MB more than its worker has; the nanny kills each that tries it."""
    config = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.worker.memory.terminate": 0.95,
    }
    with run.recorded(memory="250MB", config=config) as client:
        wait(client.map(expand, range(24)))


def decode(number: int) -> int:
    time.sleep(0.3)
    if number == 5:
        ctypes.string_at(0)
    return number


@reported(
    "https://github.com/dask/distributed/issues/5465",
    "killed-workers worker-ends",
    words="SIGSEGV|signal.11|segmentation decode",
    wrong="memory.limit more.memory time.limit",
    also="late-workers no-workers worker-ends",
)
def segmentation_fault(run: Run) -> None:
    """A library crashes in one of the tasks, and with it two workers, one after the other."""
    with run.recorded(config={"distributed.scheduler.allowed-failures": 1}) as client:
        wait(client.map(decode, range(24)))


def solve(number: int) -> int:
    # The solver holds the GIL.
    microseconds = (8 if number == 3 else 0.3) * 1e6
    ctypes.PyDLL(None).usleep(int(microseconds))
    return number


@reported(
    "https://github.com/dask/distributed/issues/6324",
    "silent-worker killed-workers worker-ends",
    words="worker-ttl GIL",
    wrong="worker-ttl.below shorter.worker-ttl",
    also="killed-workers late-workers worker-ends gil no-workers",
)
def worker_ttl(run: Run) -> None:
    """A task holds the GIL for longer than worker-ttl, and the scheduler closes its worker."""
    config = {
        "distributed.scheduler.worker-ttl": "4s",
        "distributed.scheduler.allowed-failures": 0,
    }
    with run.recorded(config=config) as client:
        wait(client.map(solve, range(20)))


def load(number: int, seconds: float = 0.4) -> int:
    with clocked():
        time.sleep(seconds)
    return number


@reported(
    "https://github.com/dask/distributed/issues/4400",
    "recomputed-keys worker-ends",
    entities="load",
    words="restart load",
    wrong="memory.limit time.limit",
    also="worker-ends no-workers client-gaps",
)
def client_restart(run: Run) -> None:
    """The client restarts the cluster, and computes again what had been persisted."""
    with run.recorded() as client:
        parts = [delayed(load)(number, dask_key_name=f"load-{number}") for number in range(16)]
        wait(client.persist(parts))
        client.restart()
        client.compute(delayed(sum)(parts), sync=True)
        run.true_seconds = 16 * 0.4


@reported(
    "https://github.com/PrefectHQ/prefect/issues/15442",
    "killed-workers recomputed-keys worker-ends",
    entities="load",
    words="again|lost",
    also="killed-workers late-workers recomputed-keys worker-ends",
)
def lost_results(run: Run) -> None:
    """A worker crashes after it has computed half of the results, which are computed again."""
    with run.recorded(workers=0) as client:
        job = run.start_job("--no-nanny")
        run.start_job("--no-nanny")
        client.wait_for_workers(2)
        futures = client.map(load, range(20))
        wait(futures)
        held = client.has_what()
        job.kill()
        job.wait()
        run.true_seconds = 0.4 * min(map(len, held.values()))
        total = client.submit(sum, futures)
        total.result()


@reported(
    "https://github.com/dask/dask-jobqueue/issues/20",
    "late-workers",
    words="late|joined queue|wait|adapt|batch|earl",
)
def late_batch_job(run: Run) -> None:
    """The second of two batch jobs waits in the queue while the first one computes."""
    with run.recorded(workers=0) as client:
        run.start_job("--no-nanny", limit_seconds=3600)
        client.wait_for_workers(1)
        timer = threading.Timer(5.0, run.start_job, ["--no-nanny"], {"limit_seconds": 3600})
        timer.start()
        client.gather(client.map(fit, range(24)))
        timer.join()


def connect(number: int, folder: str) -> int:
    tried = Path(folder) / f"{number}.tried"
    if number % 5 == 0 and not tried.exists():
        with clocked():
            time.sleep(0.6)
        tried.touch()
        message = "connection reset by storage.example.org"
        raise ConnectionResetError(message)
    time.sleep(0.2)
    return number


@reported(
    "https://github.com/pangeo-data/rechunker/issues/51",
    "retries",
    entities="connect",
    words="ConnectionResetError|connection.reset connect",
)
def flaky_storage(run: Run) -> None:
    """A fifth of the reads fails after a while, and succeeds when Dask tries it again."""
    with run.recorded() as client:
        client.gather(client.map(connect, range(50), folder=str(run.scratch), retries=3))


def convert(number: int) -> int:
    time.sleep(0.02)
    return number


@reported(
    "https://github.com/dask/distributed/issues/2772",
    "",
    wrong="twice again",
)
def mid_run(run: Run) -> None:
    """Recording begins and ends while short tasks run; each of them runs once."""
    futures: list[Future] = []

    def submit(client: Client) -> None:
        futures.extend(client.map(convert, range(600), pure=False))
        wait(futures[:100])

    with run.recorded(prepare=submit):
        time.sleep(2.0)
