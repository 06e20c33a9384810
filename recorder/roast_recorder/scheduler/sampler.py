"""Samples: the state of each worker at a tick.

No worker is asked. Every value comes from the worker's last heartbeat or from the
scheduler's own bookkeeping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed.scheduler import WorkerState

_NOTHING: dict[str, Any] = {}


def sample(worker_state: WorkerState) -> dict[str, Any]:
    """Return the fields of a ``worker_sample`` record.

    Values that the worker did not report are null.
    """
    metrics = worker_state.metrics
    spilled = metrics.get("spilled_bytes", _NOTHING)
    transfer = metrics.get("transfer", _NOTHING)
    net = metrics.get("host_net_io", _NOTHING)
    disk = metrics.get("host_disk_io", _NOTHING)
    return {
        "worker": worker_state.address,
        "server_id": worker_state.server_id,
        "memory_limit": worker_state.memory_limit,
        "nthreads": worker_state.nthreads,
        "processing": len(worker_state.processing),
        "executing": len(worker_state.executing),
        "occupancy": worker_state.occupancy,
        "nbytes": worker_state.nbytes,
        "last_seen": worker_state.last_seen,
        "metrics": {
            "cpu": metrics.get("cpu"),
            "memory": metrics.get("memory"),
            "managed_bytes": metrics.get("managed_bytes"),
            "spilled_memory": spilled.get("memory"),
            "spilled_disk": spilled.get("disk"),
            "ready": metrics.get("task_counts", _NOTHING).get("ready", 0),
            "event_loop_interval": metrics.get("event_loop_interval"),
            "num_fds": metrics.get("num_fds"),
            "incoming_bytes": transfer.get("incoming_bytes"),
            "outgoing_bytes": transfer.get("outgoing_bytes"),
            "host_net_read_bps": net.get("read_bps"),
            "host_net_write_bps": net.get("write_bps"),
            "host_disk_read_bps": disk.get("read_bps"),
            "host_disk_write_bps": disk.get("write_bps"),
        },
    }
