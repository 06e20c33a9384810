"""Workers, their samples and pauses."""

from nightly.chunks import chunk_attempts
from nightly.processes import process_of, processes
from nightly.recording import Recording, Row, once
from nightly.totals import column, grouped, least, most

#: Columns of samples by the name of the field.
SAMPLED = {
    "nthreads": "nthreads",
    "processing": "processing",
    "executing": "executing",
    "occupancy_seconds": "occupancy",
    "stored_bytes": "nbytes",
    "last_seen_t": "last_seen",
    "server_id": "server_id",
}

#: Columns of samples by the name of the worker's metric.
METRICS = {
    "cpu_percent": "cpu",
    "memory_bytes": "memory",
    "spilled_bytes": "spilled_disk",
    "ready": "ready",
    "event_loop_interval_seconds": "event_loop_interval",
    "num_fds": "num_fds",
    "incoming_bytes": "incoming_bytes",
    "outgoing_bytes": "outgoing_bytes",
    "host_net_read_bps": "host_net_read_bps",
    "host_net_write_bps": "host_net_write_bps",
    "host_disk_read_bps": "host_disk_read_bps",
    "host_disk_write_bps": "host_disk_write_bps",
}


@once
def worker_samples(recording: Recording) -> list[Row]:
    """Return one row per worker and tick."""
    rows = []
    for line in recording.of("worker_sample"):
        metrics = line.get("metrics") or {}
        managed = metrics.get("managed_bytes")
        if managed is not None:
            # Of results in memory: Dask counts spilled ones as managed.
            managed = max(managed - (metrics.get("spilled_memory") or 0), 0)
        rows.append(
            {
                "t": line["t"],
                "worker": line.get("worker"),
                "memory_limit_bytes": line.get("memory_limit") or None,
                **{name: line.get(field) for name, field in SAMPLED.items()},
                **{name: metrics.get(field) for name, field in METRICS.items()},
                "managed_bytes": managed,
            }
        )
    return rows


def pauses(recording: Recording) -> list[Row]:
    """Return one row per pause, until the worker reports another status or leaves."""
    return [
        {
            "worker": line["worker"],
            "start_t": line["t"],
            "stop_t": stop,
            "seconds": None if stop is None else stop - line["t"],
        }
        for line, stop in statuses(recording)
        if line["payload"].get("status") == "paused"
    ]


def statuses(recording: Recording) -> list[tuple[dict, float | None]]:
    """Return the reports of statuses, and when the worker reports another one or leaves."""
    found = []
    changes = [
        line
        for line in recording.of("event")
        if line["topic"] == line.get("worker")
        and isinstance(line.get("payload"), dict)
        and line["payload"].get("action") == "worker-status-change"
    ]
    for n, line in enumerate(changes):
        ends = [
            *(after["t"] for after in changes[n + 1 :] if after["worker"] == line["worker"])
        ][:1]
        gone = [
            process.removed["t"]
            for process in processes(recording)
            if process.address == line["worker"] and process.removed is not None
        ]
        stop = least([*ends, least([t for t in gone if t >= line["t"]])])
        found.append((line, stop))
    return found


def workers(recording: Recording) -> list[Row]:
    """Return one row per process, in the order in which they joined.

    Sums of attempts and chunks are not included.
    """
    fields = (
        "name", "host", "nthreads", "server_id", "pid", "nanny", "resources", "local_directory",
    )  # fmt: skip
    chunks = grouped(chunk_attempts(recording), lambda row: row["process"])
    samples = grouped(
        worker_samples(recording), lambda row: process_of(recording, row["worker"], row["t"])
    )
    return [
        {
            "worker": process.address,
            **{name: process.added.get(name) for name in fields},
            "memory_limit_bytes": process.added.get("memory_limit") or None,
            "added_t": process.added.get("t"),
            "removed_t": process.removed and process.removed["t"],
            "removal_reason": process.reason,
            "peak_memory_bytes": most(
                [
                    *column(chunks.get(number, []), "memory_peak_bytes"),
                    *column(samples.get(number, []), "memory_bytes"),
                    process.kill_bytes,
                ]
            ),
        }
        for number, process in enumerate(processes(recording))
    ]
