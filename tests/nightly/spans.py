"""Dask spans and fine performance metrics."""

from nightly.processes import extent, presence
from nightly.recording import Recording, Row, once
from nightly.tasks import outcomes, task_runs, tasks
from nightly.totals import column, costliest_first, grouped, known, least, most, ratio, total

#: Columns that identify a metric.
LABELS = ("worker", "server_id", "context", "span_id", "prefix", "activity", "unit")


def spans(recording: Recording) -> list[Row]:
    """Return one row per span, with the time it was first seen."""
    return [
        {
            "span_id": span_id,
            "name": (lines[0].get("span_name") or [None])[-1],
            "path": lines[0].get("span_name"),
            "parent_id": lines[0].get("parent_id"),
            "t": lines[0]["t"],
        }
        for span_id, lines in grouped(
            recording.of("span"), lambda line: line.get("span_id")
        ).items()
    ]


def fine_metric_deltas(recording: Recording) -> list[Row]:
    """Return one row per heartbeat and metric."""
    return [
        {"t": line["t"]} | {name: line.get(name) for name in (*LABELS, "delta")}
        for line in recording.of("fine_metric")
    ]


def fine_metrics(recording: Recording) -> list[Row]:
    """Return the sums of the deltas."""
    by_label = grouped(
        fine_metric_deltas(recording), lambda row: tuple(row[name] for name in LABELS)
    )
    return [
        dict(zip(LABELS, label, strict=True)) | {"value": total(row["delta"] for row in rows)}
        for label, rows in by_label.items()
    ]


#: Columns of activities by activity.
SECONDS = {
    "cpu_seconds": ("thread-cpu",),
    "noncpu_seconds": ("thread-noncpu",),
    "serialize_seconds": ("serialize",),
    "deserialize_seconds": ("deserialize",),
    "compress_seconds": ("compress",),
    "decompress_seconds": ("decompress",),
    "disk_seconds": ("disk-read", "disk-write"),
    "network_seconds": ("network",),
    "failed_seconds": ("failed", "cancelled"),
}

BYTES = {
    "memory_read_bytes": "memory-read",
    "disk_read_bytes": "disk-read",
    "disk_write_bytes": "disk-write",
}


@once
def activities(recording: Recording) -> list[Row]:
    """Return one row per worker, context, span and prefix; sums without activity are None.

    Idle time is left out, and "foreground" of context p2p, which repeats the activities of
    `execute` whose names begin with p2p-.
    """
    reported = {name for names in SECONDS.values() for name in names}
    found = []
    for label, rows in grouped(
        spent(recording), lambda row: tuple(row[label] for label in LABELS[:5])
    ).items():
        timed = [(_name(row), row["value"]) for row in rows if row["unit"] == "seconds"]
        moved = [(_name(row), row["value"]) for row in rows if row["unit"] == "bytes"]
        found.append(
            {
                **dict(zip(LABELS, label, strict=False)),
                "seconds": total(value for _, value in timed),
                **{
                    column: total(value for name, value in timed if name in names)
                    for column, names in SECONDS.items()
                },
                "other_seconds": total(value for name, value in timed if name not in reported),
                **{
                    column: total(value for name, value in moved if name == activity)
                    for column, activity in BYTES.items()
                },
            }
        )
    return found


def spent(recording: Recording) -> list[Row]:
    """Return the fine metrics that are neither idle time nor repeated."""
    return [
        row
        for row in fine_metrics(recording)
        if row["activity"] != "idle"
        and (row["context"], row["prefix"]) != ("p2p", "foreground")
    ]


def _name(row: Row) -> str | None:
    """Return the name of an activity, without the p2p- of tasks."""
    return row["activity"] and row["activity"].removeprefix("p2p-")


def span_totals(recording: Recording) -> list[Row]:
    """Return one row per span, in the order in which they began.

    Spans seen at the same instant are ordered from outer to inner, then by ID; spans
    without a record follow, and work outside spans is last.
    """
    records = {row["span_id"]: row for row in spans(recording)}
    held = [tasks(recording), task_runs(recording), activities(recording)]
    by_span = [grouped(rows, lambda row: row["span_id"]) for rows in held]
    parents = known(row["parent_id"] for row in records.values())
    there = dict.fromkeys([*records, *parents, *(span for found in by_span for span in found)])

    def place(span: str | None) -> tuple:
        row = records.get(span)
        began = (0, row["t"], len(row["path"] or [])) if row else (1,)
        return (*began, span is None, span or "")

    rows = []
    for span in sorted(there, key=place):
        within = [other for other in there if span in _outward(other, records)]
        alone = _sums(*(found.get(span, []) for found in by_span))
        nested = _sums(
            *([row for each in within for row in found.get(each, [])] for found in by_span)
        )
        rows.append(
            {
                "span_id": span,
                **{n: records.get(span, {}).get(n) for n in ("name", "path", "parent_id")},
                **alone,
                "descendants": len(within) - 1,
                **{f"total_{name}": value for name, value in nested.items()},
            }
        )
    return rows


def _outward(span: str | None, records: dict[str, Row]) -> list[str | None]:
    """Return a span and its ancestors, each once if they are cyclic."""
    found = [span]
    while (parent := records.get(found[-1], {}).get("parent_id")) is not None:
        if parent in found:
            break
        found.append(parent)
    return found


def _sums(entered: list[Row], runs: list[Row], spent: list[Row]) -> Row:
    first_t, last_t = least(column(runs, "processing_t")), most(column(runs, "end_t"))
    return {
        "tasks": len(entered),
        "other_span_tasks": sum(row["is_other_span"] for row in entered),
        "task_runs": len(runs),
        "failed_attempts": sum(outcomes(runs, "erred", "retried", "lost").values()),
        "compute_seconds": total(column(runs, "compute_seconds")),
        "transfer_seconds": total(column(runs, "transfer_seconds")),
        "output_bytes": total(column(runs, "nbytes")),
        "metric_seconds": total(column(spent, "seconds")),
        "cpu_seconds": total(column(spent, "cpu_seconds")),
        "noncpu_seconds": total(column(spent, "noncpu_seconds")),
        "first_t": first_t,
        "last_t": last_t,
        "wall_seconds": None if None in (first_t, last_t) else last_t - first_t,
    }


def span_idle(recording: Recording) -> list[Row]:
    """Return one row per span: thread time not explained by the metrics of its subtree."""
    named = {row["span_id"]: row for row in spans(recording)}
    rows = []
    for span_id, span in named.items():
        inside = {other for other in named if span_id in _outward(other, named)}
        runs = [row for row in task_runs(recording) if row["span_id"] in inside]
        start_t = least(
            row["submitted_t"] for row in tasks(recording) if row["span_id"] in inside
        )
        stop_t = most(
            extent(recording)[1]
            if row["end_t"] is None
            else row["end_t"]
            if row["compute_stop_t"] is None
            else row["compute_stop_t"]
            for row in runs
        )
        known_seconds = total(
            row["value"]
            for row in fine_metrics(recording)
            if row["span_id"] in inside
            and (row["context"], row["unit"]) == ("execute", "seconds")
        )
        offered = None
        if None not in (start_t, stop_t):
            offered = total(
                nthreads * max(min(gone, stop_t) - max(came, start_t), 0)
                for came, gone, nthreads in presence(recording)
                if nthreads is not None
            )
        idle = None
        if None not in (offered, known_seconds):
            # Metrics of lost workers are missing, but not their computations.
            computed = total(column(runs, "compute_seconds")) or 0
            idle = max(offered - max(known_seconds, computed), 0)
        rows.append(
            {
                "span_id": span_id,
                "name": span["name"],
                "path": span["path"],
                "start_t": start_t,
                "stop_t": stop_t,
                "thread_seconds": offered,
                "known_seconds": known_seconds,
                "idle_seconds": idle,
                "idle_share": ratio(idle, offered),
            }
        )
    return costliest_first(rows, "idle_seconds", "span_id")
