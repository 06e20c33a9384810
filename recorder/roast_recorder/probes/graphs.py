"""Graphs as a client submits them and as the scheduler receives them: layers, code, sizes.

A graph of a collection has layers, but the scheduler receives only tasks. All graphs pass
through one method of a client. Descriptions are limited to what is cheap: no layer is
materialized.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import linecache
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any, Final

import dask
from dask.sizeof import sizeof
from distributed.utils import nbytes

from roast_recorder.probes import ClientProbe, SchedulerProbe

if TYPE_CHECKING:
    from distributed.scheduler import TaskState


#: Maximum number of described layers of a graph; the rest are only counted.
MAX_LAYERS: Final = 300

#: Longest name.
MAX_LENGTH: Final = 300

#: Longest text of a piece of code, and most pieces of code in one recording.
MAX_CODE_CHARACTERS: Final = 10_000
MAX_CODES: Final = 500

#: Maximum numbers of described stacks of a computation, and of frames of a stack.
MAX_STACKS: Final = 20

#: Lines kept before and after the one that submits, of code that is too long.
LINES_AROUND: Final = 40

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
            self.core.append("graph", {"key": str(key)[:MAX_LENGTH], "value": value})


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


class CodeRegistry:
    """Pieces of code that submit work: the text of each is recorded once."""

    def __init__(self) -> None:
        self._places: dict[tuple[CodeType, int], Fields] = {}
        self._digests: set[str] = set()

    def submitting(self, frame: FrameType | None) -> Fields | None:
        """Describe the user's innermost code at or above a frame.

        Dask's configuration lists the modules that are not the user's. ``is_new`` is whether
        this line submits for the first time. Return None if there is no such code, or if too
        many lines have been recorded.
        """
        modules = dask.config.get("distributed.diagnostics.computations.ignore-modules", ())
        ignored = "|".join(f"(?:{module})" for module in (*modules, "roast_recorder"))
        while frame is not None and (
            frame.f_code.co_name in ("<listcomp>", "<dictcomp>", "<genexpr>")
            or re.match(ignored, str(frame.f_globals.get("__name__", "")))
        ):
            frame = frame.f_back
        if frame is None:
            return None
        place = (frame.f_code, frame.f_lineno)
        if place in self._places:
            return self._places[place]
        if len(self._places) >= MAX_CODES:
            return None
        filename = frame.f_code.co_filename
        if frame.f_code.co_name == "<module>":
            lines, first_line = linecache.getlines(filename, frame.f_globals), 1
        else:
            try:
                lines, first_line = inspect.getsourcelines(frame.f_code)
            except (OSError, TypeError):
                lines, first_line = [], frame.f_code.co_firstlineno
        described = describe_code("".join(lines), filename, frame.f_lineno, first_line)
        self._places[place] = {**_without_text(described), "is_new": False}
        return {**self._register(described), "is_new": True}

    def of_stacks(self, stacks: list[Any]) -> list[Fields]:
        """Describe the code that Dask keeps with a computation.

        Clients send it if ``distributed.diagnostics.computations.nframes`` of their
        configuration is not 0.
        """
        return [
            self._register(
                describe_code(
                    frame.code,
                    frame.filename,
                    frame.lineno_frame,
                    frame.lineno_frame - frame.lineno_relative,
                )
            )
            for stack in stacks[:MAX_STACKS]
            for frame in stack[:MAX_STACKS]
        ]

    def _register(self, described: Fields) -> Fields:
        """Return a description, without its text if that has been recorded."""
        if described["digest"] in self._digests or len(self._digests) >= MAX_CODES:
            return _without_text(described)
        self._digests.add(described["digest"])
        return described


def _without_text(described: Fields) -> Fields:
    return {name: described[name] for name in ("digest", "filename", "line_number")}


def describe_code(text: str, filename: str, line_number: int, first_line: int) -> Fields:
    """Describe a piece of code, which begins at `first_line` and submits at `line_number`."""
    if len(text) > MAX_CODE_CHARACTERS:
        lines = text.splitlines(keepends=True)
        start = max(line_number - first_line - LINES_AROUND, 0)
        text = "".join(lines[start : start + 2 * LINES_AROUND + 1])[:MAX_CODE_CHARACTERS]
        first_line += start
    return {
        "digest": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16],
        "filename": Path(filename).name[:MAX_LENGTH],
        "line_number": line_number,
        "first_line": first_line,
        "text": text,
    }


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
