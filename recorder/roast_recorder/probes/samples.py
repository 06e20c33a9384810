"""Samples of all workers, as of their last heartbeats, and of the scheduler itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import monotonic, thread_time, time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from roast_recorder.probes import SchedulerProbe
from roast_recorder.scheduler.wire_format import Record, Row, present

if TYPE_CHECKING:
    from distributed.scheduler import WorkerState


#: Maximum number of workers that are sampled before the scheduler's own work continues.
WORKERS_PER_STEP = 1_000

#: Maximum number of samples of workers per second: twice as many as the heartbeats that Dask
#: lets all workers of a large cluster send together. More would repeat their values.
MAX_SAMPLES_PER_SECOND = 400

#: Values of a sample of a worker; those of :data:`WORKER_METRICS` follow.
WORKER_SAMPLE: Final = (
    "worker", "server_id", "memory_limit", "nthreads", "processing", "executing",
    "occupancy", "nbytes", "last_seen",
)  # fmt: skip

#: The ``metrics`` of a sample, None if the worker did not report them.
WORKER_METRICS: Final = (
    "cpu", "memory", "managed_bytes", "spilled_memory", "spilled_disk", "ready",
    "event_loop_interval", "num_fds", "incoming_bytes", "outgoing_bytes",
    "host_net_read_bps", "host_net_write_bps", "host_disk_read_bps", "host_disk_write_bps",
)  # fmt: skip


class OnScheduler(SchedulerProbe):
    """Sample in intervals, and at the end."""

    _due = 0.0  # on the monotonic clock: when workers are sampled again

    def _install(self) -> None:
        interval = self.core.settings["sample_interval_seconds"]
        self.core.tap.every("worker_sample", interval, self._sample_in_steps)

    async def _sample_in_steps(self) -> None:
        """Sample; a scheduler of thousands of workers does its own work in between."""
        workers = self._all_workers() if monotonic() >= self._due else []
        if workers:
            self._due = monotonic() + len(workers) / MAX_SAMPLES_PER_SECOND
        for first in range(WORKERS_PER_STEP, len(workers), WORKERS_PER_STEP):
            self._sample_workers(workers[first : first + WORKERS_PER_STEP])
            await asyncio.sleep(0)
        self.sample(workers[:WORKERS_PER_STEP])

    def finish(self) -> None:
        """Sample once more."""
        self.sample(self._all_workers())

    def sample(self, workers: Sequence[WorkerState]) -> None:
        """Sample some workers and the scheduler."""
        self._sample_workers(workers)
        if "scheduler_sample" in self.core.kinds:
            with self.core.tap.guard("scheduler_sample"):
                read = partial(self.core.tap.read, "scheduler_sample", self.core.scheduler)
                metrics = scheduler_metrics(read)
                self.core.record("scheduler_sample", server_id=read("id"), metrics=metrics)

    def _all_workers(self) -> list[WorkerState]:
        workers = self.core.tap.read("worker_sample", self.core.scheduler, "workers") or {}
        return list(workers.values())

    def _sample_workers(self, workers: Sequence[WorkerState]) -> None:
        if "worker_sample" in self.core.kinds:
            with self.core.tap.guard("worker_sample"):
                try:
                    samples = list(map(worker_sample, workers))
                except Exception:  # noqa: BLE001 - one of the facts is missing
                    samples = list(map(self._odd_worker_sample, workers))
                if samples:
                    self.core.append(("worker_sample", time(), len(samples), samples))

    def _odd_worker_sample(self, worker: WorkerState) -> Row:
        """Return the values of a sample that can be read; the others are None."""
        read = partial(self.core.tap.read, "worker_sample", worker)
        facts = [read(name) for name in ("address", *WORKER_SAMPLE[1:])]
        # `processing` and `executing` are containers.
        facts = [len(fact) if isinstance(fact, (dict, set)) else fact for fact in facts]
        metrics: Row = (None,) * len(WORKER_METRICS)
        with self.core.tap.guard("worker_sample", 0):
            others: dict[str, Any] = dict.fromkeys(("address", *WORKER_SAMPLE), ())
            stand_in: Any = SimpleNamespace(**others, metrics=read("metrics") or {})
            metrics = worker_sample(stand_in)[len(WORKER_SAMPLE) :]
        return (*facts, *metrics)


_NOTHING: Final[dict[str, Any]] = {}


def worker_sample(worker: WorkerState) -> Row:
    """Return the values of a sample, from the worker's last heartbeat."""
    # A dict of fields would cost half as much again, which matters with thousands of workers.
    metrics = worker.metrics
    spilled = metrics.get("spilled_bytes", _NOTHING)
    transfer = metrics.get("transfer", _NOTHING)
    net = metrics.get("host_net_io", _NOTHING)
    disk = metrics.get("host_disk_io", _NOTHING)
    return (
        worker.address, worker.server_id, worker.memory_limit, worker.nthreads,
        len(worker.processing), len(worker.executing), worker.occupancy, worker.nbytes,
        worker.last_seen,
        metrics.get("cpu"), metrics.get("memory"), metrics.get("managed_bytes"),
        spilled.get("memory"), spilled.get("disk"),
        metrics.get("task_counts", _NOTHING).get("ready", 0),
        metrics.get("event_loop_interval"), metrics.get("num_fds"),
        transfer.get("incoming_bytes"), transfer.get("outgoing_bytes"),
        net.get("read_bps"), net.get("write_bps"),
        disk.get("read_bps"), disk.get("write_bps"),
    )  # fmt: skip


def scheduler_metrics(read: Callable[[str], Any]) -> Record:
    """Return the ``metrics`` of a sample of the scheduler; call it on its event loop.

    `read` returns an attribute of the scheduler, or None.
    """
    monitor = read("monitor")
    recent = {} if monitor is None else monitor.recent()
    metrics = {
        "cpu": recent.get("cpu"),
        "memory": recent.get("memory"),
        "event_loop_interval": read("_tick_interval_observed"),  # no public attribute
        "num_fds": recent.get("num_fds"),
        "loop_cpu_seconds": thread_time(),
    }
    for host, name in (("host_net", "host_net_io"), ("host_disk", "host_disk_io")):
        for direction in ("read_bps", "write_bps"):
            metrics[f"{host}_{direction}"] = recent.get(f"{name}.{direction}")
    return present(metrics)


def _worker_samples(kind: str, t: float, samples: list[Row]) -> Iterator[Record]:
    """Yield the samples of all workers at one tick."""
    for values in samples:
        fields = dict(zip(WORKER_SAMPLE, values, strict=False))
        metrics = zip(WORKER_METRICS, values[len(WORKER_SAMPLE) :], strict=True)
        fields["metrics"] = present(dict(metrics))
        yield present({"kind": kind, "t": t, **fields})


DECODERS = {"worker_sample": _worker_samples}
