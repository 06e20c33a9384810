"""Dask spans and fine performance metrics."""

from nightly.processes import extent, presence
from nightly.recording import Recording, Row
from nightly.tasks import outcomes, task_runs, tasks
from nightly.totals import column, grouped, known, least, most, ratio, total

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


def activities(recording: Recording) -> list[Row]:
    """Return one row per worker, context, span and prefix.

    Of p2p, "foreground" repeats what `execute` reports with p2p- before the activity, and is
    left out, as is idle time.
    """
    names = LABELS[:5]
    metrics = spent(recording)
    by_label = grouped(metrics, lambda row: tuple(row[name] for name in names))
    return [
        dict(zip(names, label, strict=True)) | _activities(rows)
        for label, rows in by_label.items()
    ]


def spent(recording: Recording) -> list[Row]:
    """Return the fine metrics that are neither idle time nor repeated."""
    return [
        row
        for row in fine_metrics(recording)
        if row["activity"] != "idle"
        and (row["context"], row["prefix"]) != ("p2p", "foreground")
    ]


def _activities(rows: list[Row]) -> Row:
    """Sum up by activity; None if there is none."""
    timed = [(_name(row), row["value"]) for row in rows if row["unit"] == "seconds"]
    moved = [(_name(row), row["value"]) for row in rows if row["unit"] == "bytes"]
    reported = {name for names in SECONDS.values() for name in names}
    return {
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


def _name(row: Row) -> str | None:
    """Return the name of an activity, without the p2p- of tasks."""
    return row["activity"] and row["activity"].removeprefix("p2p-")


def span_totals(recording: Recording) -> list[Row]:
    """Return one row per span, in the order in which they began.

    Spans seen at the same instant are ordered from outer to inner, then by identity; spans
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

    return [
        _span(span, [other for other in there if span in _outward(other, records)], by_span)
        | {name: records.get(span, {}).get(name) for name in ("name", "path", "parent_id")}
        for span in sorted(there, key=place)
    ]


def _outward(span: str | None, records: dict[str, Row]) -> list[str | None]:
    """Return a span and its ancestors, each once if they are cyclic."""
    found = [span]
    while (parent := records.get(found[-1], {}).get("parent_id")) is not None:
        if parent in found:
            break
        found.append(parent)
    return found


def _span(span: str | None, within: list, by_span: list[dict]) -> Row:
    """Return the sums of a span alone and with its nested spans."""
    alone = _sums(*(found.get(span, []) for found in by_span))
    inner = _sums(
        *([row for each in within for row in found.get(each, [])] for found in by_span)
    )
    return {
        "span_id": span,
        **alone,
        "descendants": len(within) - 1,
        **{f"total_{name}": value for name, value in inner.items()},
    }


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
    """Return one row per span: thread time on offer that no metric below it explains."""
    named = {row["span_id"]: row for row in spans(recording)}
    rows = [_idle(row, _below(row["span_id"], named), recording) for row in named.values()]
    return sorted(
        rows,
        key=lambda row: (
            row["idle_seconds"] is None, -(row["idle_seconds"] or 0), row["span_id"],
        ),
    )  # fmt: skip


def _below(span_id: str, named: dict[str, Row]) -> set[str]:
    """Return a span and all spans below it."""
    found = {span_id}
    while more := {n for n, row in named.items() if row["parent_id"] in found} - found:
        found |= more
    return found


def _idle(span: Row, inside: set[str], recording: Recording) -> Row:
    submitted = [row["submitted_t"] for row in tasks(recording) if row["span_id"] in inside]
    runs = [row for row in task_runs(recording) if row["span_id"] in inside]
    start_t = least(submitted)
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
        if row["span_id"] in inside and (row["context"], row["unit"]) == ("execute", "seconds")
    )
    offered = None
    if None not in (start_t, stop_t):
        offered = total(
            nthreads * max(min(gone, stop_t) - max(came, start_t), 0)
            for came, gone, nthreads in presence(recording)
            if nthreads is not None
        )
    idle = None if offered is None else max(offered - (known_seconds or 0), 0)
    return {
        "span_id": span["span_id"],
        "name": span["name"],
        "path": span["path"],
        "start_t": start_t,
        "stop_t": stop_t,
        "thread_seconds": offered,
        "known_seconds": known_seconds,
        "idle_seconds": idle,
        "idle_share": ratio(idle, offered),
    }
