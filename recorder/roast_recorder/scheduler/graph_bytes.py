"""Sizes of the graphs that the scheduler receives, and of what large ones contain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from dask.sizeof import sizeof
from distributed.utils import nbytes

if TYPE_CHECKING:
    from distributed.scheduler import TaskState

#: The tasks of smaller graphs are not examined: each costs 50 µs of the scheduler's thread.
LARGE_GRAPH_BYTES: Final = 2**20
TASKS_PER_GROUP: Final = 10
MAX_GROUPS: Final = 100


def serialized_bytes(message: dict[str, Any]) -> int | None:
    """Return the serialized size of the graph in a client's ``update-graph`` message."""
    frames = getattr(message.get("expr_ser"), "frames", None)
    if frames is None:
        frames = message.get("graph_frames")  # until 2025.3
    return None if frames is None else sum(map(nbytes, frames))


def bytes_by_group(tasks: Iterable[TaskState]) -> list[dict[str, Any]]:
    """Return the number of tasks of each group, and the size of the first few."""
    groups: dict[str, tuple[list[int], list[TaskState]]] = {}
    for task in tasks:
        count, first = groups.setdefault(task.group.name, ([0], []))
        count[0] += 1
        if len(first) < TASKS_PER_GROUP:
            first.append(task)
    return [
        {
            "group": name,
            "tasks": count,
            "examined": len(first),
            "nbytes": sum(_task_bytes(task.run_spec) for task in first),
        }
        for name, ([count], first) in list(groups.items())[:MAX_GROUPS]
    ]


def _task_bytes(run_spec: Any) -> int:
    """Return the size of a task's arguments and of the data that its function holds."""
    is_tuple = type(run_spec) is tuple and run_spec  # until 2024.12
    function: Any = run_spec[0] if is_tuple else getattr(run_spec, "func", None)
    held = [getattr(function, name, None) for name in ("args", "keywords", "__dict__")]
    if getattr(function, "__module__", None) == "__main__":  # pickled with its global values
        names, values = function.__code__.co_names, function.__globals__
        held += [values[name] for name in names if name in values]
    held += [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    held.append(getattr(getattr(function, "__self__", None), "__dict__", None))
    return int(sum(map(sizeof, [run_spec, *held])))
