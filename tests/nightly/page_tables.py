"""The rows that tables of the page should have, computed by the plain Python beside this
module.

Nothing here imports roast. Every table and column of the page must be listed in :data:`TABLES`.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass

from nightly import (
    chunks,
    core_time,
    costs,
    critical_path,
    datasets,
    failures,
    profiles,
    sections,
    setup,
    spans,
    stragglers,
    tasks,
    trace,
    transfers,
    workers,
)
from nightly.recording import Recording, Row
from nightly.totals import column, grouped, ratio, total

#: Most characters of an exception, of a traceback, and of a payload or a fact.
EXCEPTION, TRACEBACK, VALUE = 1000, 2000, 240


@dataclass(frozen=True)
class Expected:
    """A table of the page."""

    #: All columns in order; those with a question mark are left out if all rows have zero.
    columns: str
    #: Returns all rows in order.
    rows: Callable[[Recording], list[Row]]
    #: Number of rows that the page shows.
    limit: int

    def shown(self, recording: Recording) -> list[Row]:
        """Return the rows that the page shows."""
        return self.rows(recording)[: self.limit]

    def columns_of(self, rows: list[Row]) -> list[str]:
        """Return the first column and the columns that are not empty."""
        names = [name.removesuffix("?") for name in self.columns.split()]
        optional = {name[:-1] for name in self.columns.split() if name.endswith("?")}
        return [
            name
            for n, name in enumerate(names)
            if n == 0
            or any(
                row[name] is not None and (row[name] or name not in optional) for row in rows
            )
        ]


def in_order(rows: list[Row], *by: str) -> list[Row]:
    """Sort rows by columns, descending after a minus; missing values come last."""

    def place(row: Row) -> list[tuple]:
        values = [(name, row[name.removeprefix("-")]) for name in by]
        return [
            (value is None, 0 if value is None else -value if name[0] == "-" else value)
            for name, value in values
        ]

    return sorted(rows, key=place)


@dataclass(frozen=True)
class Between:
    """A number known to be between two others."""

    least: float
    most: float

    def __bool__(self) -> bool:
        return self.most > 0


def _prefixes(recording: Recording) -> list[Row]:
    runs = grouped(tasks.task_runs(recording), lambda run: run["prefix"])
    rows = [
        row
        | {
            "p95_compute_seconds": _quantile(
                column(runs.get(row["prefix"], []), "compute_seconds"), 0.95
            )
        }
        for row in tasks.prefixes(recording)
    ]
    return in_order(rows, "-compute_seconds", "prefix")


def _quantile(values: list[float], part: float) -> float | None:
    """Interpolate a quantile linearly."""
    if not values:
        return None
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _task_groups(recording: Recording) -> list[Row]:
    """Return the groups, unless each prefix is one group."""
    rows = tasks.task_groups(recording)
    if len(rows) <= len(tasks.prefixes(recording)):
        return []
    return in_order(rows, "-compute_seconds", "task_group")


def _stragglers(recording: Recording) -> list[Row]:
    return in_order(stragglers.stragglers(recording), "-excess_seconds", "key", "attempt")


def _pairs(recording: Recording) -> list[Row]:
    """Sum transfers by source and destination; without them, the transfers of startstops."""
    moved_rows = [
        row | {"seconds": row["stop_t"] - row["start_t"]}
        for row in transfers.transfers(recording)
        if row["source"] is not None and row["destination"] is not None
    ] or [
        {
            "source": part["source"],
            "destination": line["worker"],
            "bytes": None,
            "seconds": part["stop"] - part["start"],
        }
        for line in recording.of("transition")
        for part in line.get("startstops") or []
        if part["action"] == "transfer" and part.get("source") and line.get("worker")
    ]
    rows = [
        {
            "source": source,
            "destination": destination,
            "transfers": len(moved),
            "bytes": total(row["bytes"] for row in moved),
            "seconds": math.fsum(row["seconds"] for row in moved),
        }
        for (source, destination), moved in grouped(
            moved_rows, lambda row: (row["source"], row["destination"])
        ).items()
    ]
    return in_order(rows, "-bytes", "-seconds", "source", "destination")


def _roles(recording: Recording) -> list[Row]:
    rows = tasks.task_roles(recording)
    if not any(row["role"] for row in rows):
        return []
    named = [row | {"role": row["role"] or "(other tasks)"} for row in rows]
    return in_order(named, "-compute_seconds", "role")


def _datasets(recording: Recording) -> list[Row]:
    return in_order(datasets.datasets(recording), "-compute_seconds", "dataset")


def _costs(recording: Recording) -> list[Row]:
    rows = [
        row | {"all": row["chunks"] + row["first_chunks"]}
        for row in costs.chunk_costs(recording)
    ]
    return in_order(rows, "-all", "dataset")


def _files(recording: Recording) -> list[Row]:
    rows = datasets.files(recording)
    return in_order(rows, "-compute_seconds", "dataset", "filename", "treename")


def _branches(recording: Recording) -> list[Row]:
    rows = chunks.branches(recording)
    return in_order(rows, "-read_seconds", "-compressed_bytes", "dataset", "branch")


def _sections(recording: Recording) -> list[Row]:
    return in_order(sections.section_totals(recording), "-seconds", "dataset", "name")


def _chunks(recording: Recording) -> list[Row]:
    rows = [
        row
        | {"well": row["outcome"] == "memory", "exception": failures.cause(row["exception"])}
        for row in chunks.chunks(recording)
    ]
    return in_order(rows, "well", "-compute_seconds", "key", "attempt", "entry_start")


def _workers(recording: Recording) -> list[Row]:
    rows = workers.workers(recording)
    sampled = grouped(
        workers.worker_samples(recording), lambda row: (row["worker"], row["server_id"])
    )
    limited = any(row["memory_limit_bytes"] for some in sampled.values() for row in some)
    numbered = [
        row
        | {"number": _number(row["name"])}
        | _pictured(sampled.get((row["worker"], row["server_id"]), []), limited=limited)
        for row in rows
    ]
    return in_order(numbered, "number", "added_t", "worker")


def _pictured(samples: list[Row], *, limited: bool) -> Row:
    """Return the numbers beside pictures: maxima of samples, or of their means over time, to
    four digits.
    """

    def most(name: str, share: float = 1.0) -> float | None:
        values = column(samples, name)
        return _four_digits(max(values) * share) if values else None

    def mean(name: str, share: float) -> Between | None:
        values = [value * share for value in column(samples, name)]
        if not values:
            return None
        return Between(
            _four_digits(sum(values) / len(values)) * 0.999, _four_digits(max(values))
        )

    shares = [
        row["memory_bytes"] / row["memory_limit_bytes"]
        for row in samples
        if row["memory_bytes"] is not None and row["memory_limit_bytes"]
    ]
    return {
        "max_cpu_cores": mean("cpu_percent", 0.01),
        "max_memory_share": _four_digits(max(shares)) if shares else None,
        "max_memory_bytes": None if limited else most("memory_bytes"),
        "max_spilled_bytes": most("spilled_bytes"),
        "max_executing": mean("executing", 1.0),
    }


def _four_digits(number: float) -> float:
    return float(f"{number:.4g}")


def _number(name: object) -> int | None:
    try:
        return int(str(name))
    except ValueError:
        return None


def _activities(recording: Recording) -> list[Row]:
    """Sum the metrics by context and activity; those of tasks as shares of the thread time."""
    [whole] = trace.run(recording)
    rows = []
    for (context, activity), found in grouped(
        spans.spent(recording), lambda row: (row["context"], row["activity"])
    ).items():
        sums = {
            unit: total(row["value"] for row in found if row["unit"] == unit)
            for unit in ("seconds", "bytes", "count")
        }
        share = ratio(sums["seconds"], whole["core_seconds"]) if context == "execute" else None
        rows.append({"context": context, "activity": activity, "thread_share": share, **sums})
    return in_order(rows, "-seconds", "context", "activity")


def _activities_by(name: str, rows: list[Row]) -> list[Row]:
    sums = [each for each in rows[0] if each.endswith(("seconds", "_bytes"))]
    return in_order(
        [
            {name: value, **{one: total(column(found, one)) for one in sums}}
            for value, found in grouped(rows, lambda row: row[name]).items()
        ],
        "-seconds",
        name,
    )


def _activity_prefixes(recording: Recording) -> list[Row]:
    rows = [row for row in spans.activities(recording) if row["context"] == "execute"]
    return _activities_by("prefix", rows) if rows else []


def _activity_workers(recording: Recording) -> list[Row]:
    rows = spans.activities(recording)
    return _activities_by("worker", rows) if rows else []


def _spans(recording: Recording) -> list[Row]:
    [whole] = trace.run(recording)
    idle = {row["span_id"]: row for row in spans.span_idle(recording)}
    rows = []
    for row in spans.span_totals(recording):
        if row["span_id"] is None:
            continue
        of_threads = idle.get(row["span_id"], {})
        start_t, stop_t, offered, known_seconds, share = map(
            of_threads.get,
            ("start_t", "stop_t", "thread_seconds", "known_seconds", "idle_share"),
        )
        start_t = None if start_t is None else max(start_t, whole["start_t"])
        rows.append(
            row
            | {
                "path": None if row["path"] is None else " / ".join(row["path"]),
                "depth": None if row["path"] is None else len(row["path"]),
                "start_t": start_t,
                "wall_seconds": None
                if None in (start_t, stop_t) or stop_t < start_t
                else stop_t - start_t,
                "thread_seconds": offered,
                "compute_share": ratio(row["total_compute_seconds"], offered),
                "idle_share": None if known_seconds is None else share,
            }
        )
    return in_order(rows, "-total_compute_seconds", "depth", "start_t", "span_id")


def _functions(recording: Recording) -> list[Row]:
    """Sum Dask's samples by function: those of workers, else those of the scheduler."""
    stacks = [row for row in profiles.profile_stacks(recording) if row["profiler"] == "dask"]
    is_worker = any(row["worker"] is not None for row in stacks)
    sampled = [
        row
        | {"samples": row["samples"] + row["ambiguous_samples"]}
        | {"stack": _without_recorder(row)}
        for row in stacks
        if (row["worker"] is not None) == is_worker
    ]
    sampled = [row for row in sampled if row["samples"]]
    whole = math.fsum(row["seconds"] for row in sampled)
    seen = [{"in": name, "row": row} for row in sampled for name in set(row["stack"])]
    rows = []
    for name, found in grouped(seen, lambda one: one["in"]).items():
        inside = [one["row"] for one in found]
        ended = [row for row in inside if row["stack"][-1] == name]
        self_seconds, total_seconds = (
            math.fsum(row["seconds"] for row in some) for some in (ended, inside)
        )
        rows.append(
            {
                "function": name,
                "self_seconds": self_seconds,
                "self_share": self_seconds / whole,
                "total_seconds": total_seconds,
                "total_share": total_seconds / whole,
                "samples": sum(row["samples"] for row in inside),
            }
        )
    # Rows whose printed numbers are equal are sorted by name.
    alike = [
        row | {"self": round(row["self_seconds"], 9), "total": round(row["total_seconds"], 9)}
        for row in rows
    ]
    return in_order(alike, "-self", "-total", "function")


def _without_recorder(row: Row) -> list[str]:
    """Return a stack without functions of the recorder, whose self time has one name."""
    kept = [
        label
        for label, frame in zip(row["stack"], row["frames"], strict=True)
        if not _is_recorder(frame)
    ]
    innermost = row["frames"][-1:]
    return [*kept, "(roast recorder)"] if any(map(_is_recorder, innermost)) else kept


def _is_recorder(frame: dict) -> bool:
    folders = (frame["filename"] or "").replace("\\", "/").split("/")[:-1]
    if "roast_recorder" not in folders:
        return False
    return folders[folders.index("roast_recorder") :][1:2] != ["demo"]


def _core_time(recording: Recording) -> list[Row]:
    used = core_time.core_time(recording)
    [core_seconds] = column(trace.run(recording), "core_seconds") or [None]

    def seconds(parts: list[Row]) -> float | None:
        return math.fsum(part["seconds"] for part in parts) if parts else None

    rows = []
    for prefix, parts in grouped(used, lambda row: row["prefix"]).items():
        if prefix is None:
            continue
        by_use = grouped(parts, lambda row: row["use"])
        others = [p for p in parts if p["category"] == "busy" and p["use"] != "kept result"]
        rows.append(
            {
                "prefix": prefix,
                "thread_seconds": seconds(parts),
                "share": seconds(parts) / core_seconds,
                "kept_seconds": seconds(by_use.get("kept result", [])),
                "other_busy_seconds": seconds(others),
                "transfer_seconds": seconds(by_use.get("transfer", [])),
                "dispatch_seconds": seconds(by_use.get("dispatch", [])),
            }
        )
    return in_order(rows, "-thread_seconds", "prefix")


def _path_causes(recording: Recording) -> list[Row]:
    steps = critical_path.critical_path(recording)
    rows = [
        {
            "cause": cause,
            "prefix": prefix,
            "path_seconds": math.fsum(step["seconds"] for step in some),
            "path_share": math.fsum(step["share"] for step in some),
            "steps": len(some),
        }
        for (cause, prefix), some in grouped(
            steps, lambda step: (step["cause"], step["prefix"])
        ).items()
    ]
    return in_order(rows, "-path_seconds", "cause", "prefix")


def _path_steps(recording: Recording) -> list[Row]:
    return in_order(critical_path.critical_path(recording), "-seconds", "step")


def _failures(recording: Recording) -> list[Row]:
    rows = [
        row
        | {
            "cause": _beginning(row["cause"], EXCEPTION),
            "exception": None
            if row["exception"] == row["cause"]
            else _beginning(row["exception"], EXCEPTION),
        }
        for row in failures.failures(recording)
    ]
    return in_order(rows, "t", "key", "attempt", "worker")


def _beginning(text: str | None, limit: int) -> str | None:
    return text if text is None or len(text) <= limit else text[: limit - 1] + "…"


def traceback(row: Row) -> str:
    """Return the end of a traceback, as the page shows it."""
    text = row.get("traceback") or ""
    return text if len(text) <= TRACEBACK else "…" + text[1 - TRACEBACK :]


def _topics(recording: Recording) -> list[Row]:
    by_topic = grouped(trace.events(recording), lambda row: row["topic"])
    rows = [
        {
            "topic": topic,
            "events": len(events),
            "first_t": min(row["t"] for row in events),
            "last_t": max(row["t"] for row in events),
        }
        for topic, events in by_topic.items()
    ]
    return in_order(rows, "-events", "topic")


def _events(recording: Recording) -> list[Row]:
    rows = [row | {"payload": _json(row["payload"])} for row in trace.events(recording)]
    return in_order(rows, "t", "topic", "worker", "payload")


def _json(value: object) -> str | None:
    if value is None:
        return None
    return _beginning(json.dumps(value, separators=(",", ":"), ensure_ascii=False), VALUE)


def _environment(recording: Recording) -> list[Row]:
    rows = [
        row | {"value": _beginning(row["value"], VALUE)} for row in trace.environment(recording)
    ]
    return in_order(rows, "section", "name", "value")


def _options(recording: Recording) -> list[Row]:
    rows = [
        row
        | {name: _beginning(row[name], VALUE) for name in ("value", "default_value")}
        | {"set_by": row["source_name"] or row["source"]}
        for row in setup.config(recording)
        if row["differs"]
    ]
    return in_order(rows, "name", "process", "value", "set_by")


def _versions(recording: Recording) -> list[Row]:
    rows = [row for row in setup.packages(recording) if row["differs"]]
    return in_order(rows, "package", "process", "version")


def _jobs(recording: Recording) -> list[Row]:
    alike = (
        "process", "system", "queue", "account", "qos", "cores", "memory_limit_bytes",
    )  # fmt: skip
    rows = [
        dict(zip(alike, kind, strict=True))
        | {
            "processes": len(jobs),
            "jobs": len({job["job_id"] for job in jobs}),
            "nodes": len({job["node"] or job["host"] for job in jobs}),
            "first_job": min(job["job_id"] for job in jobs),
        }
        for kind, jobs in grouped(
            setup.jobs(recording), lambda job: tuple(job[name] for name in alike)
        ).items()
    ]
    return in_order(rows, "-processes", "process", "first_job")


def _machines(recording: Recording) -> list[Row]:
    alike = (
        "process", "cpu_model", "cores", "usable_cores", "cgroup_cores", "memory_bytes",
        "cgroup_memory_bytes", "kernel", "python",
    )  # fmt: skip
    known = [row for row in setup.machines(recording) if row["python"] is not None]
    rows = [
        dict(zip(alike, kind, strict=True))
        | {
            "processes": sum(machine["processes"] for machine in machines),
            "hosts": len({machine["host"] for machine in machines}),
            "first_host": min(machine["host"] for machine in machines),
        }
        for kind, machines in grouped(
            known, lambda machine: tuple(machine[name] for name in alike)
        ).items()
    ]
    return in_order(rows, "-processes", "process", "first_host")


def _loss(recording: Recording) -> list[Row]:
    return in_order(trace.loss(recording), "-records", "t", "reason", "detail")


_ACTIVITY_SUMS = (
    "seconds cpu_seconds noncpu_seconds serialize_seconds deserialize_seconds "
    "compress_seconds decompress_seconds disk_seconds network_seconds failed_seconds "
    "other_seconds memory_read_bytes disk_read_bytes disk_write_bytes"
)

TABLES = {
    "core-time": Expected(
        "prefix thread_seconds share kept_seconds? other_busy_seconds? transfer_seconds? "
        "dispatch_seconds?",
        _core_time,
        20,
    ),
    "critical-path-causes": Expected(
        "cause prefix path_seconds path_share steps", _path_causes, 12
    ),
    "critical-path-steps": Expected(
        "step start_t seconds share cause key name detail", _path_steps, 12
    ),
    "datasets": Expected(
        "dataset files chunks failed_attempts events compute_seconds compute_share "
        "events_per_second bytes_per_second median_compute_seconds max_compute_seconds "
        "relative_iqr "
        "open_seconds process_seconds read_seconds cpu_seconds wait_seconds bytes_read "
        "file_read_ratio branch_share compression_ratio checkpointed_chunks? output_bytes",
        _datasets,
        250,
    ),
    "costs": Expected(
        "dataset chunks sizes fixed_seconds fixed_error_seconds seconds_per_event r2 "
        "relative_error outliers fixed_share smallest_chunk_events median_events "
        "largest_chunk_events min_events max_events recommended_events note",
        _costs,
        250,
    ),
    "files": Expected(
        "filename dataset treename chunks failed_attempts events compute_seconds compute_share "
        "events_per_second bytes_per_second relative_duration relative_iqr max_compute_seconds "
        "open_seconds "
        "read_seconds wait_seconds bytes_read file_read_ratio branch_share compression_ratio "
        "source "
        "workers",
        _files,
        250,
    ),
    "branches": Expected(
        "branch dataset chunk_attempts read_seconds read_share compressed_bytes byte_share "
        "uncompressed_bytes compression_ratio",
        _branches,
        100,
    ),
    "sections": Expected(
        "name dataset executions failures seconds compute_share mean_seconds max_seconds "
        "cpu_seconds bytes_read mean_memory_delta_bytes max_memory_delta_bytes",
        _sections,
        100,
    ),
    "chunks": Expected(
        "filename dataset entry_start entry_stop outcome attempt events compute_seconds "
        "events_per_second process_seconds open_seconds read_seconds cpu_seconds wait_seconds "
        "bytes_read requests columns_read branches_read memory_peak_bytes output_bytes worker "
        "exception key",
        _chunks,
        200,
    ),
    "workers": Expected(
        "name worker host nthreads max_cpu_cores? max_memory_share? max_memory_bytes? "
        "max_spilled_bytes? max_executing? task_runs compute_seconds chunks? failed_chunks? "
        "events? "
        "events_per_second bytes_per_second relative_duration relative_iqr max_chunk_seconds "
        "bytes_read "
        "output_bytes peak_memory_bytes memory_limit_bytes added_t removed_t removal_reason "
        "server_id",
        _workers,
        300,
    ),
    "roles": Expected(
        "role prefixes tasks task_runs failed_attempts compute_seconds compute_share "
        "mean_compute_seconds max_compute_seconds transfer_seconds deserialize_seconds? "
        "disk_seconds? output_bytes",
        _roles,
        300,
    ),
    "prefixes": Expected(
        "prefix tasks task_runs memory erred retried? lost? cancelled? unfinished? "
        "compute_seconds mean_compute_seconds median_compute_seconds p95_compute_seconds "
        "max_compute_seconds transfer_seconds deserialize_seconds? disk_seconds? output_bytes",
        _prefixes,
        300,
    ),
    "task-groups": Expected(
        "task_group prefix tasks task_runs erred? compute_seconds median_compute_seconds "
        "max_compute_seconds transfer_seconds output_bytes workers first_t wall_seconds",
        _task_groups,
        20,
    ),
    "stragglers": Expected(
        "key prefix compute_seconds median_seconds relative_duration excess_seconds "
        "compute_start_t "
        "worker outcome attempt dataset filename",
        _stragglers,
        15,
    ),
    "activities": Expected(
        "context activity seconds thread_share bytes count", _activities, 100
    ),
    "activity-prefixes": Expected(f"prefix {_ACTIVITY_SUMS}", _activity_prefixes, 100),
    "activity-workers": Expected(f"worker {_ACTIVITY_SUMS}", _activity_workers, 100),
    "spans": Expected(
        "path start_t wall_seconds total_compute_seconds thread_seconds compute_share "
        "idle_share total_tasks total_task_runs total_failed_attempts total_cpu_seconds "
        "total_noncpu_seconds total_transfer_seconds total_output_bytes",
        _spans,
        100,
    ),
    "pairs": Expected("source destination transfers bytes seconds", _pairs, 20),
    "functions": Expected(
        "function self_seconds self_share total_seconds total_share samples", _functions, 200
    ),
    "failures": Expected(
        "t what cause exception detail worker prefix attempt key", _failures, 100
    ),
    "topics": Expected("topic events first_t last_t", _topics, 300),
    "events": Expected("t topic worker payload", _events, 100),
    "options": Expected("name value default_value set_by process processes", _options, 200),
    "versions": Expected("package version process processes", _versions, 200),
    "jobs": Expected(
        "process system queue account qos cores? memory_limit_bytes? processes jobs nodes "
        "first_job",
        _jobs,
        200,
    ),
    "machines": Expected(
        "process processes hosts first_host cpu_model cores usable_cores? cgroup_cores? "
        "memory_bytes cgroup_memory_bytes? kernel python",
        _machines,
        200,
    ),
    "environment": Expected("section name value", _environment, 500),
    "loss": Expected("reason records detail t", _loss, 500),
}  # fmt: skip
