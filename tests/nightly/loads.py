"""Load of scheduler and hosts, stalls of event loops, size of the cluster, client activity."""

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


def host_samples(recording: Recording) -> list[Row]:
    """Return one row per sample of a host."""
    rows = []
    earlier: dict[tuple, dict] = {}
    for line in recording.of("host_sample"):
        now = line["metrics"]
        affinity = now.get("usable_cores", now.get("cores"))
        process = line["host"], line["server_id"], affinity
        before = earlier.get(process, {})
        earlier[process] = now
        seconds = now["clock_seconds"] - before.get("clock_seconds", now["clock_seconds"])

        def grown(name: str, now=now, before=before, seconds=seconds) -> float | None:
            """Return what a counter grew by; None if that is not known."""
            if (
                seconds < 0.2
                or name not in now
                or name not in before
                or now[name] < before[name]
            ):
                return None
            return now[name] - before[name]

        def rate(name: str, seconds=seconds, grown=grown) -> float | None:
            more = grown(name)
            return None if more is None else 100 * more / seconds

        idle = [rate("host_idle_seconds"), rate("host_iowait_seconds")]
        free = rate("usable_idle_seconds")
        if "usable_idle_seconds" not in now and None not in idle:
            free = sum(idle)
        periods, throttled = grown("cgroup_periods"), grown("cgroup_throttled_periods")
        busy, waiting = grown("threads_busy_seconds"), grown("threads_waiting_seconds")
        usable = [now[name] for name in ("usable_cores", "cgroup_cores") if name in now]
        rows.append(
            {
                "t": line["t"],
                "host": line["host"],
                "worker": line.get("worker"),
                "cores": now.get("cores"),
                "usable_cores": min(usable, default=None),
                "load_average": now.get("load_average"),
                "seconds": seconds if seconds >= 0.2 else None,
                "cpu_percent": rate("host_busy_seconds"),
                "free_percent": free,
                "steal_percent": rate("host_steal_seconds"),
                "cgroup_cpu_percent": rate("cgroup_busy_seconds"),
                "throttled_percent": (
                    100 * throttled / periods
                    if "cgroup_cores" in now and throttled is not None and periods
                    else None
                ),
                "throttled_seconds": grown("cgroup_throttled_seconds"),
                "cpu_pressure_percent": rate("cpu_pressure_seconds"),
                "waiting_percent": (
                    100 * waiting / (waiting + busy)
                    if waiting is not None and busy is not None and waiting + busy
                    else None
                ),
                "cgroup_pressure_percent": rate("cgroup_pressure_seconds"),
                "io_pressure_percent": rate("io_pressure_seconds"),
                "io_full_pressure_percent": rate("io_full_pressure_seconds"),
                "iowait_percent": idle[1],
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
