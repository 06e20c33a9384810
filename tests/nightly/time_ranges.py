"""Contents of a time range, computed from the records."""

from dataclasses import dataclass
from math import inf

from nightly.processes import extent, presence
from nightly.recording import Recording, Row
from nightly.tasks import PARTS, Attempt, attempts, task_runs
from nightly.totals import column, least, most, total

#: Columns that are unknown before an attempt ends.
UNKNOWN_BEFORE_THE_END = ("nbytes", "typename", "exception", "traceback")


@dataclass(frozen=True)
class TimeRange:
    """A time range in shares of the run, start included, end excluded."""

    start: float
    stop: float

    def seconds(self, recording: Recording) -> tuple[float, float]:
        """Return the boundaries in seconds since the start of the run."""
        start_t, stop_t = extent(recording)
        length = stop_t - start_t
        return self.start * length, self.stop * length

    def instants(self, recording: Recording) -> tuple[float, float]:
        """Return the boundaries; infinite where the run begins or ends."""
        start_t, _ = extent(recording)
        start, stop = self.seconds(recording)
        return (
            start_t + start if self.start > 0 else -inf,
            start_t + stop if self.stop < 1 else inf,
        )

    def holds(self, recording: Recording, t: float) -> bool:
        """Return whether an instant is in the range."""
        from_t, until_t = self.instants(recording)
        return from_t <= t < until_t


def task_runs_within(recording: Recording, time_range: TimeRange) -> list[Row]:
    """Return the attempts that overlap the range, clipped to it."""
    from_t, until_t = time_range.instants(recording)
    found = []
    for attempt, row in zip(attempts(recording), task_runs(recording), strict=True):
        # From the first to the last time on the scheduler or the worker.
        begin, end = -inf, inf
        if not attempt.was_there:
            begin = least([row["processing_t"], row["compute_start_t"]])
        if attempt.end is not None:
            end = most([row["end_t"], row["compute_stop_t"]])
        if begin < until_t and end >= from_t:
            found.append(_cut(attempt, row, from_t, until_t))
    return found


def _cut(attempt: Attempt, row: Row, from_t: float, until_t: float) -> Row:
    cut = dict(row)
    for name in ("processing_t", "end_t", "compute_start_t", "compute_stop_t"):
        if row[name] is not None:
            cut[name] = min(max(row[name], from_t), until_t)
    if row["compute_stop_t"] is not None and not (
        row["compute_start_t"] < until_t and row["compute_stop_t"] >= from_t
    ):
        cut["compute_start_t"] = cut["compute_stop_t"] = None
    parts = attempt.phases
    if parts:
        for name, actions in {"compute_seconds": ("compute",), **PARTS}.items():
            cut[name] = sum(
                max(0, min(phase["stop"], until_t) - max(phase["start"], from_t))
                for phase in parts
                if phase["action"] in actions
            )
    if row["end_t"] is not None and row["end_t"] >= until_t:
        cut |= {"outcome": "unfinished", "kept": False, **dict.fromkeys(UNKNOWN_BEFORE_THE_END)}
    return cut


def run_within(recording: Recording, time_range: TimeRange) -> Row:
    """Return the sums and counts of the view run in the range."""
    from_t, until_t = time_range.instants(recording)
    start_t, stop_t = extent(recording)
    runs = task_runs_within(recording, time_range)
    there = [
        (max(come, from_t), min(go, until_t), threads)
        for come, go, threads in presence(recording)
        if come < until_t and (go >= from_t)
    ]
    core_seconds = sum(threads * max(go - come, 0) for come, go, threads in there)
    compute_seconds = total(column(runs, "compute_seconds"))
    return {
        "start_t": max(start_t, from_t),
        "stop_t": min(stop_t, until_t),
        "workers": len(there),
        "core_seconds": core_seconds,
        "compute_seconds": compute_seconds,
        "core_efficiency": compute_seconds / core_seconds,
        "task_runs": len(runs),
        **{
            outcome: column(runs, "outcome").count(outcome)
            for outcome in ("memory", "erred", "retried", "lost", "unfinished")
        },
        "output_bytes": total(column(runs, "nbytes")),
        "transfer_seconds": total(column(runs, "transfer_seconds")),
    }


def records_within(recording: Recording, kind: str, time_range: TimeRange) -> list[dict]:
    """Return the records whose instant is in the range."""
    return [line for line in recording.of(kind) if time_range.holds(recording, line["t"])]
