"""Graphs as a client submits them and as the scheduler receives them: layers, code, sizes.

A graph of a collection has layers, but the scheduler receives only tasks. All graphs pass
through one method of a client. Descriptions are limited to what is cheap: no layer is
materialized.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from dask.sizeof import sizeof
from distributed.utils import nbytes

from roast_recorder.probes import ClientProbe, SchedulerProbe
from roast_recorder.submitting_code import CodeRegistry

if TYPE_CHECKING:
    from distributed.scheduler import TaskState


#: Maximum number of described layers of a graph; the rest are only counted.
MAX_LAYERS: Final = 300

#: Longest name.
MAX_LENGTH: Final = 300

#: Graphs of single tasks and of ``client.map``.
_WITHOUT_LAYERS: Final = frozenset({"LLGExpr", "_MapExpr", "dict"})

#: Expressions that only contain others.
_CONTAINERS: Final = frozenset({"_ExprSequence", "_HLGExprSequence", "CompositeExpr"})

#: The tasks of smaller graphs are not examined: each costs 50 µs of the scheduler's thread.
LARGE_GRAPH_BYTES: Final = 2**20
TASKS_PER_GROUP: Final = 10
MAX_GROUPS: Final = 100

Fields = dict[str, Any]


class OnClient(ClientProbe):
    """Record every graph that a client submits, in the thread that submits it."""

    kinds = ("graph",)

    def _install(self) -> None:
        core = self.core
        self._codes = CodeRegistry() if core.settings.code else None
        names = "graph", "keys"
        submit = "_graph_to_futures"
        core.tap.method("graph", core.client, submit, self._on_graph, positional=names)

    def _on_graph(self, message: Fields) -> None:
        graph, keys = list(message.values())[:2]  # their names depend on the version
        submitting = self._codes.submitting(sys._getframe()) if self._codes else None
        if value := describe_graph(graph, message, submitting):
            key = next(iter(keys), None)
            self.core.record("graph", key=str(key)[:MAX_LENGTH], value=value)


class OnScheduler(SchedulerProbe):
    """Record the size of each graph in the client's message, and its computation."""

    kinds = ("graph_update", "computation")

    def _install(self) -> None:
        core = self.core
        self._codes = CodeRegistry()
        self._last_computation: tuple[Any, int] | None = None
        self._graph_bytes: dict[str, int | None] = {}  # of graphs in progress, by client
        if "graph_update" in core.kinds:
            with core.tap.source("graph_update"):
                streams = core.scheduler.stream_handlers
                core.tap.message("graph_update", streams, "update-graph", self._on_message)

    def _on_message(self, message: Fields) -> None:
        self._graph_bytes[message["client"]] = serialized_bytes(message)

    def on_graph(
        self, tasks: list[TaskState], t: float, client: str, stimulus_id: str | None
    ) -> None:
        """Record the size of a client's graph, and the computation that it belongs to."""
        about = {"client": client, "stimulus_id": stimulus_id}
        size = self._graph_bytes.pop(client, None)
        if size is not None:
            groups = None
            if size >= LARGE_GRAPH_BYTES:
                with self.core.tap.guard("graph_update", 0):
                    groups = bytes_by_group(tasks)
            value = {"groups": groups} if groups else None
            row = {**about, "nbytes": size, "value": value}
            self.core.append(("graph_update", t, 1, row))
        if "computation" in self.core.kinds:
            with self.core.tap.guard("computation"):
                self._append_computation(t, about)

    def _append_computation(self, t: float, about: Fields) -> None:
        computations = self.core.scheduler.computations
        if not computations:
            return  # distributed.diagnostics.computations.max-history is 0
        computation = computations[-1]
        stacks = list(computation.code) if self.core.settings["code"] else []
        latest = (computation.id, len(stacks))
        if latest != self._last_computation:
            self._last_computation = latest
            codes = self._codes.of_stacks(stacks)
            value = {"codes": codes} if codes else None
            # With the time of its tasks, which belong to it.
            row = {"name": str(computation.id), **about, "value": value}
            self.core.append(("computation", t, 1, row))


def describe_graph(graph: Any, named: Fields, code: Fields | None) -> Fields:
    """Return the layers of a graph, the types of its collections, and the code if any."""
    value: Fields = {}
    layers = [] if type(graph).__name__ in _WITHOUT_LAYERS else list(_layers(graph))
    if layers:
        value["layers"] = layers[:MAX_LAYERS]
        if len(layers) > MAX_LAYERS:
            value["more_layers"] = len(layers) - MAX_LAYERS
        metadata = named.get("span_metadata")
        found = metadata.get("collections", ()) if isinstance(metadata, dict) else ()
        types = [str(one.get("type"))[:MAX_LENGTH] for one in list(found)[:MAX_LAYERS]]
        # ``dask.compute`` reports this type for graphs that it has converted.
        value["collections"] = [kind for kind in types if kind != "low-level-graph"]
    # One line can submit thousands of tasks without layers.
    if code and (layers or code["is_new"]):
        value["code"] = code
    return value


def _layers(graph: Any) -> Iterator[Fields]:
    """Describe the layers of a graph, or the steps of an expression."""
    waiting, seen = [graph], set()
    while waiting:
        step = waiting.pop()
        if not hasattr(step, "_parameters"):  # no expression
            for name, layer in getattr(step, "layers", {}).items():
                kind = type(layer).__name__
                # Counting the tasks of other layers would materialize them.
                is_countable = kind == "Blockwise" or layer.is_materialized()
                tasks = len(layer) if is_countable else None
                yield {"name": str(name)[:MAX_LENGTH], "type": kind, "tasks": tasks}
        elif id(step) not in seen:
            seen.add(id(step))
            is_container = type(step).__name__ in _CONTAINERS
            waiting.extend(reversed(step.dependencies()))
            if is_container:
                waiting.extend(reversed(step.operands))
            high_level = step.operand("dsk") if "dsk" in step._parameters else None
            if high_level is not None:
                waiting.append(high_level)
            elif not is_container:
                described: Fields = {"name": str(step._name)[:MAX_LENGTH]}
                described |= {"type": type(step).__name__, "tasks": None}
                with contextlib.suppress(Exception):  # it has no number, or computing it fails
                    described["tasks"] = int(step.npartitions)
                if "exprs" in step._parameters and (fused := step.operand("exprs")):
                    described["fused"] = [type(part).__name__ for part in fused][:MAX_LAYERS]
                yield described


# -- sizes of graphs that the scheduler receives ---------------------------------------------


def serialized_bytes(message: Fields) -> int | None:
    """Return the serialized size of the graph in a client's ``update-graph`` message."""
    frames = getattr(message.get("expr_ser"), "frames", None)
    if frames is None:
        frames = message.get("graph_frames")  # until 2025.3
    return None if frames is None else sum(map(nbytes, frames))


def bytes_by_group(tasks: Iterable[TaskState]) -> list[Fields]:
    """Return the number of tasks of each group, and the size of the first few.

    The size is of a task's arguments and of the data that its function holds.
    """
    groups: dict[str, list[TaskState]] = {}
    for task in tasks:
        groups.setdefault(task.group.name, []).append(task)
    sizes = []
    for group, members in list(groups.items())[:MAX_GROUPS]:
        examined: list[Any] = [task.run_spec for task in members[:TASKS_PER_GROUP]]
        total = 0
        for run_spec in examined:
            is_tuple = type(run_spec) is tuple and run_spec  # until 2024.12
            function: Any = run_spec[0] if is_tuple else getattr(run_spec, "func", None)
            held = [getattr(function, name, None) for name in ("args", "keywords", "__dict__")]
            if isinstance(function, FunctionType) and function.__module__ == "__main__":
                # It is pickled with its global values.
                names, values = function.__code__.co_names, function.__globals__
                held += [values[name] for name in names if name in values]
            cells = getattr(function, "__closure__", None) or ()
            held += [cell.cell_contents for cell in cells]
            held.append(getattr(getattr(function, "__self__", None), "__dict__", None))
            total += sum(map(sizeof, [run_spec, *held]))
        counts = {"tasks": len(members), "examined": len(examined)}
        sizes.append({"group": group, **counts, "nbytes": int(total)})
    return sizes
