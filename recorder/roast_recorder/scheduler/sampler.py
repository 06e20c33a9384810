"""Samples: the state of each worker at a tick.

No worker is asked. Every value comes from the worker's last heartbeat or from the
scheduler's own bookkeeping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed.scheduler import WorkerState

_NOTHING: dict[str, Any] = {}


def sample(worker_state: WorkerState) -> tuple[Any, ...]:
    """Return the values of one worker for a row of kind ``worker_sample``.

    :mod:`~roast_recorder.scheduler.wire_format` names the values; those that the worker did
    not report are None. A dict of fields would cost half as much again, which matters with
    thousands of workers.
    """
    metrics = worker_state.metrics
    spilled = metrics.get("spilled_bytes", _NOTHING)
    transfer = metrics.get("transfer", _NOTHING)
    net = metrics.get("host_net_io", _NOTHING)
    disk = metrics.get("host_disk_io", _NOTHING)
    return (
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
