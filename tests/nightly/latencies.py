"""Waiting and execution time of attempts, and time of tasks by state."""

import math
from dataclasses import dataclass

from nightly.recording import Recording, Row, once
from nightly.tasks import attempts, task_runs
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
    first_t: dict[str, float] = {}
    for line in recording.of("transition"):
        first_t[line["key"]] = min(line["t"], first_t.get(line["key"], line["t"]))
    # Tasks that existed are recorded in steps; a transition before can describe the same state.
    there = [
        line
        for line in recording.of("task")
        if line.get("state") is not None and line["t"] < first_t.get(line["key"], math.inf)
    ]
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
    rows = []
    for attempt, run in zip(attempts(recording), task_runs(recording), strict=True):
        # Waiting for dependencies, and for a slot. Without the transition to waiting, only the
        # latter is known.
        queued, slot = run["queued_seconds"], held.get(id(attempt.begin))
        parts = attempt.phases
        moves = [part for part in parts if part["action"] == "transfer"]
        others = [part for part in parts if part["action"] != "transfer"]
        last_t = most(part["stop"] for part in parts)
        fetched_t = most(part["stop"] for part in moves)
        execute_t = least(part["start"] for part in others)
        rows.append(
            {
                **{name: run[name] for name in names},
                "dependency_seconds": None if queued is None else queued - (slot or 0),
                "slot_seconds": slot if queued is None else slot or 0,
                "dispatch_seconds": _between(
                    run["processing_t"], least(part["start"] for part in parts)
                ),
                "fetch_seconds": _between(least(part["start"] for part in moves), fetched_t),
                "thread_wait_seconds": _between(fetched_t, execute_t),
                "execute_seconds": _between(execute_t, last_t),
                "report_seconds": _between(last_t, run["end_t"]),
                "processing_seconds": _between(run["processing_t"], run["end_t"]),
            }
        )
    return rows


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else end - begin
