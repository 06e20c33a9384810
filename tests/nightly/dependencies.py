"""Edges of the task graph."""

from nightly.recording import Recording, Row
from nightly.tasks import attempts, task_runs, tasks
from nightly.totals import grouped


def dependencies(recording: Recording) -> list[Row]:
    """Return one row per task and dependency.

    A row describes the last successful attempt of the task, or else the last one, and the
    result of the dependency available when that attempt began; for a task without attempts,
    the last result.
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
        pairs = tried.get(task["key"], [])
        ended_well = [pair for pair in pairs if pair[1]["outcome"] == "memory"]
        taker, run = (ended_well or pairs or [(None, {})])[-1]
        until = len(places) if taker is None else places.get(id(taker.begin), -1)
        phases = taker.phases if taker else []
        sources = {phase.get("source") for phase in phases if phase["action"] == "transfer"}
        for dependency in task["dependencies"] or ():
            results = [
                (places[id(attempt.end)], result)
                for attempt, result in tried.get(dependency, [])
                if result["outcome"] == "memory" and places[id(attempt.end)] < until
            ]
            _, result = max(results, key=lambda pair: pair[0], default=(None, {}))
            here, there = run.get("worker"), result.get("worker")
            rows.append(
                {
                    "key": task["key"],
                    "dependency": dependency,
                    "prefix": task["prefix"],
                    "dependency_prefix": known.get(dependency, {}).get("prefix"),
                    "bytes": result.get("nbytes"),
                    "worker": here,
                    "dependency_worker": there,
                    "is_moved": None if None in (here, there) else here != there,
                    "has_transfer": there in sources if phases and there is not None else None,
                    "task_group": task["task_group"],
                    "dependency_group": known.get(dependency, {}).get("task_group"),
                    "stimulus_id": graphs[task["key"]],
                }
            )
    return rows
