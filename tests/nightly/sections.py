"""User-named sections of tasks."""

from nightly.chunks import chunk_attempts
from nightly.recording import Recording, Row, once
from nightly.tasks import task_runs
from nightly.totals import (
    column,
    costliest_first,
    grouped,
    lasted,
    least,
    mean,
    median,
    most,
    ratio,
    total,
    whole,
)


@once
def sections(recording: Recording) -> list[Row]:
    """Return one row per execution of a section."""
    chunks = _by_run(chunk_attempts(recording))
    runs = _by_run(task_runs(recording))
    rows = []
    for line in recording.of("section"):
        run = line["key"], line.get("run_id")
        measured, chunk = line.get("measured") or {}, chunks.get(run, {})
        attempt = chunk or runs.get(run, {})
        rows.append(
            {
                "key": line["key"],
                "name": line["name"],
                "seconds": lasted(line["start_t"], line["stop_t"]),
                "cpu_seconds": measured.get("cpu_seconds"),
                "memory_delta_bytes": measured.get("memory_delta"),
                "bytes_read": measured.get("bytes_read"),
                "start_t": line["start_t"],
                "stop_t": line["stop_t"],
                **{n: line.get(n) for n in ("worker", "thread", "run_id", "exception")},
                **{n: attempt.get(n) for n in ("attempt", "outcome")},
                **{n: chunk.get(n) for n in ("dataset", "filename")},
            }
        )
    return rows


def _by_run(rows: list[Row]) -> dict[tuple, Row]:
    # Of several rows of a run, the first one.
    return {
        (row["key"], row["run_id"]): row for row in reversed(rows) if row["run_id"] is not None
    }


def section_totals(recording: Recording) -> list[Row]:
    """Return one row per dataset and name, longest first."""
    chunks = grouped(chunk_attempts(recording), lambda row: row["dataset"])
    rows = []
    for (dataset, name), passes in grouped(
        sections(recording), lambda row: (row["dataset"], row["name"])
    ).items():
        seconds, deltas = column(passes, "seconds"), column(passes, "memory_delta_bytes")
        computed = total(column(chunks.get(dataset, []), "compute_seconds"))
        rows.append(
            {
                "dataset": dataset,
                "name": name,
                "executions": len(passes),
                "attempts": len({(row["key"], row["run_id"]) for row in passes}),
                "failures": len(column(passes, "exception")),
                "seconds": total(seconds),
                "mean_seconds": mean(seconds),
                "median_seconds": median(seconds),
                "max_seconds": most(seconds),
                "cpu_seconds": total(column(passes, "cpu_seconds")),
                "bytes_read": total(column(passes, "bytes_read")),
                "mean_memory_delta_bytes": whole(mean(deltas)),
                "min_memory_delta_bytes": least(deltas),
                "max_memory_delta_bytes": most(deltas),
                "compute_share": ratio(total(seconds), computed),
            }
        )
    return costliest_first(rows, "seconds", "dataset", "name")
