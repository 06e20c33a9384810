"""Attempts that took much longer than usual for their prefix."""

from nightly.chunks import chunk_attempts
from nightly.recording import Recording, Row
from nightly.tasks import task_runs
from nightly.totals import column, grouped, median, ratio

#: Minimum number of attempts of a prefix.
ENOUGH = 10

#: Minimum duration relative to the median.
FACTOR = 2


def stragglers(recording: Recording) -> list[Row]:
    """Return one row per attempt of twice the median or more, largest excess first.

    The median is of the successful attempts of the prefix, if there are enough.
    """
    known = [run for run in task_runs(recording) if run["prefix"] is not None]
    ended_well = [run for run in known if run["outcome"] == "memory"]
    usual = {
        prefix: column(runs, "compute_seconds")
        for prefix, runs in grouped(ended_well, lambda run: run["prefix"]).items()
    }
    # What an attempt read, of those that are attempts at a chunk.
    read = {
        (row["key"], row["attempt"]): row
        for row in chunk_attempts(recording)
        if row["has_task"]
    }
    rows = [
        _straggler(run, usual[run["prefix"]], read.get((run["key"], run["attempt"]), {}))
        for run in known
        if _is_straggler(run["compute_seconds"], usual.get(run["prefix"], []))
    ]
    return sorted(rows, key=lambda row: -row["excess_seconds"])


def _is_straggler(seconds: float | None, usual: list[float]) -> bool:
    if seconds is None or len(usual) < ENOUGH:
        return False
    return seconds >= FACTOR * median(usual) and seconds > median(usual)


def _straggler(run: Row, usual: list[float], chunk: Row) -> Row:
    names = (
        "key", "prefix", "attempt", "worker", "thread", "outcome", "compute_seconds",
        "compute_start_t", "compute_stop_t", "run_id",
    )  # fmt: skip
    place = ("dataset", "filename", "entry_start", "entry_stop")
    return {
        **{name: run[name] for name in names},
        **{name: chunk.get(name) for name in place},
        "median_seconds": median(usual),
        "relative_duration": ratio(run["compute_seconds"], median(usual)),
        "excess_seconds": run["compute_seconds"] - median(usual),
        "prefix_runs": len(usual),
    }
