"""Tasks that wait: for other tasks, for locks, for files, or without an end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from dask.utils import SerializableLock
from distributed import Client, Lock, Semaphore, get_client, wait
from situation import Run, clocked, reported, wait_in_vain

#: Lock of a process, as that of a file library.
LIBRARY_LOCK = SerializableLock("file-library")


def read(number: int, stuck: int) -> int:
    # A request without a timeout, to a server that does not answer.
    time.sleep(60 if number == stuck else 0.1)
    return number


@reported(
    "https://github.com/dask/dask/issues/7543",
    "unfinished-tasks",
    entities="read",
    words=r"read time\.?out|stack|restart|client\.call_stack",
    wrong="fewer.workers split",
)
def stuck_read(run: Run) -> None:
    """One of 30 reads never returns; the user gives up after 9 s."""
    with run.recorded() as client:
        begin = time.perf_counter()
        wait_in_vain(client.map(read, range(30), stuck=22), 9)
        run.true_seconds = time.perf_counter() - begin - 1.1


def fetch_part(part: tuple[int, int]) -> tuple[int, int]:
    time.sleep(0.2)
    return part


def step(number: int) -> int:
    futures = get_client().map(fetch_part, [(number, part) for part in range(3)], pure=False)
    while any(future.status == "pending" for future in futures):
        time.sleep(0.05)
    return number


@reported(
    "https://github.com/dask/distributed/issues/7047",
    "unfinished-tasks inside-tasks",
    entities="step",
    words="step worker_client|secede",
)
def nested_wait(run: Run) -> None:
    """Tasks wait for tasks that they submitted, and occupy all threads: a deadlock."""
    with run.recorded() as client:
        wait_in_vain(client.map(step, range(4)), 10)


def read_part(number: int) -> int:
    with clocked():
        LIBRARY_LOCK.acquire()
    try:
        time.sleep(0.15)
    finally:
        LIBRARY_LOCK.release()
    sum(range(500_000))
    return number


@reported(
    "https://github.com/pydata/xarray/issues/2190",
    "lock-waits inside-tasks",
    words="lock process",
    wrong="for.the.GIL",
)
def file_lock(run: Run) -> None:
    """Four threads of a process read with a library whose lock lets one of them read."""
    with run.recorded(workers=1, threads=4) as client:
        client.gather(client.map(read_part, range(50)))


def write_part(number: int) -> int:
    lock = Lock("output")
    with clocked():
        lock.acquire()
    try:
        time.sleep(0.2)
    finally:
        lock.release()
    return number


@reported(
    "https://github.com/dask/distributed/issues/8772",
    "lock-waits inside-tasks",
    entities="write_part",
    words="lock write_part",
)
def cluster_lock(run: Run) -> None:
    """Four threads write to one output, which a distributed Lock protects."""
    with run.recorded(threads=2) as client:
        client.gather(client.map(write_part, range(40)))


def query(number: int, limit: Semaphore) -> int:
    with clocked():
        limit.acquire()
    try:
        time.sleep(0.3)
    finally:
        limit.release()
    return number


@reported(
    "https://github.com/dask/distributed/issues/4104",
    "lock-waits inside-tasks",
    entities="query",
    words="semaphore|lock query",
)
def semaphore(run: Run) -> None:
    """Four threads query a data base, to which a Semaphore admits one of them."""
    with run.recorded(threads=2) as client:
        limit = Semaphore(max_leases=1, name="data-base")
        client.gather(client.map(query, range(25), limit=limit))


def update(number: int) -> int:
    with Lock("table"):
        if number == 2:
            # As the kernel does if there is no memory.
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2)
    return number


@reported(
    "https://github.com/dask/distributed/issues/7371",
    "unfinished-tasks lock-waits inside-tasks",
    entities="update",
    words="lock update held|holds|holder|releas|lost|killed",
    also="killed-workers no-workers late-workers",
)
def lost_lock(run: Run) -> None:
    """A worker is killed while its task holds a Lock, which nobody releases."""
    with run.recorded() as client:
        wait_in_vain(client.map(update, range(12)), 12)


def transform(number: int, folder: str) -> int:
    marker = Path(folder) / f"{number}.ready"
    with clocked():
        while not marker.exists():
            time.sleep(0.05)
    sum(range(1_000_000))
    return number


@reported(
    "https://github.com/dask/distributed/issues/2888",
    "inside-tasks",
    entities="transform",
    words="sleep|poll transform",
)
def polling(run: Run) -> None:
    """Tasks poll for files that another program writes one by one."""

    def write_markers() -> None:
        for number in range(20):
            time.sleep(0.4)
            (run.scratch / f"{number}.ready").touch()

    with run.recorded() as client:
        writer = threading.Thread(target=write_markers)
        writer.start()
        client.gather(client.map(transform, range(20), folder=str(run.scratch)))
        writer.join()


def train(number: int) -> int:
    time.sleep(0.2)
    return number


@reported(
    "https://github.com/dask/dask/issues/9587",
    "unplaceable-tasks",
    entities="train",
    words="GPU|resource train",
)
def missing_resource(run: Run) -> None:
    """Some tasks need a resource that no worker has, and are never executed."""
    with run.recorded() as client:
        futures = client.map(train, range(20))
        futures += client.map(train, range(20, 24), resources={"GPU": 1})
        wait_in_vain(futures, 10)


def refine(model: int | None, part: int) -> int:
    with clocked():
        time.sleep(0.4)
    return part if model is None else model + part


def load_part(number: int) -> int:
    time.sleep(0.05)
    return number


@reported(
    "https://github.com/dask/distributed/issues/7552",
    "low-parallelism",
    entities="refine",
    words="tree|parallel|depend|split|combine|independent",
    also="excess-workers long-tail",
)
def serial_fold(run: Run) -> None:
    """Each of 25 steps of a fold waits for the one before, so that one thread works."""
    with run.recorded() as client:
        model = None
        for part in client.map(load_part, range(25)):
            model = client.submit(refine, model, part)
        model.result()


def run_openmp(number: int) -> int:
    time.sleep(0.5)
    return number


@reported(
    "https://github.com/dask/dask-jobqueue/issues/230",
    "scarce-resources",
    words="processes resource",
    also="excess-workers low-parallelism idle-threads",
)
def one_task_per_worker(run: Run) -> None:
    """Each of two workers has four threads, and a resource for one task at a time."""

    def start_workers(client: Client) -> None:
        for _ in range(2):
            run.start_job("--no-nanny", "--nthreads", "4", "--resources", "processes=1")
        client.wait_for_workers(2)

    with run.recorded(workers=0, prepare=start_workers) as client:
        client.gather(client.map(run_openmp, range(30), resources={"processes": 1}))
        # Three threads of each worker, while the tasks computed.
        run.true_seconds = 30 / 2 * 0.5 * 6


async def fetch(number: int) -> int:
    with clocked():
        time.sleep(0.4)  # noqa: ASYNC251 - as in a library that is not asynchronous
    return number


@reported(
    "https://github.com/dask/distributed/issues/7495",
    "blocked-event-loop",
    entities="fetch",
    words="async.def|coroutine def|await",
    wrong="other.programs GIL",
)
def blocking_coroutines(run: Run) -> None:
    """Tasks are coroutines that wait without await."""
    with run.recorded(threads=4) as client:
        client.gather(client.map(fetch, range(40)))


class Band:
    def __init__(self) -> None:
        self.data = np.random.default_rng(0).random(1_000_000)

    def step(self, start: float) -> float:
        with clocked():
            time.sleep(0.4)
        return float(self.data.sum() + start)


@reported(
    "https://github.com/ratt-ru/pfb-imaging/issues/113",
    "actor-methods",
    entities="Band.step",
    words="actor one.at.a.time|several.workers",
    wrong="fewer.workers",
)
def serial_actor(run: Run) -> None:
    """One actor does all work, one call after another."""
    with run.recorded() as client:
        band = client.submit(Band, actor=True).result()
        for _ in range(25):
            band.step(1.0).result()


@reported(
    "https://github.com/dask/distributed/issues/7384",
    "no-stealing",
    words="work.stealing worker-saturation",
    also="late-workers",
)
def tasks_stay(run: Run) -> None:
    """A worker joins after 3 s and gets no task: work stealing is off."""
    settings = {"work-stealing": False, "worker-saturation": "inf"}
    config = {f"distributed.scheduler.{name}": value for name, value in settings.items()}
    with run.recorded(workers=1, config=config) as client:
        futures = client.map(pause, range(40), seconds=0.5)
        time.sleep(2)
        run.cluster.scale(2)
        wait(futures)


def pause(number: int, seconds: float) -> int:
    time.sleep(seconds)
    return number


#: A second program, which submits its tasks first.
OTHER_PROGRAM = """
import sys, time
from distributed import Client

def simulate(number):
    time.sleep(0.5)
    return number

with Client(sys.argv[1]) as client:
    futures = client.map(simulate, range(50))
    print("submitted", flush=True)
    client.gather(futures)
"""


@reported(
    "https://github.com/CoffeaTeam/coffea-casa/issues/208",
    "other-programs",
    words="priority 2.0.of.2.0.threads",
    also="inside-tasks",
    wrong="fewer.workers",
)
def second_notebook(run: Run) -> None:
    """Tasks of a second program wait until those of the first one have been computed."""
    with run.recorded() as client:
        command = [sys.executable, "-c", OTHER_PROGRAM, run.cluster.scheduler_address]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            time.sleep(1)
            client.gather(client.map(pause, range(10), seconds=0.1))


def make_data(number: int) -> np.ndarray:
    return np.full(1_500_000, float(number))


def fit_data(data: np.ndarray, turn: int) -> float:
    with clocked():
        time.sleep(0.06)
    return float(data[0]) + turn


@reported(
    "https://github.com/dask/distributed/issues/7742",
    "unbalanced-inputs",
    entities="fit_data",
    words="All.30.inputs rebalance|wait_for_workers",
    also="late-workers client-gaps",
    wrong="fewer.workers",
)
def data_on_one_worker(run: Run) -> None:
    """Data is made by the only worker; two others join, and tasks stay where the data is."""
    with run.recorded(workers=1, memory="2GB") as client:
        data = client.map(make_data, range(30))
        wait(data)
        run.cluster.scale(3)
        client.wait_for_workers(3)
        for turn in range(5):
            client.gather([client.submit(fit_data, one, turn) for one in data])
