"""Functions measured by Yappi, and stacks estimated from them.

Yappi records pairs of caller and callee. The share of a caller in a function is known; further
up it is divided in proportion to the time in each caller.
"""

import inspect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from nightly.recording import Recording, Row

#: Minimum share of the total time of a stack.
SMALLEST = 1 / 2000

#: Maximum depth of a stack.
DEEPEST = 200

#: Flags of code objects.
COROUTINE = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR


def yappi_functions(recording: Recording) -> list[Row]:
    """Return one row per function."""
    names = (
        "line_number", "calls", "actual_calls", "self_seconds", "total_seconds", "thread",
        "thread_name", "tag", "builtin",
    )  # fmt: skip
    rows = []
    for facts, lines in _files(recording):
        for line in lines:
            value = line["value"]
            flags, seconds = value.get("code_flags"), value.get("total_seconds")
            coroutine = False if value.get("builtin") else None
            is_called = value.get("calls") and seconds is not None
            rows.append(
                {
                    "function": _label(line),
                    "name": line["name"],
                    "filename": line["filename"],
                    **{name: value.get(name) for name in names},
                    "is_coroutine": coroutine if flags is None else bool(flags & COROUTINE),
                    "mean_seconds": seconds / value["calls"] if is_called else None,
                    "clock": facts["value"].get("clock"),
                    "worker": facts.get("worker"),
                    "log": facts["filename"],
                    "source": line["source"],
                }
            )
    return rows


def yappi_calls(recording: Recording) -> list[Row]:
    """Return one row per caller and callee."""
    rows = []
    for facts, lines in _files(recording):
        by_index = {line["value"]["index"]: line for line in lines}
        for line in lines:
            for edge in line["value"]["callees"]:
                if edge["index"] not in by_index:
                    continue
                rows.append(
                    {
                        "caller": _label(line),
                        "callee": _label(by_index[edge["index"]]),
                        "calls": edge["calls"],
                        "actual_calls": edge.get("actual_calls"),
                        "self_seconds": edge.get("self_seconds"),
                        "total_seconds": edge["total_seconds"],
                        "log": facts["filename"],
                        "source": line["source"],
                    }
                )
    return rows


def stacks(recording: Recording) -> list[Row]:
    """Return the stacks of all files, as in ``profile_stacks``."""
    return [
        {
            "worker": facts.get("worker"),
            "prefix": None,
            "start_t": None,
            "stop_t": None,
            "stack": [_label(line) if line else UNKNOWN_CALLERS for line in path],
            "samples": round(seconds * 1e6),
            "seconds": seconds,
            "ambiguous_samples": 0,
            "counted_samples": 0,
            "frames": [
                {
                    "name": line["name"] if line else UNKNOWN_CALLERS,
                    "filename": line and line["filename"],
                    "line_number": line and line["value"]["line_number"],
                }
                for line in path
            ],
            "lines": None,
            "server_id": None,
            "interval_seconds": 1e-6,
            "profiler": "yappi",
            "log": facts["filename"],
        }
        for facts, lines in _files(recording)
        for path, seconds in _told(lines)
    ]


UNKNOWN_CALLERS = "(unknown callers)"


@dataclass
class _Function:
    line: dict
    own: float
    total: float = 0.0
    called: list["_Edge"] = field(default_factory=list)
    calls: list["_Edge"] = field(default_factory=list)
    recursive_own: float = 0.0

    @property
    def called_total(self) -> float:
        return sum(edge.total for edge in self.called)

    @property
    def called_own(self) -> float:
        return sum(edge.own for edge in self.called)

    @property
    def with_recursion(self) -> float:
        rest = self.own - self.recursive_own
        return self.own / rest if rest else 1.0


@dataclass
class _Edge:
    caller: _Function
    callee: _Function
    own: float
    total: float

    @property
    def share(self) -> float:
        """Return the share of the callee's total time spent for this caller."""
        return self.total / self.callee.total if self.callee.total else 0.0

    @property
    def reported(self) -> float:
        """Return the self time of the callee spent for this caller."""
        if self.callee.called_own > 0:
            return min(self.own * self.callee.with_recursion, self.callee.own)
        return self.share * self.callee.own


def _told(lines: list[dict]) -> Iterator[tuple[list[dict | None], float]]:
    functions = _graph(lines)
    smallest = sum(function.own for function in functions) * SMALLEST
    found: dict[int, list[tuple[list[_Function], float]]] = defaultdict(list)
    waiting = [([f], *_by_itself(f)) for f in functions]
    while waiting:
        path, share, own = waiting.pop()
        if own > 1e-15:
            found[id(path[-1])].append((path, own))
        if len(path) < DEEPEST:
            waiting += [
                ([*path, edge.callee], share * edge.share, share * edge.reported)
                for edge in path[-1].calls
                if not any(edge.callee is one for one in path)
                and share * edge.share * edge.callee.total > smallest
            ]
    for function in functions:
        paths = found[id(function)]
        reported = sum(own for _, own in paths)
        scale = min(1.0, function.own / reported) if reported else 1.0
        for path, own in paths:
            yield [one.line for one in path], own * scale
        if function.own - reported > 1e-9:
            yield [None, function.line], function.own - reported


def _by_itself(function: _Function) -> tuple[float, float]:
    """Return the share of total time and self time without a known caller."""
    total = function.called_total
    share = max(1 - (total / function.total if function.total else 0.0), 0.0)
    if not total:
        return share, function.own
    if function.called_own > 0:
        return share, max(function.own - function.called_own * function.with_recursion, 0.0)
    return share, share * function.own


def _graph(lines: list[dict]) -> list[_Function]:
    by_index = {
        x["value"]["index"]: _Function(x, x["value"].get("self_seconds") or 0.0) for x in lines
    }
    for function in by_index.values():
        value = function.line["value"]
        beside = 0.0
        for edge in value["callees"]:
            callee = by_index.get(edge["index"])
            if callee is None:
                continue
            own = max(edge.get("self_seconds") or 0.0, 0.0)
            total = max(edge.get("total_seconds") or 0.0, 0.0)
            if callee is not function:
                beside += total
            if callee is function or edge.get("actual_calls") == 0:
                callee.recursive_own += own
            else:
                known = _Edge(function, callee, own, total)
                function.calls.append(known)
                callee.called.append(known)
        said = value.get("total_seconds")
        function.total = function.own + beside if said is None else said
    for function in by_index.values():
        function.total = max(function.total, function.called_total, function.own)
    return list(by_index.values())


def _files(recording: Recording) -> Iterator[tuple[dict, list[dict]]]:
    for facts in recording.of("import"):
        if facts["name"] == "yappi":
            yield facts, [x for x in recording.of("function") if x["source"] == facts["source"]]


def _label(line: dict) -> str:
    return f"{line['name']} ({line['filename']}:{line['value']['line_number']})"
