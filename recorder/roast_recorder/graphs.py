"""The graphs that a client sends, as they are before the scheduler has tasks of them.

Between a collection and its tasks a graph has layers; the scheduler sees only tasks. So
the one method of a client through which all graphs go is listened to, on this client
alone. What a listener cannot tell cheaply, it does not tell: no layer is worked out for it.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import logging
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import dask

logger = logging.getLogger("roast_recorder")

#: Layers of a graph that are told; of more there is a number.
MAX_LAYERS: Final = 300

#: Longest text of a name, of a piece of code, and how many pieces one recording has.
MAX_LENGTH: Final = 300
MAX_CODE_CHARACTERS: Final = 10_000
MAX_CODES: Final = 500

#: Lines around the one that submits, of code that is too long to be written down whole.
LINES_AROUND: Final = 40

_METHOD: Final = "_graph_to_futures"

#: Called with what a record of a graph holds.
Tell = Callable[[dict[str, Any]], None]


def listen(client: Any, tell: Tell, *, code: bool) -> Callable[[], None]:
    """Tell of every graph that a client sends; give back what ends that.

    Parameters
    ----------
    client : distributed.Client
    tell : callable
        Called in the thread that submits.
    code : bool
        Whether the code that submits is told, too.
    """
    listener = _Listener(tell, code=code)
    listeners: list[_Listener] | None = getattr(
        vars(client).get(_METHOD), "roast_listeners", None
    )
    if listeners is None:
        listeners = []
        setattr(client, _METHOD, _wrap(getattr(client, _METHOD), listeners))
    listeners.append(listener)

    def leave() -> None:
        listeners.remove(listener)
        ours = getattr(vars(client).get(_METHOD), "roast_listeners", None) is listeners
        if ours and not listeners:
            delattr(client, _METHOD)

    return leave


def _wrap(method: Callable[..., Any], listeners: list[_Listener]) -> Callable[..., Any]:
    def send_graph(*arguments: Any, **named: Any) -> Any:
        for listener in list(listeners):
            listener.hear(arguments, named)
        return method(*arguments, **named)

    # Dask itself looks for the user's code above this, and passes over its own modules: it
    # must not take ours for the user's.
    as_dasks = FunctionType(
        send_graph.__code__, {"__name__": "distributed.client"}, closure=send_graph.__closure__
    )
    as_dasks.roast_listeners = listeners  # type: ignore[attr-defined]
    return as_dasks


class _Listener:
    def __init__(self, tell: Tell, *, code: bool) -> None:
        self._tell = tell
        self._codes = Codes() if code else None

    def hear(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        try:
            graph, keys = (*arguments, *named.values())[:2]
            told: dict[str, Any] = {}
            layers = [] if type(graph).__name__ in _WITHOUT_LAYERS else list(_layers(graph))
            if layers:
                told["layers"] = layers[:MAX_LAYERS]
                if len(layers) > MAX_LAYERS:
                    told["more_layers"] = len(layers) - MAX_LAYERS
                told["collections"] = _collections(named.get("span_metadata"))
            code = self._codes.of(sys._getframe(2)) if self._codes is not None else None
            # Thousands of tasks can be submitted by one line.
            if code and (layers or code["is_new"]):
                told["code"] = code
            if told:
                key = next(iter(keys), None)
                self._tell({"key": str(key)[:MAX_LENGTH], "value": told})
        except Exception:
            logger.debug("roast: a graph cannot be described", exc_info=True)


#: What single tasks and ``client.map`` come as.
_WITHOUT_LAYERS: Final = frozenset({"LLGExpr", "_MapExpr", "dict"})


def _layers(graph: Any) -> Iterator[dict[str, Any]]:
    """Describe the layers of a graph, or the steps of an expression."""
    if (layers := getattr(graph, "layers", None)) is not None:
        yield from (_layer(name, layer) for name, layer in layers.items())
        return
    for step in _steps(graph):
        high_level = step.operand("dsk") if "dsk" in step._parameters else None
        if (layers := getattr(high_level, "layers", None)) is not None:
            yield from (_layer(name, layer) for name, layer in layers.items())
        elif high_level is None and type(step).__name__ not in _CONTAINERS:
            yield _step(step)


#: Expressions that only hold others together.
_CONTAINERS: Final = frozenset({"_ExprSequence", "_HLGExprSequence", "CompositeExpr"})


def _steps(expression: Any) -> Iterator[Any]:
    waiting, seen = [expression], set()
    while waiting:
        step = waiting.pop()
        if id(step) in seen or not hasattr(step, "_parameters"):
            continue
        seen.add(id(step))
        yield step
        waiting.extend(reversed(step.dependencies()))
        if type(step).__name__ in _CONTAINERS:
            waiting.extend(reversed(step.operands))


def _layer(name: Any, layer: Any) -> dict[str, Any]:
    kind = type(layer).__name__
    # Others would make all their tasks to count them.
    counts = kind == "Blockwise" or layer.is_materialized()
    tasks = len(layer) if counts else None
    return {"name": str(name)[:MAX_LENGTH], "type": kind, "tasks": tasks}


def _step(step: Any) -> dict[str, Any]:
    """Describe a step; what Dask has fused into one is named by its parts."""
    kind = type(step).__name__
    told: dict[str, Any] = {"name": str(step._name)[:MAX_LENGTH], "type": kind}
    try:
        told["tasks"] = int(step.npartitions)
    except Exception:  # noqa: BLE001 - it has none, or would have to look for them
        told["tasks"] = None
    fused = step.operand("exprs") if "exprs" in step._parameters else None
    if fused:
        told["fused"] = [type(part).__name__ for part in fused][:MAX_LAYERS]
    return told


def _collections(metadata: Any) -> list[str]:
    """Name the types of the collections that are computed, as Dask says it."""
    told = metadata.get("collections", ()) if isinstance(metadata, dict) else ()
    types = [str(collection.get("type"))[:MAX_LENGTH] for collection in list(told)[:MAX_LAYERS]]
    # So says ``dask.compute``, which has made a graph of them before.
    return [kind for kind in types if kind != "low-level-graph"]


class Codes:
    """The pieces of code that submit: each is told once with its text, then by its name."""

    def __init__(self) -> None:
        self._places: dict[tuple[CodeType, int], dict[str, Any]] = {}
        self._told: set[str] = set()

    def of(self, frame: FrameType | None) -> dict[str, Any] | None:
        """Describe the user's code in or above a frame.

        Returns
        -------
        dict or None
            As :meth:`once` gives it, and is_new: whether this is the first time that it
            submits. None if there is no such frame, or there were too many.
        """
        frame = _users_frame(frame)
        if frame is None:
            return None
        place = (frame.f_code, frame.f_lineno)
        if place in self._places:
            return self._places[place]
        if len(self._places) >= MAX_CODES:
            return None
        lines, first_line = _source(frame)
        code = self.once(
            described("".join(lines), frame.f_code.co_filename, frame.f_lineno, first_line)
        )
        without_text = {name: code[name] for name in ("digest", "filename", "line_number")}
        self._places[place] = {**without_text, "is_new": False}
        return {**code, "is_new": True}

    def once(self, code: dict[str, Any]) -> dict[str, Any]:
        """Leave the text out of a description if it was told before."""
        if code["digest"] in self._told or len(self._told) >= MAX_CODES:
            return {name: code[name] for name in ("digest", "filename", "line_number")}
        self._told.add(code["digest"])
        return code


def described(text: str, filename: str, line_number: int, first_line: int) -> dict[str, Any]:
    """Describe a piece of code.

    Parameters
    ----------
    text, filename : str
    line_number : int
        The line that submits, counted from 1 in its file.
    first_line : int
        The line of the file with which the text begins.
    """
    if len(text) > MAX_CODE_CHARACTERS:
        lines = text.splitlines(keepends=True)
        begin = max(line_number - first_line - LINES_AROUND, 0)
        text = "".join(lines[begin : begin + 2 * LINES_AROUND + 1])[:MAX_CODE_CHARACTERS]
        first_line += begin
    return {
        "digest": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16],
        "filename": Path(filename).name[:MAX_LENGTH],
        "line_number": line_number,
        "first_line": first_line,
        "text": text,
    }


def _source(frame: FrameType) -> tuple[list[str], int]:
    if frame.f_code.co_name == "<module>":
        return linecache.getlines(frame.f_code.co_filename, frame.f_globals), 1
    try:
        return inspect.getsourcelines(frame.f_code)
    except (OSError, TypeError):
        return [], frame.f_code.co_firstlineno


def _users_frame(frame: FrameType | None) -> FrameType | None:
    """Give the innermost frame that is the user's, by what Dask's configuration says."""
    ignored = "|".join(
        f"(?:{module})"
        for module in (
            *dask.config.get("distributed.diagnostics.computations.ignore-modules", ()),
            "roast_recorder",
        )
    )
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        comprehension = frame.f_code.co_name in ("<listcomp>", "<dictcomp>", "<genexpr>")
        if not comprehension and not re.match(ignored, module):
            return frame
        frame = frame.f_back
    return None
