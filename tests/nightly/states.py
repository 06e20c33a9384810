"""Time of tasks by state."""

import math
from dataclasses import dataclass

from nightly.recording import Recording, once
from nightly.totals import grouped


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
