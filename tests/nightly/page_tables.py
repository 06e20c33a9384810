"""Expected rows of the tables of a page: of views that are tested by themselves.

Every table and column of the page must be listed in :data:`TABLES`.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from nightly import tasks
from nightly.comparison import Answer
from nightly.recording import Recording, Row, once
from nightly.totals import column, grouped, quantile, ratio, total
from roast_analyze import Trace
from roast_analyze.open.views import view_names
from roast_analyze.report.topics.inside_tasks import OWN_KINDS
from roast_analyze.report.topics.profile.flame_graph import OWN, library_kind

#: Maximum characters of an exception, of a traceback, and of a payload or a value.
EXCEPTION, TRACEBACK, VALUE = 1000, 2000, 240


@once
def _views(recording: Recording) -> dict[str, list[Row]]:
    """Return the rows of all views."""
    with Trace(recording.path) as trace:
        names = [name for name in view_names() if name != "findings"]
        return {name: Answer.of(trace.view(name)).rows for name in names}


def rows_of(view: str, recording: Recording) -> list[Row]:
    """Return the rows of a view."""
    return _views(recording)[view]


def view(name: str) -> Callable[[Recording], list[Row]]:
    """Return a function that returns the rows of a view."""
    return lambda recording: rows_of(name, recording)


@dataclass(frozen=True)
class Expected:
    """A table of the page."""

    #: All columns in order; those with a question mark are left out if all rows have zero.
    columns: str
    #: Returns all rows.
    unordered: Callable[[Recording], list[Row]]
    #: Columns by which rows are sorted, descending after a minus; missing values come last.
    order: str
    #: Maximum number of rows that the page shows.
    limit: int

    def rows(self, recording: Recording) -> list[Row]:
        """Return all rows in order."""

        def place(row: Row) -> list[tuple]:
            values = [(name, row[name.removeprefix("-")]) for name in self.order.split()]
            return [
                (value is None, 0 if value is None else -value if name[0] == "-" else value)
                for name, value in values
            ]

        return sorted(self.unordered(recording), key=place)

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


@dataclass(frozen=True)
class Between:
    """A number known to be between two others."""

    least: float
    most: float

    def __bool__(self) -> bool:
        return self.most > 0


def _prefixes(recording: Recording) -> list[Row]:
    runs = grouped(rows_of("task_runs", recording), lambda run: run["prefix"])

    def p95(prefix: str | None) -> float | None:
        seconds = column(runs.get(prefix, []), "compute_seconds")
        return quantile(seconds, 0.95) if seconds else None

    rows = rows_of("prefixes", recording)
    return [row | {"p95_compute_seconds": p95(row["prefix"])} for row in rows]


def _task_groups(recording: Recording) -> list[Row]:
    """Return the groups, unless each prefix is one group."""
    rows = rows_of("task_groups", recording)
    return rows if len(rows) > len(rows_of("prefixes", recording)) else []


def _pairs(recording: Recording) -> list[Row]:
    """Sum transfers by source and destination; without them, the transfers of startstops."""
    moved_rows = [
        row | {"seconds": row["stop_t"] - row["start_t"]}
        for row in rows_of("transfers", recording)
        if row["source"] is not None and row["destination"] is not None
    ] or [
        {
            "source": part["source"],
            "destination": attempt.end["worker"],
            "bytes": None,
            "seconds": part["stop"] - part["start"],
        }
        for attempt in tasks.attempts(recording)
        for part in attempt.phases
        if part["action"] == "transfer" and part.get("source") and attempt.end.get("worker")
    ]
    return [
        ends
        | {
            "transfers": len(moved),
            "bytes": total(row["bytes"] for row in moved),
            "seconds": math.fsum(row["seconds"] for row in moved),
        }
        for ends, moved in _alike(moved_rows, "source destination")
    ]


def _alike(rows: list[Row], names: str) -> list[tuple[Row, list[Row]]]:
    """Group rows by columns; return the values of these columns and the rows of each group."""
    alike = names.split()
    groups = grouped(rows, lambda row: tuple(row[name] for name in alike))
    return [(dict(zip(alike, kind, strict=True)), some) for kind, some in groups.items()]


def _roles(recording: Recording) -> list[Row]:
    rows = rows_of("task_roles", recording)
    if not any(row["role"] for row in rows):
        return []
    return [row | {"role": row["role"] or "(other tasks)"} for row in rows]


def _costs(recording: Recording) -> list[Row]:
    rows = rows_of("chunk_costs", recording)
    return [row | {"all": row["chunks"] + row["first_chunks"]} for row in rows]


def _chunks(recording: Recording) -> list[Row]:
    return [
        row | {"well": row["outcome"] == "memory", "exception": cause(row["exception"])}
        for row in rows_of("chunks", recording)
    ]


def cause(text: str | None) -> str | None:
    """Return the error that coffea quotes, or else the exception."""
    beginnings = ("Failed processing file: ", "Failed creating nanoevents: ")
    if text is None or not any(beginning in text for beginning in beginnings):
        return text
    _, quoted, quote = text.partition("The error was: ")
    if not quoted:
        return text
    for ending in (")", '"', "'", "."):
        quote = quote.removesuffix(ending)
    return re.sub(r"\\([\\'])", r"\1", quote)


def _workers(recording: Recording) -> list[Row]:
    """Add the numbers beside sparklines: maxima of samples, or of their means over time."""
    sampled = grouped(
        rows_of("worker_samples", recording), lambda row: (row["worker"], row["server_id"])
    )
    limited = any(row["memory_limit_bytes"] for some in sampled.values() for row in some)
    rows = []
    for row in rows_of("workers", recording):
        samples = sampled.get((row["worker"], row["server_id"]), [])
        shares = [
            sample["memory_bytes"] / sample["memory_limit_bytes"]
            for sample in samples
            if sample["memory_bytes"] is not None and sample["memory_limit_bytes"]
        ]
        name = str(row["name"])
        rows.append(
            row
            | {
                "number": int(name) if name.isdecimal() else None,
                "max_cpu_cores": _mean([n / 100 for n in column(samples, "cpu_percent")]),
                "max_memory_share": _most(shares),
                "max_memory_bytes": None if limited else _most(column(samples, "memory_bytes")),
                "max_spilled_bytes": _most(column(samples, "spilled_bytes")),
                "max_executing": _mean(column(samples, "executing")),
            }
        )
    return rows


def _most(values: list[float]) -> float | None:
    return float(f"{max(values):.4g}") if values else None


def _mean(values: list[float]) -> Between | None:
    """Return the bounds of the largest mean of consecutive values."""
    return Between(_most([fmean(values)]) * 0.999, _most(values)) if values else None


def _spent(recording: Recording) -> list[Row]:
    """Return the fine metrics that are neither idle time nor repeated."""
    return [
        row
        for row in rows_of("fine_metrics", recording)
        if row["activity"] != "idle"
        and (row["context"], row["prefix"]) != ("p2p", "foreground")
    ]


def _activities(recording: Recording) -> list[Row]:
    """Sum the metrics by context and activity; add the share of thread time for tasks."""
    [whole] = rows_of("run", recording)
    rows = []
    for kind, found in _alike(_spent(recording), "context activity"):
        sums = {
            unit: total(row["value"] for row in found if row["unit"] == unit)
            for unit in ("seconds", "bytes", "count")
        }
        share = ratio(sums["seconds"], whole["core_seconds"])
        in_tasks = kind["context"] == "execute"
        rows.append(kind | sums | {"thread_share": share if in_tasks else None})
    return rows


def _activities_by(name: str, rows: list[Row]) -> list[Row]:
    sums = [each for row in rows[:1] for each in row if each.endswith(("seconds", "_bytes"))]
    return [
        of | {one: total(column(found, one)) for one in sums}
        for of, found in _alike(rows, name)
    ]


def _activity_prefixes(recording: Recording) -> list[Row]:
    rows = [row for row in rows_of("activities", recording) if row["context"] == "execute"]
    return _activities_by("prefix", rows)


def _activity_workers(recording: Recording) -> list[Row]:
    return _activities_by("worker", rows_of("activities", recording))


def _spans(recording: Recording) -> list[Row]:
    """Return no rows if all spans are Dask's."""
    if all(row["name"] == "default" for row in rows_of("spans", recording)):
        return []
    [whole] = rows_of("run", recording)
    idle = {row["span_id"]: row for row in rows_of("span_idle", recording)}
    rows = []
    for row in rows_of("span_totals", recording):
        if row["span_id"] is None:
            continue
        of_threads = idle.get(row["span_id"], {})
        start_t, stop_t, offered = map(of_threads.get, ("start_t", "stop_t", "thread_seconds"))
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
                "idle_share": of_threads.get("idle_share"),
            }
        )
    return rows


def _functions(recording: Recording) -> list[Row]:
    """Sum Dask's samples by function: those of workers, else those of the scheduler."""
    stacks = [row for row in rows_of("profile_stacks", recording) if row["profiler"] == "dask"]
    is_worker = any(row["worker"] is not None for row in stacks)
    sampled = [
        row
        | {"own_seconds": row["samples"] * row["interval_seconds"]}
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
        self_seconds = math.fsum(row["own_seconds"] for row in ended)
        total_seconds = math.fsum(row["seconds"] for row in inside)
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
    return [
        row | {"self": round(row["self_seconds"], 9), "total": round(row["total_seconds"], 9)}
        for row in rows
    ]


def _without_recorder(row: Row) -> list[str]:
    """Return a stack without functions of the recorder; their self time has one name."""
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
    used = rows_of("core_time", recording)
    [core_seconds] = column(rows_of("run", recording), "core_seconds") or [None]

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
    return rows


def _path_causes(recording: Recording) -> list[Row]:
    return [
        kind
        | {
            "path_seconds": math.fsum(step["seconds"] for step in steps),
            "path_share": math.fsum(step["share"] for step in steps),
            "steps": len(steps),
        }
        for kind, steps in _alike(rows_of("critical_path", recording), "cause prefix")
    ]


def _named(name: str) -> Callable[[Recording], list[Row]]:
    """Return the rows of a view; their tasks have the file and entries of a single chunk."""

    def rows(recording: Recording) -> list[Row]:
        chunks = grouped(rows_of("chunks", recording), lambda row: (row["key"], row["attempt"]))
        places = {at: _place(found[0]) for at, found in chunks.items() if len(found) == 1}
        return [
            row | {"task": places.get((row["key"], row["attempt"])) or row["key"]}
            for row in rows_of(name, recording)
        ]

    return rows


def _place(chunk: Row) -> str | None:
    if chunk["filename"] is None:
        return None
    name = re.split(r"[/\\]", chunk["filename"])[-1]
    entries = chunk["entry_start"], chunk["entry_stop"]
    return name if None in entries else f"{name} {entries[0]:,}–{entries[1]:,}"


def _lines(recording: Recording) -> list[Row]:
    """Sum the samples of workers by line of a function that is not of a library."""
    stacks = [
        row
        for row in rows_of("profile_stacks", recording)
        if row["profiler"] == "dask" and row["worker"] is not None
    ]
    whole = math.fsum(row["seconds"] for row in stacks)
    seen = [
        {"line": f"{frame['name']} ({frame['filename']}:{line})", "seconds": row["seconds"]}
        for row in stacks
        for frame, line in {
            (tuple(frame.items()), line): (frame, line)
            for frame, line in zip(row["frames"], row["lines"] or (), strict=False)
        }.values()
        if line is not None
        and None not in (frame["name"], frame["filename"])
        and library_kind(frame["filename"]) == OWN
        and not _is_recorder(frame)
    ]
    sums = [
        line | {"seconds": math.fsum(row["seconds"] for row in alike)}
        for line, alike in _alike(seen, "line")
    ]
    return [
        row | {"share": row["seconds"] / whole, "rounded": round(row["seconds"], 9)}
        for row in sums
    ]


def _own_code(recording: Recording) -> list[Row]:
    """Return no rows without samples."""
    spent = rows_of("busy_time", recording)
    if not any(row["samples"] for row in spent):
        return []
    whole = math.fsum(row["seconds"] for row in spent)
    rows = [
        kind | {"seconds": math.fsum(row["seconds"] for row in alike)}
        for kind, alike in _alike(spent, "kind detail prefix")
        # Own functions are described by several words, libraries by one.
        if kind["kind"] in OWN_KINDS
        or (kind["kind"] == "not on the CPU" and " " in (kind["detail"] or ""))
    ]
    # Rows whose printed numbers are equal are sorted by name.
    return [
        row | {"share": row["seconds"] / whole, "rounded": round(row["seconds"], 9)}
        for row in rows
    ]


def _failures(recording: Recording) -> list[Row]:
    return [
        row
        | {
            "cause": _beginning(row["cause"], EXCEPTION),
            "exception": None
            if row["exception"] == row["cause"]
            else _beginning(row["exception"], EXCEPTION),
        }
        for row in rows_of("failures", recording)
    ]


def _beginning(text: str | None, limit: int) -> str | None:
    return text if text is None or len(text) <= limit else text[: limit - 1] + "…"


def traceback(row: Row) -> str:
    """Return the end of a traceback, as the page shows it."""
    text = row.get("traceback") or ""
    return text if len(text) <= TRACEBACK else "…" + text[1 - TRACEBACK :]


def _topics(recording: Recording) -> list[Row]:
    return [
        topic
        | {
            "events": len(events),
            "first_t": min(row["t"] for row in events),
            "last_t": max(row["t"] for row in events),
        }
        for topic, events in _alike(rows_of("events", recording), "topic")
    ]


def _events(recording: Recording) -> list[Row]:
    def payload(value: object) -> str | None:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return None if value is None else _beginning(text, VALUE)

    # Dask logs an event in one topic right after the other.
    logged: dict[tuple, list[list[Row]]] = {}
    for event in sorted(rows_of("events", recording), key=lambda row: (row["t"], row["topic"])):
        value = event["payload"]
        about = event["worker"] or (event["topic"] if "://" in event["topic"] else None)
        content = value
        if isinstance(value, dict) and list(value)[:1] != ["worker"]:
            content = {k: v for k, v in value.items() if k != "worker" or type(v) is not str}
        same = logged.setdefault((about, json.dumps(content)), [])
        previous = same[-1][-1] if same else None
        is_same = (
            previous
            and event["t"] - previous["t"] <= 0.01
            and event["topic"] != previous["topic"]
        )
        if is_same:
            same[-1].append(event)
        else:
            same.append([event])
    return [
        {
            "t": found[0]["t"],
            "topic": ", ".join(event["topic"] for event in found),
            "worker": worker,
            "payload": max((payload(event["payload"]) for event in found), key=str),
        }
        for (worker, _), events in logged.items()
        for found in events
    ]


def _environment(recording: Recording) -> list[Row]:
    rows = rows_of("environment", recording)
    return [row | {"value": _beginning(row["value"], VALUE)} for row in rows]


def _options(recording: Recording) -> list[Row]:
    return [
        row
        | {name: _beginning(row[name], VALUE) for name in ("value", "default_value")}
        | {"set_by": row["source_name"] or row["source"]}
        for row in rows_of("config", recording)
        if row["differs"]
    ]


def _versions(recording: Recording) -> list[Row]:
    return [row for row in rows_of("packages", recording) if row["differs"]]


def _jobs(recording: Recording) -> list[Row]:
    alike = "process system queue account qos cores memory_limit_bytes"
    return [
        kind
        | {
            "processes": len(jobs),
            "jobs": len({job["job_id"] for job in jobs}),
            "nodes": len({job["node"] or job["host"] for job in jobs}),
            "first_job": min(job["job_id"] for job in jobs),
        }
        for kind, jobs in _alike(rows_of("jobs", recording), alike)
    ]


def _machines(recording: Recording) -> list[Row]:
    alike = (
        "process cpu_model cores usable_cores cgroup_cores memory_bytes cgroup_memory_bytes "
        "kernel python"
    )
    known = [row for row in rows_of("machines", recording) if row["python"] is not None]
    return [
        kind
        | {
            "processes": sum(machine["processes"] for machine in machines),
            "hosts": len({machine["host"] for machine in machines}),
            "first_host": min(machine["host"] for machine in machines),
        }
        for kind, machines in _alike(known, alike)
    ]


_ACTIVITY_SUMS = (
    "seconds cpu_seconds noncpu_seconds serialize_seconds deserialize_seconds "
    "compress_seconds decompress_seconds disk_seconds network_seconds failed_seconds "
    "other_seconds memory_read_bytes disk_read_bytes disk_write_bytes"
)

TABLES = {
    "core-time": Expected(
        "prefix thread_seconds share kept_seconds? other_busy_seconds? transfer_seconds? "
        "dispatch_seconds?",
        _core_time, "-thread_seconds prefix", 20,
    ),
    "critical-path-causes": Expected(
        "cause prefix path_seconds path_share steps",
        _path_causes, "-path_seconds cause prefix", 12,
    ),
    "critical-path-steps": Expected(
        "step start_t seconds share cause task name detail key",
        _named("critical_path"), "-seconds step", 12,
    ),
    "datasets": Expected(
        "dataset files chunks failed_attempts events compute_seconds compute_share "
        "events_per_second bytes_per_second median_compute_seconds max_compute_seconds "
        "relative_iqr open_seconds process_seconds read_seconds cpu_seconds wait_seconds "
        "bytes_read file_read_ratio branch_share compression_ratio checkpointed_chunks? "
        "output_bytes",
        view("datasets"), "-compute_seconds dataset", 250,
    ),
    "costs": Expected(
        "dataset chunks sizes fixed_seconds fixed_error_seconds seconds_per_event r2 "
        "relative_error outliers fixed_share smallest_chunk_events median_events "
        "largest_chunk_events min_events max_events recommended_events note",
        _costs, "-all dataset", 250,
    ),
    "files": Expected(
        "filename dataset treename chunks failed_attempts events compute_seconds compute_share "
        "events_per_second bytes_per_second relative_duration relative_iqr max_compute_seconds "
        "open_seconds read_seconds wait_seconds bytes_read file_read_ratio branch_share "
        "compression_ratio source workers",
        view("files"), "-compute_seconds dataset filename treename", 250,
    ),
    "branches": Expected(
        "branch dataset chunk_attempts read_seconds read_share compressed_bytes byte_share "
        "uncompressed_bytes compression_ratio",
        view("branches"), "-read_seconds -compressed_bytes dataset branch", 100,
    ),
    "sections": Expected(
        "name dataset executions failures seconds compute_share mean_seconds max_seconds "
        "cpu_seconds bytes_read mean_memory_delta_bytes max_memory_delta_bytes",
        view("section_totals"), "-seconds dataset name", 100,
    ),
    "chunks": Expected(
        "filename dataset entry_start entry_stop outcome attempt events compute_seconds "
        "events_per_second process_seconds open_seconds read_seconds cpu_seconds wait_seconds "
        "bytes_read requests columns_read branches_read memory_peak_bytes output_bytes worker "
        "exception key",
        _chunks, "well -compute_seconds key attempt entry_start", 200,
    ),
    "own-code": Expected(
        "kind detail prefix seconds share", _own_code, "-rounded kind detail prefix", 15
    ),
    "workers": Expected(
        "name worker host nthreads max_cpu_cores? max_memory_share? max_memory_bytes? "
        "max_spilled_bytes? max_executing? task_runs compute_seconds chunks? failed_chunks? "
        "events? events_per_second bytes_per_second relative_duration relative_iqr "
        "max_chunk_seconds bytes_read output_bytes peak_memory_bytes memory_limit_bytes "
        "added_t removed_t removal_reason server_id",
        _workers, "number added_t worker", 300,
    ),
    "roles": Expected(
        "role prefixes tasks task_runs failed_attempts compute_seconds compute_share "
        "mean_compute_seconds max_compute_seconds transfer_seconds deserialize_seconds? "
        "disk_seconds? output_bytes",
        _roles, "-compute_seconds role", 300,
    ),
    "prefixes": Expected(
        "prefix tasks task_runs memory erred retried? lost? cancelled? unfinished? "
        "compute_seconds mean_compute_seconds median_compute_seconds p95_compute_seconds "
        "max_compute_seconds transfer_seconds deserialize_seconds? disk_seconds? output_bytes",
        _prefixes, "-compute_seconds prefix", 300,
    ),
    "task-groups": Expected(
        "task_group prefix tasks task_runs erred? compute_seconds median_compute_seconds "
        "max_compute_seconds transfer_seconds output_bytes workers first_t wall_seconds",
        _task_groups, "-compute_seconds task_group", 20,
    ),
    "stragglers": Expected(
        "task prefix compute_seconds median_seconds relative_duration excess_seconds "
        "compute_start_t worker outcome attempt dataset filename key",
        _named("stragglers"), "-excess_seconds key attempt", 15,
    ),
    "activities": Expected(
        "context activity seconds thread_share bytes count",
        _activities, "-seconds context activity", 100,
    ),
    "activity-prefixes": Expected(
        f"prefix {_ACTIVITY_SUMS}", _activity_prefixes, "-seconds prefix", 100
    ),
    "activity-workers": Expected(
        f"worker {_ACTIVITY_SUMS}", _activity_workers, "-seconds worker", 100
    ),
    "spans": Expected(
        "path start_t wall_seconds total_compute_seconds thread_seconds compute_share "
        "idle_share total_tasks total_task_runs total_failed_attempts total_cpu_seconds "
        "total_noncpu_seconds total_transfer_seconds total_output_bytes",
        _spans, "-total_compute_seconds depth start_t span_id", 100,
    ),
    "pairs": Expected(
        "source destination transfers bytes seconds",
        _pairs, "-bytes -seconds source destination", 20,
    ),
    "lines": Expected("line seconds share", _lines, "-rounded line", 30),
    "functions": Expected(
        "function self_seconds self_share total_seconds total_share samples",
        _functions, "-self -total function", 200,
    ),
    "failures": Expected(
        "t what cause exception detail worker prefix attempt key",
        _failures, "t key attempt worker", 100,
    ),
    "topics": Expected("topic events first_t last_t", _topics, "-events topic", 300),
    "events": Expected("t topic worker payload", _events, "t topic worker payload", 100),
    "options": Expected(
        "name value default_value set_by process processes",
        _options, "name process value set_by", 200,
    ),
    "versions": Expected(
        "package version process processes", _versions, "package process version", 200
    ),
    "jobs": Expected(
        "process system queue account qos cores? memory_limit_bytes? processes jobs nodes "
        "first_job",
        _jobs, "-processes process first_job", 200,
    ),
    "machines": Expected(
        "process processes hosts first_host cpu_model cores usable_cores? cgroup_cores? "
        "memory_bytes cgroup_memory_bytes? kernel python",
        _machines, "-processes process first_host", 200,
    ),
    "environment": Expected("section name value", _environment, "section name value", 500),
    "loss": Expected("reason records detail t", view("loss"), "-records t reason detail", 500),
}  # fmt: skip
