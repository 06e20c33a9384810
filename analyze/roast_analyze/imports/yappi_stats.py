"""Yappi statistics as JSON lines, for a subprocess.

``python -m roast_analyze.imports.yappi_stats FILE`` writes the facts of the file, and then a
line for each function. Yappi saves in three formats:

``ystat``
    A pickle. Pickles can run code: the unpickler here substitutes four inert classes for
    Yappi's, and no others. Yappi does not save the flags of code objects; a program can add
    them to the functions as ``code_flags`` (docs: how-to/yappi).
``pstat``
    Python's profile format, a dict in ``marshal``, which runs no code. cProfile writes it,
    too.
``callgrind``
    Text, with times in whole microseconds, without numbers of calls and total times.
"""

from __future__ import annotations

import marshal
import math
import pickle
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import orjson

#: Name, file name and values of a function, with its callees.
_Function = dict[str, Any]

#: First bytes of pickles, and of dicts in marshal.
_PICKLE: Final = b"\x80"
_MARSHAL: Final = (b"{", b"\xfb")

#: Unit of times in callgrind files.
_MICROSECOND: Final = 1e-6


class NotStats(Exception):  # noqa: N818 - as in errors.py
    """A file was not saved by Yappi."""


def main() -> None:
    """Write the file in the first argument to stdout, as JSON lines."""
    try:
        with Path(sys.argv[1]).open("rb") as file:
            facts, functions = read(file)
        for line in (facts, *map(validated, functions)):
            sys.stdout.buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    except NotStats as error:
        sys.exit(f"Error: {error}")


def read(file: IO[bytes]) -> tuple[dict[str, Any], list[_Function]]:
    """Return the facts of a binary file, and its functions."""
    beginning = file.read(16)
    file.seek(0)
    if beginning.startswith(_PICKLE):
        return _ystat(file)
    if beginning.startswith(_MARSHAL):
        return _pstat(file)
    if beginning.startswith((b"version:", b"# callgrind")):
        return _callgrind(file)
    raise NotStats("its format is none of ystat, pstat and callgrind")


def validated(function: _Function) -> _Function:
    """Return a function after checking the types of its values."""
    value = function["value"]
    for part in (value, *value["callees"]):
        for name in ("index", "line_number", "calls", "actual_calls", "code_flags"):
            number = part.get(name)
            # A number that JSON or DuckDB cannot hold would fail much later.
            if number is not None and (type(number) is not int or abs(number) >= 2**62):
                raise NotStats(_unexpected(name, number))
        for name in ("self_seconds", "total_seconds"):
            seconds = part.get(name)
            is_number = type(seconds) in (int, float) and math.isfinite(seconds)
            if seconds is not None and not is_number:
                raise NotStats(_unexpected(name, seconds))
    for name in ("name", "filename"):
        if type(function[name]) is not str:
            raise NotStats(_unexpected(name, function[name]))
        function[name] = function[name].encode(errors="replace").decode()
    return function


def _unexpected(name: str, value: object) -> str:
    return f"invalid {name} of type {type(value).__name__}"


# -- ystat -------------------------------------------------------------------------------


class _Statistics:
    """Replacement for Yappi's lists of functions, with attributes only."""


class _Statistic(dict[Any, Any]):
    """Replacement for Yappi's functions, which are also used as keys."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


class _Unpickler(pickle.Unpickler):
    """Unpickler that creates the replacements of Yappi's classes, and no other objects."""

    _CLASSES: Final = {
        "YFuncStats": _Statistics,
        "YChildFuncStats": _Statistics,
        "YFuncStat": _Statistic,
        "YChildFuncStat": _Statistic,
    }

    def find_class(self, module: str, name: str) -> Any:
        if module == "yappi" and name in self._CLASSES:
            return self._CLASSES[name]
        raise NotStats(f"it contains {module}.{name}, which is not part of Yappi's statistics")

    def persistent_load(self, _identity: Any) -> NoReturn:
        raise NotStats("it contains a persistent id")


def _ystat(file: IO[bytes]) -> tuple[dict[str, Any], list[_Function]]:
    try:
        statistics, clock = _Unpickler(file).load()
        functions = [
            {
                "name": it["name"],
                "filename": it["module"],
                "value": {
                    **_numbers(it),
                    "line_number": it["lineno"],
                    "builtin": bool(it["builtin"]),
                    "code_flags": it.get("code_flags"),
                    "thread": it["ctx_id"] if type(it["ctx_id"]) is int else None,
                    "thread_name": it["ctx_name"] if type(it["ctx_name"]) is str else None,
                    "tag": it["tag"] if type(it["tag"]) is int else None,
                    "callees": [_numbers(vars(c)) for c in vars(it["children"])["_as_list"]],
                },
            }
            for it in map(vars, vars(statistics)["_as_list"])
        ]
    except NotStats:
        raise
    except Exception as error:  # noqa: BLE001 - a pickle can fail in any way
        raise NotStats(
            f"it is a pickle, but not a ystat file ({type(error).__name__})"
        ) from None
    if clock not in ("cpu", "wall"):
        raise NotStats(_unexpected("clock", clock))
    return {"value": {"format": "ystat", "clock": clock}}, functions


def _numbers(it: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "index": it["index"],
        "calls": it["ncall"],
        "actual_calls": it["nactualcall"],
        "self_seconds": it["tsub"],
        "total_seconds": it["ttot"],
    }


# -- pstat -------------------------------------------------------------------------------


def _pstat(file: IO[bytes]) -> tuple[dict[str, Any], list[_Function]]:
    try:
        statistics = marshal.load(file)  # noqa: S302 - it cannot contain code that runs
        # Functions refer to each other by number, as in the other formats.
        index = {function: place for place, function in enumerate(statistics)}
        callees: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for function, (*_, callers) in statistics.items():
            for caller, numbers in callers.items():
                callees[caller].append(_values_of_profile(index[function], numbers))
        functions = [
            {
                "name": name,
                "filename": filename,
                "value": {
                    **_values_of_profile(index[filename, line, name], numbers[:4]),
                    "line_number": line,
                    "callees": callees[filename, line, name],
                },
            }
            for (filename, line, name), numbers in statistics.items()
        ]
    except (EOFError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise NotStats(f"it is not a pstat file ({type(error).__name__}: {error})") from None
    return {"value": {"format": "pstat"}}, functions


def _values_of_profile(index: int, numbers: tuple[Any, ...]) -> dict[str, Any]:
    # Yappi writes all calls before the non-recursive ones, cProfile after them.
    calls, others, self_seconds, total_seconds = numbers
    return {
        "index": index,
        "calls": max(calls, others),
        "actual_calls": min(calls, others),
        "self_seconds": self_seconds,
        "total_seconds": total_seconds,
    }


# -- callgrind ---------------------------------------------------------------------------

#: Yappi first names all functions, and then refers to them by number.
_NAMED: Final = re.compile(r"fn=\((\d{1,18})\) (.*) (.*):(-?\d{1,9})$")
_COMPRESSED: Final = re.compile(r"(c?fn)=\((\d{1,18})\)$")
_CALLS: Final = re.compile(r"calls=(\d{1,18}) ")
_COST: Final = re.compile(r"-?\d{1,18} (\d{1,18})$")


def _callgrind(file: IO[bytes]) -> tuple[dict[str, Any], list[_Function]]:
    functions: dict[int, _Function] = {}
    pid = function = callee = calls = None
    for line in file.read().decode(errors="replace").splitlines():
        if found := _NAMED.match(line):
            index = int(found[1])
            functions[index] = {
                "name": found[2],
                "filename": found[3],
                "value": {"index": index, "line_number": int(found[4]), "callees": []},
            }
        elif found := _COMPRESSED.match(line):
            if int(found[2]) not in functions:
                raise NotStats(f"it does not name function {found[2]}")
            if found[1] == "fn":
                function, callee = functions[int(found[2])]["value"], None
            else:
                callee = int(found[2])
        elif found := _CALLS.match(line):
            calls = int(found[1])
        elif found := _COST.match(line):
            if function is None:
                raise NotStats("it has times without a function")
            seconds = int(found[1]) * _MICROSECOND
            if callee is None:
                # A function has a line of costs for each line of its source.
                function["self_seconds"] = function.get("self_seconds", 0.0) + seconds
            else:
                function["callees"].append(
                    {"index": callee, "calls": calls, "total_seconds": seconds}
                )
                callee = None
        elif line.startswith("pid:"):
            pid = int(line[4:]) if line[4:].strip().isdecimal() else None
    if not functions:
        raise NotStats("it names no function")
    return {"value": {"format": "callgrind"}, "pid": pid}, list(functions.values())


if __name__ == "__main__":
    main()
