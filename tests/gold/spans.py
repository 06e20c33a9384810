"""Dask's spans and fine performance metrics."""

from gold.recording import Recording, Row
from gold.totals import grouped, total

#: What a metric is of.
LABELS = ("worker", "server_id", "context", "span_id", "prefix", "activity", "unit")


def spans(recording: Recording) -> list[Row]:
    """One row per span, from when it was first seen."""
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
    """What a worker added to a metric, a row per heartbeat."""
    return [
        {"t": line["t"]} | {name: line.get(name) for name in (*LABELS, "delta")}
        for line in recording.of("fine_metric")
    ]


def fine_metrics(recording: Recording) -> list[Row]:
    """The sums of the deltas."""
    by_label = grouped(
        fine_metric_deltas(recording), lambda row: tuple(row[name] for name in LABELS)
    )
    return [
        dict(zip(LABELS, label, strict=True)) | {"value": total(row["delta"] for row in rows)}
        for label, rows in by_label.items()
    ]


#: Columns of activities that are the sum of one activity's seconds.
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
    """One row per worker, context, span and prefix: what the time went into.

    Of p2p, what Dask tells twice counts once: "foreground" repeats what tasks did, which
    `execute` tells too, as activities that begin with p2p-. Idle time is left out.
    """
    names = LABELS[:5]
    metrics = [row for row in fine_metrics(recording) if not _is_repeated(row)]
    by_label = grouped(metrics, lambda row: tuple(row[name] for name in names))
    return [
        dict(zip(names, label, strict=True)) | _activities(rows)
        for label, rows in by_label.items()
    ]


def _is_repeated(row: Row) -> bool:
    return row["context"] == "p2p" and row["prefix"] == "foreground"


def _activities(rows: list[Row]) -> Row:
    """Sum up by activity; None if there is none of it."""
    spent = [(_name(row), row["value"]) for row in rows if row["unit"] == "seconds"]
    moved = [(_name(row), row["value"]) for row in rows if row["unit"] == "bytes"]
    spent = [(name, value) for name, value in spent if name != "idle"]
    told = {name for names in SECONDS.values() for name in names}
    return {
        "seconds": total(value for _, value in spent),
        **{
            column: total(value for name, value in spent if name in names)
            for column, names in SECONDS.items()
        },
        "other_seconds": total(value for name, value in spent if name not in told),
        **{
            column: total(value for name, value in moved if name == activity)
            for column, activity in BYTES.items()
        },
    }


def _name(row: Row) -> str | None:
    """Name an activity, those of p2p within tasks without saying that it was p2p."""
    return row["activity"] and row["activity"].removeprefix("p2p-")
