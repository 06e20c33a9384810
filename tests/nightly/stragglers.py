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
    names = (
        "key", "prefix", "attempt", "worker", "thread", "outcome", "compute_seconds",
        "compute_start_t", "compute_stop_t", "run_id",
    )  # fmt: skip
    place = ("dataset", "filename", "entry_start", "entry_stop")
    rows = []
    for run in known:
        seconds, durations = run["compute_seconds"], usual.get(run["prefix"], [])
        if seconds is None or len(durations) < ENOUGH:
            continue
        middle = median(durations)
        if middle < seconds >= FACTOR * middle:
            chunk = read.get((run["key"], run["attempt"]), {})
            rows.append(
                {
                    **{name: run[name] for name in names},
                    **{name: chunk.get(name) for name in place},
                    "median_seconds": middle,
                    "relative_duration": ratio(seconds, middle),
                    "excess_seconds": seconds - middle,
                    "prefix_runs": len(durations),
                }
            )
    return sorted(rows, key=lambda row: -row["excess_seconds"])
