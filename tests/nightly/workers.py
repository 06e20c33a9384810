"""Workers: totals, samples and pauses."""

from nightly.chunks import FAILED, chunk_attempts
from nightly.datasets import bytes_per_second, seconds_without_checkpoint, slowest
from nightly.processes import process_of, processes
from nightly.recording import Recording, Row, once
from nightly.relative_duration import slow_processes
from nightly.tasks import task_runs
from nightly.totals import column, grouped, least, median, most, ratio, relative_iqr, total

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


def cluster_samples(recording: Recording) -> list[Row]:
    """Return one row per tick, summed over workers."""
    summed = (
        "nthreads", "cpu_percent", "memory_bytes", "memory_limit_bytes", "managed_bytes",
        "spilled_bytes", "processing", "executing", "ready", "occupancy_seconds",
        "stored_bytes",
    )  # fmt: skip
    return [
        {"t": t, "workers": len(rows)} | {name: total(r[name] for r in rows) for name in summed}
        for t, rows in grouped(worker_samples(recording), lambda row: row["t"]).items()
    ]


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
    """Return one row per process, in the order in which they joined."""
    attempts = grouped(chunk_attempts(recording), lambda row: row["process"])
    everything = total(
        row["compute_seconds"]
        for row in chunk_attempts(recording)
        if row["process"] is not None
    )
    unknown = {"relative_duration": None, "relative_duration_error": None, "is_slow": None}
    fields = (
        "name", "host", "nthreads", "server_id", "pid", "nanny", "resources", "local_directory",
    )  # fmt: skip
    rows = []
    for number, process in enumerate(processes(recording)):
        runs = [
            run
            for run in task_runs(recording)
            if process_of(recording, run["worker"], run["processing_t"]) == number
        ]
        samples = [
            row
            for row in worker_samples(recording)
            if process_of(recording, row["worker"], row["t"]) == number
        ]
        chunks = attempts.get(number, [])
        alone = [row for row in chunks if not row["has_task"]]
        ended_well = [row for row in chunks if row["outcome"] == "memory"]
        seconds = total(column(chunks, "compute_seconds"))
        events = total(column(chunks, "events"))
        memory = [*column(chunks, "memory_peak_bytes"), *column(samples, "memory_bytes")]
        rows.append(
            {
                "worker": process.address,
                **{name: process.added.get(name) for name in fields},
                "memory_limit_bytes": process.added.get("memory_limit") or None,
                "added_t": process.added.get("t"),
                "removed_t": process.removed and process.removed["t"],
                "removal_reason": process.reason,
                "task_runs": len(runs),
                "compute_seconds": sum(column([*runs, *alone], "compute_seconds")),
                "output_bytes": sum([*column(runs, "nbytes"), *column(alone, "output_bytes")]),
                "chunks": len(ended_well),
                "events": events if ended_well else 0,
                "bytes_read": total(column(chunks, "bytes_read")),
                "failed_chunks": sum(row["outcome"] in FAILED for row in chunks),
                "chunk_seconds": seconds,
                "chunk_share": ratio(seconds, everything),
                "events_per_second": ratio(events, seconds_without_checkpoint(chunks)),
                "bytes_per_second": bytes_per_second(chunks),
                "median_chunk_seconds": median(column(ended_well, "compute_seconds")),
                "max_chunk_seconds": most(column(ended_well, "compute_seconds")),
                "relative_iqr": relative_iqr(column(chunks, "event_seconds")),
                "slowest_file": slowest(chunks, "filename"),
                "peak_memory_bytes": most([*memory, process.kill_bytes]),
                **slow_processes(recording).get(number, unknown),
            }
        )
    return rows
