"""Words for the wall time of a run in which no task was assigned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roast_analyze.open.session import Session

#: State of view ``wall_time`` in which there is work.
WORKING: Final = "working"

#: Words for seconds in each other state.
WORDS: Final = {
    "no worker": "without a worker while tasks or the client waited",
    "tasks not assigned": "in which tasks waited and none was assigned",
    "client makes graphs": (
        "in which the client was in functions of Dask, such as those that make graphs"
    ),
    "client computes": "of the client's own work",
    "client waits": "in which the client waited for Dask and there was no task",
    "no client": "in which no client that submitted tasks was connected",
    "starting": "before the first task, in which it is not known what the client did",
    "ending": "after the last task, in which it is not known what the client did",
    "client not known": "between tasks, in which it is not known what the client did",
}

#: Time without an assigned task from which it is described: seconds, and share of the run.
_LEAST_SECONDS: Final = 1.0
_LEAST_SHARE: Final = 0.1

#: Number of states that are named, and the share of the run from which they are.
_NAMED_STATES: Final = 3
_NAMED_SHARE: Final = 0.01


def query(trace: Session) -> dict[str, float]:
    """Return the wall time in each state, in seconds; nothing of a run without Dask."""
    return dict(
        trace.rows(
            "SELECT state, sum(seconds) FROM wall_time "
            "WHERE trace_id IN (SELECT trace_id FROM raw.transition) GROUP BY state"
        )
    )


def describe(states: Mapping[str, float]) -> str:
    """Describe the time in which no task was assigned; empty if there is little of it."""
    wall_seconds = sum(states.values())
    working_seconds = states.get(WORKING, 0.0)
    rest = wall_seconds - working_seconds
    if not working_seconds or rest < max(_LEAST_SECONDS, _LEAST_SHARE * wall_seconds):
        return ""
    named = [
        f"{q.seconds(states[state])} {WORDS[state]}"
        for state in sorted(WORDS.keys() & states.keys(), key=lambda it: (-states[it], it))
        if states[state] >= _NAMED_SHARE * wall_seconds
    ][:_NAMED_STATES]
    return (
        f"Tasks were assigned to workers for {q.seconds(working_seconds)} of "
        f"{q.seconds(wall_seconds)}. The rest includes: {'; '.join(named)}."
    )
