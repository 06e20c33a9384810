"""Load of threads, processes, hosts, memory and the scheduler, and its balance."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from itertools import pairwise

import dask
import dask.dataframe
import numpy as np
import pandas as pd
from distributed import as_completed, wait
from situation import Run, clocked, reported, wait_in_vain


def parse(number: int) -> int:
    begin = time.thread_time()
    text = 0
    while time.thread_time() - begin < 0.15:
        text += len(f"{number}:{text}")
    return text


def multiply(number: int) -> float:
    values = np.full((700, 700), float(number))
    for _ in range(4):
        values = values @ values / 700
    return float(values[0, 0])


@reported(
    "https://github.com/dask/distributed/issues/8985",
    "library-threads starved-host gil",
    words="threads OMP_NUM_THREADS|OPENBLAS_NUM_THREADS|threads.of.(its|their).own|librar",
)
def blas_threads(run: Run) -> None:
    """Each of four workers multiplies matrices with eight threads of BLAS, on few cores."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    config = {"distributed.nanny.pre-spawn-environ": dict.fromkeys(names, 8)}
    with run.recorded(workers=4, config=config) as client:
        client.gather(client.map(multiply, range(80)))


def spin(seconds: float) -> float:
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass
    return seconds


def validate(number: int) -> int:
    program = "import time\nwhile time.process_time() < 0.3: pass"
    parts = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(6)]
    with clocked():
        for part in parts:
            part.wait()
    return number


@reported(
    "https://github.com/dask/dask/issues/6705",
    "starved-host inside-tasks",
    entities="validate",
    words="process cores?|subprocess",
)
def processes_in_tasks(run: Run) -> None:
    """Each task starts six processes, so that a dozen of them share the cores."""
    with run.recorded() as client:
        client.gather(client.map(validate, range(8)))


@reported(
    "https://github.com/englacial/xopr/issues/8",
    "starved-host gil",
    words="cores?",
)
def busy_host(run: Run) -> None:
    """Four processes of others keep the cores of the host busy."""
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=spin, args=(60.0,)) for _ in range(4)]
    with run.recorded() as client:
        for other in others:
            other.start()
        try:
            client.gather(client.map(parse, range(20)))
        finally:
            for other in others:
                other.kill()
                other.join()


def increment(number: int) -> int:
    return number + 1


@reported(
    "https://github.com/dask/distributed/issues/181",
    "short-tasks scheduler-saturated",
    entities="increment",
    words="batch|larger|fewer|longer|combine|chunk",
    also="scheduler-saturated large-graph",
)
def tiny_tasks(run: Run) -> None:
    """4,000 tasks that do nothing but add one."""
    with run.recorded() as client:
        client.gather(client.map(increment, range(4000)))


def tail(number: int, longest: int) -> int:
    time.sleep(5.0 if number == longest else 0.15)
    return number


@reported(
    "https://github.com/dask/distributed/issues/2835",
    "long-tail",
    entities="tail",
    words="split|first|priority|earlier tail",
)
def long_partition(run: Run) -> None:
    """The last of 40 partitions takes 5 s, where others take 0.15 s."""
    with run.recorded() as client:
        client.gather(client.map(tail, range(40), longest=39))
        run.true_seconds = 5.0


def summarize(frame: pd.DataFrame) -> pd.DataFrame:
    time.sleep(len(frame) * 2e-5)
    return frame.groupby("key").sum()


@reported(
    "https://github.com/dask/distributed/issues/4962",
    "long-tail idle-threads",
    words="skew|partition|key|split",
    also="low-parallelism transfers",
)
def skewed_shuffle(run: Run) -> None:
    """Nine of ten rows have the same key, so that one partition of a shuffle has them all."""
    random = np.random.default_rng(0)
    keys = np.where(random.random(300_000) < 0.9, 7, random.integers(0, 400, 300_000))
    frame = pd.DataFrame({"key": keys, "value": random.random(300_000)})
    with run.recorded() as client:
        table = dask.dataframe.from_pandas(frame, npartitions=8).shuffle("key")
        client.compute(table.map_partitions(summarize, meta={"value": float}), sync=True)


def measure(number: int, slow_pid: int) -> int:
    time.sleep(0.6 if os.getpid() == slow_pid else 0.15)
    return number


@reported(
    "https://github.com/dask/distributed/issues/3126",
    "slow-worker",
    words="slow|longer|as.long|times",
    also="long-tail",
)
def slow_machine(run: Run) -> None:
    """One of three workers takes four times as long as the others."""
    with run.recorded(workers=3) as client:
        pid = list(client.run(os.getpid).values())[1]
        client.gather(client.map(measure, range(100), slow_pid=pid))


#: Objects that tasks keep, as in a cache without a limit.
CACHE: list[np.ndarray] = []


def cached_read(number: int) -> float:
    CACHE.append(np.full(2_000_000, float(number)))
    time.sleep(0.3)
    return float(CACHE[-1][0])


@reported(
    "https://github.com/dask/distributed/issues/7864",
    "unmanaged-memory paused-workers",
    words="unmanaged|leak|cache|keep paus",
    wrong="spill",
    also="unmanaged-memory paused-workers unfinished-tasks",
)
def memory_growth(run: Run) -> None:
    """Each task leaves 16 MB behind, until both workers are paused, and nothing happens."""
    with run.recorded(memory="400MB") as client:
        wait_in_vain(client.map(cached_read, range(80)), 15)


def make_part(number: int) -> np.ndarray:
    return np.random.default_rng(number).random(4_000_000)


def difference(one: np.ndarray, other: np.ndarray) -> float:
    return float((one - other).std())


@reported(
    "https://github.com/dask/distributed/issues/4424",
    "spilling",
    words="MiB|GiB release|smaller disk|spill",
    also="blocked-event-loop transfers paused-workers unmanaged-memory scheduler-saturated",
)
def spilled_results(run: Run) -> None:
    """Results of 32 MB each, 960 MB in all, are compared, on two workers of 500 MB each."""
    with run.recorded(memory="500MB") as client:
        parts = client.map(make_part, range(30))
        wait(parts)
        client.gather([client.submit(difference, a, b) for a, b in pairwise(parts)])


def parse_rows(number: int) -> int:
    text = "".join(f"{row},{row * number},abc\n" for row in range(20_000))
    return sum(len(line.split(",")) for line in text.splitlines())


@reported(
    "https://github.com/dask/dask/issues/5649",
    "gil",
    entities="parse_rows",
    words="GIL processes|--nworkers|workers|one.thread|fewer.threads",
    also="excess-workers starved-host inside-tasks blocked-event-loop",
)
def strings_in_threads(run: Run) -> None:
    """Four threads of one worker parse text, which holds the GIL."""
    with run.recorded(workers=1, threads=4) as client:
        client.gather(client.map(parse_rows, range(300)))


def keep_part(number: int) -> np.ndarray:
    time.sleep(0.2)
    return np.random.default_rng(number).random(4_000_000)


@reported(
    "https://github.com/dask/distributed/issues/8863",
    "paused-workers",
    words="until.the.recording.ended max-spill more.memory",
    wrong="results.to.files",
    also="spilling unfinished-tasks unmanaged-memory",
)
def full_spill(run: Run) -> None:
    """Workers may spill 100 MB each: they pause, and the run cannot end."""
    limit = {"distributed.worker.memory.max-spill": "100MB"}
    with run.recorded(memory="500MB", config=limit) as client:
        wait_in_vain(client.map(keep_part, range(60)), 20)


@reported(
    "https://github.com/dask/distributed/issues/3092",
    "spilling",
    words="clients.kept delete.futures|as_completed",
    also="paused-workers unmanaged-memory blocked-event-loop transfers client-gaps",
)
def futures_in_list(run: Run) -> None:
    """The client keeps the futures of all results, each of which one task uses."""
    with run.recorded(memory="600MB") as client:
        futures = client.map(keep_part, range(60))
        for future in as_completed(futures):
            client.submit(np.sum, future).result()


class Dataset:
    """Values whose size Dask does not know."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values


def open_dataset(number: int) -> Dataset:
    return Dataset(np.random.default_rng(number).random(3_200_000))


def total(dataset: Dataset) -> float:
    time.sleep(0.1)
    return float(dataset.values.sum())


@reported(
    "https://github.com/dask/distributed/issues/5383",
    "unmanaged-memory",
    words="does.not.know Dataset __sizeof__|dask.sizeof",
    wrong="leaks",
    also="spilling paused-workers killed-workers blocked-event-loop transfers",
)
def unknown_sizes(run: Run) -> None:
    """Results are objects of 25 MB that Dask counts as 56 bytes."""
    with run.recorded(memory="700MB") as client:
        datasets = client.map(open_dataset, range(44))
        wait(datasets, timeout=20)
        wait(client.map(total, datasets), timeout=20)
