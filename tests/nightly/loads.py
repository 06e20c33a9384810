"""Load of the scheduler, stalls of event loops, size of the cluster, activity of the client."""

from nightly.processes import presence
from nightly.recording import Recording, Row
from nightly.totals import grouped


def scheduler_samples(recording: Recording) -> list[Row]:
    """Return one row per sample of the scheduler."""
    rows = []
    before: dict[str, tuple[float, float | None]] = {}
    for line in recording.of("scheduler_sample"):
        metrics = line.get("metrics") or {}
        seconds = metrics.get("loop_cpu_seconds")
        before_t, before_seconds = before.get(line["server_id"], (line["t"], None))
        percent = None
        if seconds is not None and before_seconds is not None and line["t"] > before_t:
            percent = 100 * (seconds - before_seconds) / (line["t"] - before_t)
        before[line["server_id"]] = line["t"], seconds
        rows.append(
            {
                "t": line["t"],
                "cpu_percent": metrics.get("cpu"),
                "loop_cpu_percent": percent if percent is not None and percent >= 0 else None,
                "event_loop_interval_seconds": metrics.get("event_loop_interval"),
                "memory_bytes": metrics.get("memory"),
                "num_fds": metrics.get("num_fds"),
                **{
                    f"host_{name}_bps": metrics.get(f"host_{name}_bps")
                    for name in ("net_read", "net_write", "disk_read", "disk_write")
                },
                "server_id": line["server_id"],
            }
        )
    return rows


def stalls(recording: Recording) -> list[Row]:
    """Return one row per stall of an event loop."""
    return [
        {
            "process": "worker" if line.get("worker") else "scheduler",
            "worker": line.get("worker"),
            "start_t": line["start_t"],
            "stop_t": line["stop_t"],
            "seconds": line["stop_t"] - line["start_t"],
            "server_id": line["server_id"],
        }
        for line in recording.of("stall")
    ]


def client_activity(recording: Recording) -> list[Row]:
    """Return one row per interval of an activity."""
    return [
        {
            "client": line["client"],
            "start_t": line["start_t"],
            "stop_t": line["stop_t"],
            "seconds": line["stop_t"] - line["start_t"],
            "activity": line["activity"],
            "function": line["name"],
            "filename": line.get("filename"),
            "cpu_seconds": line["measured"]["cpu_seconds"],
        }
        for line in recording.of("client_activity")
    ]


def cluster_sizes(recording: Recording) -> list[Row]:
    """Return one row per change of the cluster's size."""
    rows = []
    for client, lines in grouped(
        recording.of("cluster_size"), lambda line: line["client"]
    ).items():
        for line, after in zip(lines, [*lines[1:], {}], strict=True):
            t = line["t"]
            rows.append(
                {
                    "t": t,
                    "until_t": after.get("t"),
                    "planned": line["value"]["planned"],
                    "requested": line["value"]["requested"],
                    "joined": sum(start <= t < stop for start, stop, _ in presence(recording)),
                    "client": client,
                }
            )
    return rows
