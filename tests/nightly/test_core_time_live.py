"""Core time of dedicated runs, compared with the state of the live cluster.

Every 5 ms, observers on the scheduler and on the workers log the threads and the status of
each worker, how many of its tasks execute or wait for a transfer, and how many wait on the
scheduler. Each state lasts until the next one is logged. Busy time is also compared with the
fine metrics of context `execute`, which are the definitions of dask/distributed#7565.
"""

import json
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster, Status, WorkerPlugin, wait
from tornado.ioloop import PeriodicCallback

import roast_recorder
from nightly.core_time import JOINING_SECONDS
from roast_analyze import Trace

INTERVAL_MILLISECONDS = 5

#: Largest difference of a bucket, as a share of the thread time of the run.
TOLERANCE = 0.03

#: Minimum share of each bucket that a run is made for.
LEAST_SHARE = 0.08

#: Activities of Dask's fine metrics in which a thread computes or prepares to compute.
ACTIVITIES = {"thread-cpu", "thread-noncpu", "deserialize", "disk-read", "failed", "cancelled"}

#: Buckets of the view; those that the observers cannot distinguish are merged.
BUCKETS = """
    SELECT
        CASE
            WHEN category = 'busy' THEN 'busy'
            WHEN use IN ('dependencies', 'tail') THEN 'too few tasks'
            ELSE use
        END AS bucket,
        sum(seconds)
    FROM core_time
    GROUP BY bucket
"""


class WorkerObserver(WorkerPlugin):
    """Write the numbers of executing tasks, and of those that wait for a transfer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def setup(self, worker) -> None:
        self.worker = worker
        self.file = (self.folder / worker.id).open("w", buffering=1)
        callback = PeriodicCallback(self.note, INTERVAL_MILLISECONDS)
        worker.periodic_callbacks["observer"] = callback
        callback.start()

    def note(self) -> None:
        state = self.worker.state
        fetching = sum(
            any(dependency.state in ("fetch", "flight") for dependency in task.waiting_for_data)
            for task in state.waiting
        )
        row = [time.time(), self.worker.address, state.executing_count, fetching]
        self.file.write(json.dumps(row) + "\n")


@dataclass
class SchedulerObserver:
    """Log the states of tasks, and the threads, status and tasks of workers."""

    cluster: LocalCluster
    states: list[tuple[float, Counter, dict[str, tuple[int, str, int]]]] = field(
        default_factory=list
    )

    def start(self) -> None:
        callback = PeriodicCallback(self.note, INTERVAL_MILLISECONDS)
        self.cluster.scheduler.periodic_callbacks["observer"] = callback
        self.cluster.loop.add_callback(callback.start)

    def note(self) -> None:
        scheduler = self.cluster.scheduler
        tasks = Counter(task.state for task in scheduler.tasks.values())
        workers = {
            address: (worker.nthreads, worker.status.name, len(worker.processing))
            for address, worker in scheduler.workers.items()
        }
        self.states.append((time.time(), tasks, workers))


def observed_seconds(
    observer: SchedulerObserver, folder: Path, start_t: float, stop_t: float
) -> Counter:
    """Return the seconds of each bucket between two times, as observed."""
    notes: dict[str, list[tuple]] = {}
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            t, address, *counts = json.loads(line)
            notes.setdefault(address, []).append((t, *counts))
    scheduler_times = [state[0] for state in observer.states]
    worker_times = {address: [note[0] for note in found] for address, found in notes.items()}

    in_run = [s for s in observer.states if start_t <= s[0] < stop_t]
    active = [t for t, tasks, _ in in_run if unfinished(tasks)]
    joining = joining_times(in_run, active[0])
    instants = sorted(
        t
        for times in (scheduler_times, *worker_times.values(), [start_t, stop_t])
        for t in times
        if start_t <= t <= stop_t
    )
    seconds: Counter = Counter()
    for start, stop in pairwise(instants):
        _, tasks, workers = observer.states[bisect_right(scheduler_times, start) - 1]
        counts = {
            address: notes[address][max(bisect_right(worker_times[address], start) - 1, 0)][1:]
            for address in workers
            if address in notes
        }
        joins = {a for a, (begin, end) in joining.items() if begin <= start < end}
        when = (
            "before first graph" if start < active[0]
            else "between graphs" if start < active[-1]
            else "after last result"
        )  # fmt: skip
        for bucket, threads in used_threads(tasks, workers, counts, joins, when):
            seconds[bucket] += threads * (stop - start)
    return seconds


def unfinished(tasks: Counter) -> int:
    return sum(tasks[state] for state in ("waiting", "queued", "no-worker", "processing"))


def joining_times(states: list[tuple], first_t: float) -> dict[str, tuple[float, float]]:
    """Return the time range before the first task of each worker that joined in the run."""
    seen: dict[str, tuple[float, float]] = {}
    for t, _, workers in states:
        for address, (_, _, processing) in workers.items():
            begin, end = seen.get(address, (t, np.inf))
            seen[address] = begin, min(end, t if processing else np.inf)
    return {
        address: (begin, min(end, begin + JOINING_SECONDS))
        for address, (begin, end) in seen.items()
        if begin > first_t
    }


def used_threads(
    tasks: Counter,
    workers: dict[str, tuple[int, str, int]],
    counts: dict[str, tuple[int, int]],
    joining: set[str],
    when: str,
) -> Iterator[tuple[str, float]]:
    """Yield the number of threads in each bucket, from one state of the cluster."""
    free, backlog = {}, 0
    for address, (nthreads, status, processing) in workers.items():
        executing, fetching = counts.get(address, (0, 0))
        busy = min(nthreads, executing)
        yield "busy", busy
        on_the_way = max(processing - executing - fetching, 0)
        if status == "paused":
            yield "paused worker", nthreads - busy
            backlog += on_the_way
            continue
        transfer = min(nthreads - busy, fetching)
        yield "transfer", transfer
        if status in ("closing", "closing_gracefully"):  # it starts no task
            yield "leaving worker", nthreads - busy - transfer
            continue
        dispatch = min(nthreads - busy - transfer, on_the_way)
        yield "dispatch", dispatch
        backlog += on_the_way - dispatch
        free[address] = nthreads - busy - transfer - dispatch
    idle = sum(free.values())
    if not unfinished(tasks):
        yield when, idle
    elif idle:
        ready = min(tasks["queued"] + tasks["no-worker"], idle)
        elsewhere = min(backlog, idle - ready)
        late = sum(free[address] for address in joining & free.keys()) / idle
        yield "joining worker", (ready + elsewhere) * late
        yield "scheduler", ready * (1 - late)
        yield "imbalance", elsewhere * (1 - late)
        yield "too few tasks", idle - ready - elsewhere


# -- runs ------------------------------------------------------------------------------------


def nap(seconds: float, *_inputs: object) -> float:
    time.sleep(seconds)
    return seconds


def large(seconds: float, *_inputs: object) -> np.ndarray:
    time.sleep(seconds)
    return np.ones(25_000_000)


def addresses(client: Client) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])


def tail(client: Client) -> None:
    """Wait for a long task that started last."""
    wait(client.map(nap, [0.3 + 0.001 * n for n in range(12)] + [2.0], pure=False))


def tree(client: Client) -> None:
    """Merge the results of tasks in a tree of three levels."""
    results = client.map(nap, [0.5 + 0.001 * n for n in range(12)], pure=False)
    for fan_in in (3, 2, 2):
        results = [
            client.submit(nap, 0.5, *results[n : n + fan_in], pure=False)
            for n in range(0, len(results), fan_in)
        ]
    wait(results)


def gaps(client: Client) -> None:
    """Wait before, between and after graphs."""
    for _ in range(2):
        time.sleep(0.8)
        wait(client.map(nap, [0.4] * 8, pure=False))
    time.sleep(0.8)


def transfers(client: Client) -> None:
    """Fetch 200 MB results of both other workers, one after the other."""
    workers = addresses(client)
    sources = [client.submit(large, 0.1, workers=[w], pure=False) for w in workers]
    for _ in range(3):
        others = [
            client.submit(large, 0.1, *sources[:n], *sources[n + 1 :], workers=[w], pure=False)
            for n, w in enumerate(workers)
        ]
        wait(others)
        sources = others


def set_status(status: Status, dask_worker) -> None:
    dask_worker.status = status


def pause(client: Client) -> None:
    """Pause a worker for 1.5 s."""
    first = addresses(client)[:1]
    futures = client.map(nap, [0.2] * 60, pure=False)
    time.sleep(0.5)
    client.run(partial(set_status, Status.paused), workers=first)
    time.sleep(1.5)
    client.run(partial(set_status, Status.running), workers=first)
    wait(futures)


def restricted(client: Client) -> None:
    """Restrict all tasks to one worker."""
    wait(client.map(nap, [0.25] * 12, workers=addresses(client)[:1], pure=False))


def join_and_retire(client: Client) -> None:
    """Wait for a worker with a resource, then retire another one while it computes."""
    first = addresses(client)
    started = len(client.cluster.worker_spec)
    resource = f"GPU {started}"
    needy = client.map(nap, [0.5] * 4, resources={resource: 1}, pure=False)
    time.sleep(1)
    client.cluster.new_spec["options"]["resources"] = {resource: 2}
    client.cluster.scale(started + 1)
    wait(needy)
    others = client.map(nap, [0.5] * 40, pure=False)
    time.sleep(1)
    client.retire_workers(first[-1:])
    wait(others)


#: Runs, and the buckets that each is made for.
RUNS: dict[Callable[[Client], None], set[str]] = {
    tail: {"busy", "too few tasks"},
    tree: {"busy", "too few tasks"},
    gaps: {"busy", "before first graph", "between graphs", "after last result"},
    transfers: {"transfer"},
    pause: {"busy", "paused worker"},
    restricted: {"imbalance"},
    join_and_retire: {"busy", "scheduler"},
}


@pytest.fixture(scope="module")
def observed_cluster(tmp_path_factory) -> Iterator[tuple[Client, SchedulerObserver, Path]]:
    folder = tmp_path_factory.mktemp("notes")
    sizes = {"n_workers": 3, "threads_per_worker": 2, "memory_limit": 0}
    with (
        LocalCluster(**sizes, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        observer = SchedulerObserver(cluster)
        observer.start()
        client.register_plugin(WorkerObserver(folder))
        yield client, observer, folder


async def send_heartbeat(dask_worker) -> None:
    await dask_worker.heartbeat()


def metrics_seconds(client: Client) -> float:
    """Return the seconds of Dask's fine metrics in which threads were busy."""
    client.run(send_heartbeat)
    totals = client.cluster.scheduler.cumulative_worker_metrics
    return sum(
        value
        for name, value in totals.items()
        if name[0] == "execute" and name[-2] in ACTIVITIES and name[-1] == "seconds"
    )


def recorded_and_live(
    client: Client,
    observer: SchedulerObserver,
    folder: Path,
    made: Callable[[Client], None],
    path: Path,
) -> tuple[dict[str, float], dict[str, float]]:
    """Record a run; return the shares of the buckets, from the trace and as observed."""
    metered = -metrics_seconds(client)
    with roast_recorder.record(client, path):
        made(client)
    metered += metrics_seconds(client)
    with Trace(path) as trace:
        recorded = Counter(dict(trace.sql(BUCKETS).fetchall()))
        [(lost_seconds,)] = trace.sql(
            "SELECT coalesce(sum(seconds), 0) FROM core_time WHERE use = 'lost attempt'"
        ).fetchall()
        [(start_t, stop_t)] = trace.sql("SELECT start_t, stop_t FROM run").fetchall()
    live = observed_seconds(observer, folder, start_t, stop_t)
    total = recorded.total()
    # The fine metrics of a lost attempt are lost as well.
    recorded["metered"], live["metered"] = recorded["busy"] - lost_seconds, metered
    names = recorded.keys() | live.keys()
    return (
        {name: recorded[name] / total for name in names},
        {name: live[name] / total for name in names},
    )


@pytest.mark.parametrize("made", RUNS, ids=lambda made: made.__name__)
def test_buckets_are_those_of_the_live_cluster(observed_cluster, made, tmp_path):
    """Repeat a run up to twice, because states are observed late on a busy machine."""
    for _ in range(3):
        recorded, live = recorded_and_live(*observed_cluster, made, tmp_path / "trace.jsonl")
        expected = {name: pytest.approx(live[name], abs=TOLERANCE) for name in live}
        if recorded == expected:
            break
    assert recorded == expected
    assert {bucket for bucket in RUNS[made] if live[bucket] < LEAST_SHARE} == set()
