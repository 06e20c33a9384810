"""Edges of the task graph."""

from nightly.recording import Recording, Row
from nightly.tasks import Attempt, attempts, task_runs, tasks
from nightly.totals import grouped


def dependencies(recording: Recording) -> list[Row]:
    """Return one row per task and dependency.

    For the task it is the last successful attempt, or else the last one. For the dependency it
    is the result available when that attempt began; for a task without attempts, the last
    result.
    """
    known = {task["key"]: task for task in tasks(recording)}
    graphs: dict[str, str | None] = {}
    for line in recording.of("task"):
        graphs.setdefault(line["key"], line.get("stimulus_id"))
    tried = grouped(
        zip(attempts(recording), task_runs(recording), strict=True), lambda pair: pair[0].key
    )
    places = {id(line): place for place, line in enumerate(recording.of("transition"))}
    rows = []
    for task in tasks(recording):
        taker, run = _taker(tried.get(task["key"], []))
        until = len(places) if taker is None else places.get(id(taker.begin), -1)
        for dependency in task["dependencies"] or ():
            results = [
                (places[id(attempt.end)], result)
                for attempt, result in tried.get(dependency, [])
                if result["outcome"] == "memory" and places[id(attempt.end)] < until
            ]
            _, result = max(results, key=lambda pair: pair[0], default=(None, {}))
            rows.append(
                {
                    "key": task["key"],
                    "dependency": dependency,
                    "prefix": task["prefix"],
                    "dependency_prefix": known.get(dependency, {}).get("prefix"),
                    "bytes": result.get("nbytes"),
                    **_places(taker, run.get("worker"), result.get("worker")),
                    "task_group": task["task_group"],
                    "dependency_group": known.get(dependency, {}).get("task_group"),
                    "stimulus_id": graphs[task["key"]],
                }
            )
    return rows


def _taker(tried: list[tuple[Attempt, Row]]) -> tuple[Attempt | None, Row]:
    ended_well = [pair for pair in tried if pair[1]["outcome"] == "memory"]
    return (ended_well or tried or [(None, {})])[-1]


def _places(taker: Attempt | None, here: str | None, there: str | None) -> Row:
    """Return the workers of both, and whether the task reported a transfer."""
    parts = ((taker and taker.end) or {}).get("startstops") or []
    sources = {part.get("source") for part in parts if part["action"] == "transfer"}
    return {
        "worker": here,
        "dependency_worker": there,
        "is_moved": None if None in (here, there) else here != there,
        "has_transfer": there in sources if parts and there is not None else None,
    }
