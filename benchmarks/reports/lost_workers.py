"""Workers that end, are killed, are lost or come late."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import time

import numpy as np
from dask import delayed
from distributed import Client, Future, wait
from distributed.core import Status
from distributed.deploy.spec import ProcessInterface
from situation import Run, clocked, reported

#: Tasks of most runs: several seconds of work for two workers.
TASKS = 30


def fit(number: int, seconds: float = 0.4) -> int:
    time.sleep(seconds)
    return number


@reported(
    "https://github.com/dask/dask-jobqueue/issues/122",
    "killed-workers late-workers",
    words="time.limit|walltime lifetime",
    wrong="unknown.reason memory.limit|more.memory",
    also="killed-workers late-workers no-workers",
)
def batch_time_limit(run: Run) -> None:
    """Two batch jobs reach their time limit and are killed; two others finish the work."""
    limit = 20
    deadline = time.time() + limit

    def start_jobs(client: Client) -> None:
        for _ in range(2):
            run.start_job("--no-nanny", limit_seconds=limit)
        client.wait_for_workers(2)

    with run.recorded(workers=0, prepare=start_jobs) as client:
        futures = client.map(fit, range(int(4 * (deadline - time.time()))), seconds=0.8)
        time.sleep(deadline - time.time())
        for job in run.jobs:
            job.kill()
            job.wait()
        run.start_two_jobs(client)
        client.gather(futures)


@reported(
    "https://github.com/dask/dask-jobqueue/issues/416",
    "late-workers",
    words="lifetime",
    wrong="killed memory",
    also="recomputed-keys",
)
def lifetime(run: Run) -> None:
    """A worker closes itself after its --lifetime, in the middle of the work."""

    def start_jobs(client: Client) -> None:
        run.start_job("--no-nanny", "--lifetime", "8s")
        run.start_job("--no-nanny")
        client.wait_for_workers(2)

    with run.recorded(workers=0, prepare=start_jobs) as client:
        client.gather(client.map(fit, range(2 * TASKS)))


@reported(
    "https://github.com/dask/distributed/issues/4591",
    "killed-workers late-workers",
    words="SIGTERM|signal.15|signal-15|preempt",
    wrong="unknown.reason memory time.limit",
    also="late-workers killed-workers",
)
def preemption(run: Run) -> None:
    """A preempted worker gets SIGTERM, and another worker has to do its work."""

    def start_jobs(client: Client) -> None:
        run.start_job(limit_seconds=3600)
        run.start_job(limit_seconds=3600)
        client.wait_for_workers(2)

    with run.recorded(workers=0, prepare=start_jobs) as client:
        futures = client.map(fit, range(TASKS))
        time.sleep(2.5)
        run.jobs[0].send_signal(signal.SIGTERM)
        client.gather(futures)


@reported(
    "https://github.com/dask/distributed/issues/9024",
    "no-workers",
    words="no.worker|without.(a.)?workers?",
    also="killed-workers late-workers",
)
def outage(run: Run) -> None:
    """All workers are lost; others join after several seconds in which nothing happens."""
    with run.recorded(workers=0, prepare=run.start_two_jobs) as client:
        futures = client.map(fit, range(TASKS))
        time.sleep(2.5)
        for job in run.jobs:
            job.kill()
            job.wait()
        begin = time.perf_counter()
        time.sleep(4.0)
        run.start_job("--no-nanny")
        client.wait_for_workers(1)
        run.true_seconds = time.perf_counter() - begin
        client.gather(futures)


@reported(
    "https://github.com/dask/dask-jobqueue/issues/701",
    "no-workers late-workers",
    words="adapt|minimum|idle",
    wrong="killed memory",
    also="late-workers client-gaps",
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
    values = np.ones(40_000_000)
    time.sleep(1.0)
    return float(values.sum())


@reported(
    "https://github.com/dask/distributed/issues/1829",
    "killed-workers",
    words="memory expand",
    wrong="time.limit unknown.reason",
    also="unmanaged-memory late-workers no-workers",
)
def memory_kill(run: Run) -> None:
    """A task needs 320 MB, more than a worker has, and the nanny kills each that tries it."""
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
    "killed-workers",
    words="SIGSEGV|signal.11|segmentation decode",
    wrong="memory.limit more.memory time.limit",
    also="late-workers no-workers",
)
def segmentation_fault(run: Run) -> None:
    """A library crashes in one of the tasks, and with it two workers, one after the other."""
    with run.recorded(config={"distributed.scheduler.allowed-failures": 1}) as client:
        wait(client.map(decode, range(24)))


def solve(number: int) -> int:
    # The solver holds the GIL.
    microseconds = (12 if number == 3 else 0.3) * 1e6
    ctypes.PyDLL(None).usleep(int(microseconds))
    return number


@reported(
    "https://github.com/dask/distributed/issues/6324",
    "silent-worker killed-workers",
    words="worker-ttl GIL",
    wrong="worker-ttl.below shorter.worker-ttl",
    also="killed-workers late-workers gil no-workers",
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
    "killed-workers recomputed-keys",
    words="restart",
    wrong="memory.limit time.limit",
    also="no-workers client-gaps",
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
    "killed-workers recomputed-keys",
    words="again|lost",
    also="killed-workers late-workers recomputed-keys",
)
def lost_results(run: Run) -> None:
    """A worker crashes after it has computed half of the results, which are computed again."""
    with run.recorded(workers=0, prepare=run.start_two_jobs) as client:
        futures = client.map(load, range(20))
        wait(futures)
        run.jobs[0].kill()
        run.jobs[0].wait()
        client.submit(sum, futures).result()
        # All that was computed more than once.
        run.true_seconds = (run.clock_seconds or 0.0) - 20 * 0.4


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


def fit_in_parallel(number: int) -> int:
    with clocked():
        time.sleep(0.5)
        multiprocessing.Process(target=fit, args=(number,)).start()
    return number


@reported(
    "https://github.com/dask/distributed/issues/2142",
    "retries",
    entities="fit_in_parallel",
    words="none.succeeded daemonic fewer.retries",
)
def retries_in_vain(run: Run) -> None:
    """Each task starts a process, which a worker with a nanny may not; each is tried twice."""
    with run.recorded() as client:
        wait(client.map(fit_in_parallel, range(20), retries=1))
        run.true_seconds = (run.clock_seconds or 0.0) / 2


class PendingJob(ProcessInterface):
    """A batch job that is submitted and never started."""

    async def start(self) -> None:
        self.status = Status.running


@reported(
    "https://github.com/dask/dask-jobqueue/issues/620",
    "missing-workers",
    words="4.of.6.workers did.not.join",
    wrong="GIL larger.chunks",
)
def pending_jobs(run: Run) -> None:
    """Four of six workers that were requested never start, and nothing reports it."""

    def request(client: Client) -> None:
        for number in range(4):
            spec = {"cls": PendingJob, "options": {"name": f"pending-{number}"}}
            run.cluster.worker_spec[f"pending-{number}"] = spec
        run.cluster.sync(run.cluster._correct_state)

    with run.recorded(prepare=request) as client:
        client.gather(client.map(fit, range(40)))


@reported(
    "https://github.com/dask/distributed/issues/3627",
    "adaptive-plan",
    words="1.worker maximum.of.4 target_duration",
    wrong="GIL retire",
)
def small_adaptive_cluster(run: Run) -> None:
    """An adaptive cluster stays at one worker, which computes each graph within seconds."""
    with run.recorded(workers=1) as client:
        run.cluster.adapt(minimum=1, maximum=4)
        for first in range(0, 40, 10):
            client.gather(client.map(fit, range(first, first + 10)))
