"""What lies in a stretch of the run: what an excerpt is to tell, from the records alone."""

from dataclasses import dataclass
from math import inf

from nightly.failures import failures
from nightly.processes import extent, presence
from nightly.recording import Recording, Row
from nightly.tasks import PARTS, Attempt, attempts, task_runs
from nightly.totals import column, least, most, total

#: What an attempt has come to is told when it ends.
TOLD_AT_THE_END = ("nbytes", "typename", "exception", "traceback")


@dataclass(frozen=True)
class Stretch:
    """A part of a run, in shares of its length: from the first and before the second."""

    start: float
    stop: float

    def seconds(self, recording: Recording) -> tuple[float, float]:
        """Give its ends in seconds since the start of the run."""
        start_t, stop_t = extent(recording)
        length = stop_t - start_t
        return self.start * length, self.stop * length

    def instants(self, recording: Recording) -> tuple[float, float]:
        """Give its ends; where the run begins or ends it is open."""
        start_t, _ = extent(recording)
        start, stop = self.seconds(recording)
        return (
            start_t + start if self.start > 0 else -inf,
            start_t + stop if self.stop < 1 else inf,
        )

    def holds(self, recording: Recording, t: float) -> bool:
        """Tell whether an instant lies in it."""
        from_t, until_t = self.instants(recording)
        return from_t <= t < until_t


def task_runs_within(recording: Recording, stretch: Stretch) -> list[Row]:
    """Attempts of which anything lies in the stretch, cut off at its ends."""
    found = zip(attempts(recording), task_runs(recording), strict=True)
    ends = stretch.instants(recording)
    return [
        _cut(attempt, row, *ends) for attempt, row in found if _touches(attempt, row, *ends)
    ]


def _touches(attempt: Attempt, row: Row, from_t: float, until_t: float) -> bool:
    """Take what the scheduler saw of it and the computation that the worker timed."""
    begin = -inf if attempt.was_there else least([row["processing_t"], row["compute_start_t"]])
    end = inf if attempt.end is None else most([row["end_t"], row["compute_stop_t"]])
    return begin < until_t and end >= from_t


def _cut(attempt: Attempt, row: Row, from_t: float, until_t: float) -> Row:
    cut = dict(row)
    for name in ("processing_t", "end_t", "compute_start_t", "compute_stop_t"):
        if row[name] is not None:
            cut[name] = min(max(row[name], from_t), until_t)
    if row["compute_stop_t"] is not None and not (
        row["compute_start_t"] < until_t and row["compute_stop_t"] >= from_t
    ):
        cut["compute_start_t"] = cut["compute_stop_t"] = None
    parts = (attempt.end or {}).get("startstops") or []
    if parts:
        for name, actions in {"compute_seconds": ("compute",), **PARTS}.items():
            cut[name] = sum(
                max(0, min(part["stop"], until_t) - max(part["start"], from_t))
                for part in parts
                if part["action"] in actions
            )
    if row["end_t"] is not None and row["end_t"] >= until_t:
        cut |= {"outcome": "unfinished", **dict.fromkeys(TOLD_AT_THE_END)}
    return cut


def headline(recording: Recording, stretch: Stretch) -> Row:
    """What the view run is to say of the stretch, as far as it is sums and counts of it."""
    from_t, until_t = stretch.instants(recording)
    start_t, stop_t = extent(recording)
    runs = task_runs_within(recording, stretch)
    there = [
        (max(come, from_t), min(go, until_t), threads)
        for come, go, threads in presence(recording)
        if come < until_t and (go >= from_t)
    ]
    core_seconds = sum(threads * max(go - come, 0) for come, go, threads in there)
    compute_seconds = total(column(runs, "compute_seconds"))
    failed = [row for row in failures(recording) if stretch.holds(recording, row["t"])]
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
        "failures": len(failed),
        "output_bytes": total(column(runs, "nbytes")),
        "transfer_seconds": total(column(runs, "transfer_seconds")),
    }


def records_within(recording: Recording, kind: str, stretch: Stretch) -> list[dict]:
    """Records that have an instant, and that lies in the stretch."""
    return [line for line in recording.of(kind) if stretch.holds(recording, line["t"])]
