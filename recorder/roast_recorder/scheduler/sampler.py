"""Samples: what the scheduler knows of each worker at a tick.

Nobody is asked for anything: every figure is one that the worker's last heartbeat has
brought, or that the scheduler keeps for its own use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from roast_recorder.scheduler.wire_format import WORKER_SAMPLE

if TYPE_CHECKING:
    from distributed.scheduler import WorkerState

#: What stands in a worker sample row after tag and time: fields of the record, in order …
SAMPLE_FIELDS: Final = (
    "worker",
    "server_id",
    "memory_limit",
    "nthreads",
    "processing",
    "executing",
    "occupancy",
    "nbytes",
    "last_seen",
)

#: … and then those that lie in its ``metrics``.
WORKER_METRICS: Final = (
    "cpu",
    "memory",
    "managed_bytes",
    "spilled_memory",
    "spilled_disk",
    "ready",
    "event_loop_interval",
    "num_fds",
    "incoming_bytes",
    "outgoing_bytes",
    "host_net_read_bps",
    "host_net_write_bps",
    "host_disk_read_bps",
    "host_disk_write_bps",
)

_NOTHING: dict[str, Any] = {}


def sample_row(worker_state: WorkerState, t: float) -> tuple[Any, ...]:
    """Build the row of one worker at one tick.

    Parameters
    ----------
    worker_state : WorkerState
        The scheduler's view of the worker.
    t : float
        Time of the tick; all workers of a tick share it.
    """
    metrics = worker_state.metrics
    spilled = metrics.get("spilled_bytes", _NOTHING)
    transfer = metrics.get("transfer", _NOTHING)
    net = metrics.get("host_net_io", _NOTHING)
    disk = metrics.get("host_disk_io", _NOTHING)
    return (
        WORKER_SAMPLE,
        t,
        worker_state.address,
        worker_state.server_id,
        worker_state.memory_limit,
        worker_state.nthreads,
        len(worker_state.processing),
        len(worker_state.executing),
        worker_state.occupancy,
        worker_state.nbytes,
        worker_state.last_seen,
        metrics.get("cpu"),
        metrics.get("memory"),
        metrics.get("managed_bytes"),
        spilled.get("memory"),
        spilled.get("disk"),
        metrics.get("task_counts", _NOTHING).get("ready", 0),
        metrics.get("event_loop_interval"),
        metrics.get("num_fds"),
        transfer.get("incoming_bytes"),
        transfer.get("outgoing_bytes"),
        net.get("read_bps"),
        net.get("write_bps"),
        disk.get("read_bps"),
        disk.get("write_bps"),
    )
