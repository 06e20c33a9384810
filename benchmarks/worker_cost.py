"""Measure the overhead of observing worker logs: ``make benchmark-worker``.

It prints three tables.

**In one process**: the state machine of a worker, without network, completes tasks that are not
executed; its logs are taken after every 1,000 tasks, as after a heartbeat, or not at all. The
CPU time of this process is compared in pairs.

**On a cluster**: the same tasks are recorded with ``transfers`` and ``worker_transitions`` on
and off in random order; the CPU time of all workers' processes is compared in pairs. Each task
performs the same work of about 10 ms, or none. On a shared machine, the speed of the CPU varies
by more than the overhead. If tasks work, the CPU time of the workers is therefore divided by
the CPU time of the tasks' own loops.

**Samples of a host**: the CPU time of a sample, and of an attempt at one while another worker
samples the host, in a process with ten threads.
"""

from __future__ import annotations

import argparse
import gc
import logging
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

from distributed import Client, LocalCluster
from distributed.worker_state_machine import (
    ComputeTaskEvent,
    ExecuteSuccessEvent,
    FreeKeysEvent,
    WorkerState,
)

import roast_recorder
from roast_recorder.probes.host import HostSampler
from roast_recorder.probes.worker_logs import OnWorker
from roast_recorder.scheduler.tap import Tap
from roast_recorder.settings import Settings
from roast_recorder.worker.plugin import WorkerRecorder

#: Tasks between two heartbeats.
TASKS_A_BEAT = 1_000

#: Loop iterations of a task of about 10 ms.
LOOPS = 360_000

#: Dependencies of each task in the second half of a cluster's run.
TAKEN = 2


@dataclass(frozen=True)
class Spent:
    """CPU seconds of all workers in a run, and the part spent in the tasks themselves."""

    cpu_seconds: float
    own_seconds: float

    def times(self, other: Spent, *, by_own: bool) -> float:
        """Return the ratio of this run's cost to that of another.

        If `by_own`, each cost is divided by the CPU seconds of the run's own tasks.
        """
        if by_own:
            return (self.cpu_seconds / self.own_seconds) / (
                other.cpu_seconds / other.own_seconds
            )
        return self.cpu_seconds / other.cpu_seconds


def worker_of(state: WorkerState) -> Any:
    """Return an object with the attributes of a worker that the probe uses."""
    return SimpleNamespace(
        state=state,
        scheduler_delay=0.0,
        data={},
        id="Worker",
        contact_address="tcp://127.0.0.1:1",
        handlers={"update_data": lambda **_: None},
        transfer_incoming_log=state.stimulus_log.copy(),
        transfer_outgoing_log=state.stimulus_log.copy(),
    )


def logs_of(worker: Any, **settings: bool) -> OnWorker:
    """Return the probe of a worker's logs."""
    core = WorkerRecorder("benchmark", Settings(**settings).as_dict())
    core.worker, core.tap = worker, Tap(lambda *_: None)
    return OnWorker(core)


def transitions_cost(tasks: int, *, recorded: bool) -> tuple[float, int]:
    """Return the CPU seconds of a state machine for some tasks, and its transition count."""
    state = WorkerState(address="tcp://127.0.0.1:1", validate=False)
    logs = None
    if recorded:
        logs = logs_of(worker_of(state), worker_transitions=True)
    gc.collect()
    begun = time.process_time()
    for number in range(tasks):
        key = f"task-{number:032x}"
        state.handle_stimulus(
            ComputeTaskEvent.dummy(key, stimulus_id=f"compute-task-{time.time()}")
        )
        state.handle_stimulus(
            ExecuteSuccessEvent.dummy(key, stimulus_id=f"task-finished-{time.time()}")
        )
        state.handle_stimulus(FreeKeysEvent(keys=[key], stimulus_id=f"free-keys-{time.time()}"))
        if logs is not None and number % TASKS_A_BEAT == 0:
            logs.take_last()
    return time.process_time() - begun, state.transition_counter


def transfers_cost(transfers: int, *, recorded: bool) -> float:
    """Return the CPU seconds of logging transfers of four results each."""
    worker = worker_of(WorkerState(address="tcp://127.0.0.1:1", validate=False))
    logs = None
    if recorded:
        logs = logs_of(worker, transfers=True)
    gc.collect()
    begun = time.process_time()
    for number in range(transfers):
        worker.transfer_incoming_log.append(
            {
                "start": 1.0,
                "stop": 2.0,
                "middle": 1.5,
                "duration": 1.0,
                "keys": {f"task-{number:032x}-{part}": 1000 for part in range(4)},
                "total": 4000,
                "bandwidth": 4000.0,
                "who": "tcp://127.0.0.1:2",
            }
        )
        if logs is not None and number % TASKS_A_BEAT == 0:
            logs.take_last()
    return time.process_time() - begun


def extra_seconds(measure: Callable[[bool], float], pairs: int) -> tuple[float, float]:
    """Return the median seconds without observation, and the median overhead."""
    alone, extra = [], []
    for pair in range(pairs + 1):
        order = [True, False]
        random.shuffle(order)
        found = {recorded: measure(recorded) for recorded in order}
        if pair:  # the first pair fills caches
            alone.append(found[False])
            extra.append(found[True] - found[False])
    return statistics.median(alone), statistics.median(extra)


def work(loops: int, *_taken: Any) -> float:
    """Do the same amount of work each time; return its CPU seconds."""
    begun = time.thread_time()
    number = 0
    while number < loops:
        number += 1
    return time.thread_time() - begun


def run_on(client: Client, tasks: int, loops: int, trace: Path, *, asked: bool) -> Spent:
    """Run tasks that use each other's results; return the CPU time of all workers."""

    def cpu_seconds() -> float:
        return sum(client.run(time.process_time).values())

    with roast_recorder.record(client, trace, transfers=asked, worker_transitions=asked):
        before = cpu_seconds()
        # Not pure, because Dask would return the results of the previous run.
        first = client.map(work, [loops] * (tasks // 2), pure=False)
        taken = [random.sample(first, TAKEN) for _ in range(tasks - tasks // 2)]
        last = [client.submit(work, loops, *some, pure=False) for some in taken]
        own = sum(client.gather(first)) + sum(client.gather(last))
        del first, taken, last
        time.sleep(1.5)  # until the workers have sent their last records
        return Spent(cpu_seconds() - before, own)


def cluster_cost(tasks: int, loops: int, pairs: int) -> tuple[float, list[float]]:
    """Return the median CPU seconds without observation, and each pair's overhead."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        trace = Path(folder) / "trace.jsonl.zst"
        run_on(client, tasks, loops, trace, asked=True)
        alone, added = [], []
        for _ in range(pairs):
            order = [True, False]
            random.shuffle(order)
            found = {asked: run_on(client, tasks, loops, trace, asked=asked) for asked in order}
            alone.append(found[False].cpu_seconds)
            added.append(found[True].times(found[False], by_own=loops > 0) - 1)
    return statistics.median(alone), added


def print_by_itself(rounds: int) -> None:
    """Print the first table."""
    tasks = 20_000
    _, transitions = transitions_cost(1_000, recorded=False)
    rows = {
        "transition": (
            extra_seconds(
                lambda recorded: transitions_cost(tasks, recorded=recorded)[0],
                rounds,
            ),
            transitions / 1_000 * tasks,
        ),
        "transfer": (
            extra_seconds(lambda recorded: transfers_cost(tasks, recorded=recorded), rounds),
            tasks,
        ),
    }
    print("| event on a worker | time (µs) | overhead (µs) |")
    print("| --- | ---: | ---: |")
    for what, ((alone, extra), number) in rows.items():
        print(f"| a {what} | {alone / number * 1e6:.2f} | {extra / number * 1e6:+.2f} |")


def print_on_a_cluster(pairs: int) -> None:
    """Print the second table."""
    print(
        "\n| tasks | pairs | CPU time per task (ms) | overhead, median (%) | "
        "quartiles (%) | standard error of the median |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for what, tasks, loops in (("of 10 ms", 600, LOOPS), ("no-op", 2_000, 0)):
        alone, added = cluster_cost(tasks, loops, pairs)
        low, median, high = statistics.quantiles(added, n=4)
        # Standard error of a median, from the distance of quartiles of a normal distribution.
        error = 0.93 * (high - low) / math.sqrt(pairs)
        print(
            f"| {tasks:,} {what} | {pairs} | {alone / tasks * 1e3:.2f} | {median:+.2%} | "
            f"{low:+.2%} to {high:+.2%} | {error:.2%} |",
            flush=True,
        )


def print_host_samples(samples: int) -> None:
    """Print the third table."""
    ended = Event()
    threads = [Thread(target=ended.wait) for _ in range(9)]
    for thread in threads:
        thread.start()
    first, second = HostSampler("benchmark"), HostSampler("benchmark")
    print("\n| samples of a host | CPU time (µs) |")
    print("| --- | ---: |")
    for what, sampler in {"a sample": first, "another worker samples": second}.items():
        sampler.take()
        begun = time.thread_time()
        for _ in range(samples):
            sampler.take()
        print(f"| {what} | {(time.thread_time() - begun) / samples * 1e6:.0f} |", flush=True)
    first.close()
    ended.set()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="rounds of the first table")
    parser.add_argument(
        "--pairs", type=int, default=15, help="pairs of runs of the second table"
    )
    parser.add_argument(
        "--samples", type=int, default=10_000, help="samples of the third table"
    )
    options = parser.parse_args()
    print_by_itself(options.rounds)
    print_on_a_cluster(options.pairs)
    print_host_samples(options.samples)


if __name__ == "__main__":
    main()
