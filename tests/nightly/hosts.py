"""Samples of hosts."""

from nightly.recording import Recording, Row


def host_samples(recording: Recording) -> list[Row]:
    """Return one row per sample of a host."""
    rows = []
    earlier: dict[tuple, dict] = {}
    counted: set[tuple] = set()
    for line in recording.of("host_sample"):
        now = line["metrics"]
        affinity = now.get("usable_cores", now.get("cores"))
        process = line["host"], line["server_id"], affinity
        before = dict(earlier.get(process, {}))
        earlier[process] = now
        for name in ("threads_busy_seconds", "threads_waiting_seconds"):
            # Threads for tasks start with the first ones.
            if before and (process, name) not in counted:
                before.setdefault(name, 0.0)
            if name in now:
                counted.add((process, name))
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
                "native_threads": now.get("native_threads"),
                "native_cpu_percent": rate("native_busy_seconds"),
                "native_waiting_percent": rate("native_waiting_seconds"),
                "server_id": line["server_id"],
            }
        )
    return rows
