"""Waiting and execution time of attempts, and time of tasks by state."""

from dataclasses import dataclass

from nightly.recording import Recording, Row, once
from nightly.tasks import Attempt, attempts, task_runs
from nightly.totals import grouped, least, most


@dataclass
class Stay:
    """A task in a state, from the transition into it to the next one of the key.

    A task in a state when recording began counts from then.
    """

    key: str
    state: str
    from_t: float
    #: The transition that ended it; None without one.
    end: dict | None


@once
def stays(recording: Recording) -> list[Stay]:
    """Return the time of each task in each state."""
    there = [line for line in recording.of("task") if line.get("state") is not None]
    found = []
    for key, lines in grouped(
        [*there, *recording.of("transition")], lambda line: line["key"]
    ).items():
        for here, after in zip(lines, [*lines[1:], None], strict=True):
            state = here["state" if here["kind"] == "task" else "finish"]
            found.append(Stay(key, state, here["t"], after))
    return found


def latencies(recording: Recording) -> list[Row]:
    """Return one row per attempt."""
    held = {
        id(stay.end): stay.end["t"] - stay.from_t
        for stay in stays(recording)
        if stay.end is not None and stay.state in ("queued", "no-worker")
    }
    names = ("key", "prefix", "attempt", "worker", "outcome", "processing_t", "run_id")
    return [
        {name: run[name] for name in names}
        | _on_the_scheduler(run, held.get(id(attempt.begin)))
        | _on_the_worker(attempt, run)
        for attempt, run in zip(attempts(recording), task_runs(recording), strict=True)
    ]


def _on_the_scheduler(run: Row, held: float | None) -> Row:
    """Divide queued_seconds into waiting for dependencies and for a slot.

    Without the transition to waiting, only the latter is known.
    """
    queued = run["queued_seconds"]
    return {
        "dependency_seconds": None if queued is None else queued - (held or 0),
        "slot_seconds": held if queued is None else held or 0,
    }


def _on_the_worker(attempt: Attempt, run: Row) -> Row:
    """Return the times between dispatch, start, transfers, execution, end and report."""
    parts = (attempt.end or {}).get("startstops") or []
    moves = [part for part in parts if part["action"] == "transfer"]
    others = [part for part in parts if part["action"] != "transfer"]
    first_t = least(part["start"] for part in parts)
    last_t = most(part["stop"] for part in parts)
    fetch_t = least(part["start"] for part in moves)
    fetched_t = most(part["stop"] for part in moves)
    execute_t = least(part["start"] for part in others)
    return {
        "dispatch_seconds": _between(run["processing_t"], first_t),
        "fetch_seconds": _between(fetch_t, fetched_t),
        "thread_wait_seconds": _between(fetched_t, execute_t),
        "execute_seconds": _between(execute_t, last_t),
        "report_seconds": _between(last_t, run["end_t"]),
        "processing_seconds": _between(run["processing_t"], run["end_t"]),
    }


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else end - begin
