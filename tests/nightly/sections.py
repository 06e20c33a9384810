"""User-named sections of tasks."""

from nightly.chunks import chunk_attempts
from nightly.recording import Recording, Row
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


def sections(recording: Recording) -> list[Row]:
    """Return one row per execution of a section."""
    chunks = _by_run(chunk_attempts(recording))
    runs = _by_run(task_runs(recording))
    return [
        _passage(line, chunks.get((line["key"], line.get("run_id")), {}), runs)
        for line in recording.of("section")
    ]


def _by_run(rows: list[Row]) -> dict[tuple, Row]:
    by_run: dict[tuple, Row] = {}
    for row in rows:
        if row["run_id"] is not None:
            by_run.setdefault((row["key"], row["run_id"]), row)
    return by_run


def _passage(line: dict, chunk: Row, runs: dict[tuple, Row]) -> Row:
    measured = line.get("measured") or {}
    attempt = chunk or runs.get((line["key"], line.get("run_id")), {})
    return {
        "key": line["key"],
        "name": line["name"],
        "seconds": lasted(line["start_t"], line["stop_t"]),
        "cpu_seconds": measured.get("cpu_seconds"),
        "memory_delta_bytes": measured.get("memory_delta"),
        "bytes_read": measured.get("bytes_read"),
        "start_t": line["start_t"],
        "stop_t": line["stop_t"],
        "worker": line.get("worker"),
        "thread": line.get("thread"),
        "run_id": line.get("run_id"),
        "attempt": attempt.get("attempt"),
        "outcome": attempt.get("outcome"),
        "dataset": chunk.get("dataset"),
        "filename": chunk.get("filename"),
        "exception": line.get("exception"),
    }


def section_totals(recording: Recording) -> list[Row]:
    """Return one row per dataset and name, longest first."""
    chunks = grouped(chunk_attempts(recording), lambda row: row["dataset"])
    by_name = grouped(sections(recording), lambda row: (row["dataset"], row["name"]))
    rows = [
        {"dataset": dataset, "name": name, **_totals(passes, chunks.get(dataset, []))}
        for (dataset, name), passes in by_name.items()
    ]
    return costliest_first(rows, "seconds", "dataset", "name")


def _totals(passes: list[Row], chunks: list[Row]) -> Row:
    seconds, deltas = column(passes, "seconds"), column(passes, "memory_delta_bytes")
    return {
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
        "compute_share": ratio(total(seconds), total(column(chunks, "compute_seconds"))),
    }
