"""Kinds of work of profile samples, by the functions on their stacks.

``work_kinds.toml`` is the table of patterns, with a description of its format and of which
pattern decides. A file of the user can come before it. Functions without a pattern are of three
sorts: those of the standard library and of the recorder do what their caller does; those of
other installed packages are ``other library``; all others are the user's own code. Time in an
own function is one of ``Python loops`` if it is spent in Python itself or its builtins, and
``own code`` if it is spent in the standard library, or in a compiled function of which nothing
is known.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roast_analyze.errors import BrokenKinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

LOOP: Final = "Python loops"
OWN: Final = "own code"
LIBRARY: Final = "other library"
UNKNOWN: Final = "not known"

#: Kind of a sample with no function that is known.
_NOTHING: Final = "Dask itself"

_PACKAGES: Final = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
_STANDARD: Final = re.compile(
    r"^.*[/\\]lib(?:64)?[/\\]python3\.\d+t?[/\\]|^.*[/\\]Python3\d+[/\\]lib[/\\]"
    r"|^.*[/\\]python\d+\.zip[/\\]",
    re.IGNORECASE,
)
#: Code without a file that is the user's: of notebooks, prompts, and cloudpickle's functions.
_TYPED: Final = re.compile(r"<(?:dynamic-code|stdin|ipython|cell|doctest|console|string input)")
_RECORDER: Final = re.compile(r"(^|[/\\])roast_recorder[/\\](?!demo[/\\])")

#: Compiled functions that only compute, so that own code which calls them is a loop as well. Of
#: methods of modules, such as numpy.random.normal, early recorders name the type only.
_COMPUTES: Final = re.compile(
    r"(builtins\.(?!input|open|print|exec|eval|compile|__import__|method)|math\.|random\.|itertools\."
    r"|_?functools\.|_?operator\.|_?collections\.|time\.(time|perf_counter|thread_time)).*"
    r"|(.*\.)?(append|extend|add|items|keys|values|split|strip|format|replace|encode|startswith"
    r"|endswith|setdefault|popleft|appendleft)"
)

#: Paths of modules, as opposed to any other text.
_PLACE: Final = re.compile(r"[\w./+-]+\.py|<frozen [\w.]+>")

_FIELDS: Final = {"kind", "file", "function", "call", "caller", "rank", "holds", "detail"}

#: Results that are kept, whatever a trace contains.
_REMEMBERED: Final = 50_000


class Function(NamedTuple):
    """A function on a stack."""

    name: str
    filename: str
    line_number: int | None = None


class State(NamedTuple):
    """What a stack is for, from its outermost function to one within it."""

    kind: str
    detail: str
    holds: int
    #: The innermost function.
    function: Function | None


@dataclass(frozen=True)
class Pattern:
    """A pattern of ``work_kinds.toml``."""

    kind: str
    file: re.Pattern[str] | None
    function: re.Pattern[str] | None
    call: re.Pattern[str] | None
    caller: re.Pattern[str] | None
    rank: int
    holds: int
    detail: str | None


class Kinds:
    """Classification by a table of patterns."""

    def __init__(self, patterns: Sequence[Pattern], categories: Mapping[str, str]) -> None:
        self._functions = [pattern for pattern in patterns if pattern.call is None]
        self._calls = [pattern for pattern in patterns if pattern.call is not None]
        #: Category of each kind: waiting, working or not known.
        self.categories = dict(categories)
        self.root: Final = State(_NOTHING, "", 0, None)
        #: Returns what a stack is for when a function is called at its end. The trees of all
        #: records have the same functions, in few states.
        self.enter = lru_cache(_REMEMBERED)(self._enter)

    def _enter(self, state: State, function: Function) -> State:
        place, is_own, is_installed = _place(function)
        caller = _place(state.function)[0] if state.function else ""
        if place is None:
            return state
        for pattern in self._functions:
            if _matches(pattern, place, function.name, caller):
                if pattern.rank < state.holds:
                    break
                detail = pattern.detail or "package"
                if detail == "package":
                    detail = _package(place)
                elif detail == "function":
                    detail = described(function)
                elif detail == "owner":
                    detail = self._owner(state, pattern.kind)
                return State(pattern.kind, detail, pattern.holds, function)
        else:
            if is_own and state.holds <= 1:
                return State(LOOP, described(function), 0, function)
            if is_installed and state.holds == 0:
                return State(LIBRARY, _package(place), 1, function)
        kind = OWN if state.kind == LOOP else state.kind
        return State(kind, state.detail, state.holds, function)

    def call(self, state: State, name: str) -> State:
        """Return what a stack is for while its innermost function calls a compiled one."""
        function = state.function
        place = (_place(function)[0] or "") if function else ""
        for pattern in self._calls:
            if (
                pattern.call is not None
                and pattern.call.fullmatch(name)
                and pattern.rank >= state.holds
                and _matches(pattern, place, function.name if function else "", "")
            ):
                where = described(function) if function else ""
                if pattern.detail == "owner":
                    detail = where
                else:
                    detail = pattern.detail or f"{name}, {where}"
                return State(pattern.kind, detail, pattern.holds, function)
        if state.kind == LOOP and not _COMPUTES.fullmatch(name):
            return state._replace(kind=OWN)
        return state

    def _owner(self, state: State, kind: str) -> str:
        """Return the function that calls, or the first one that did."""
        if state.kind == kind and state.detail:
            return state.detail
        return described(state.function) if state.function else ""


def described(function: Function) -> str:
    """Return the name of a function with the module or the file and line of its code."""
    place, is_own, _ = _place(function)
    if is_own or place is None:
        file = re.split(r"[/\\]", function.filename)[-1]
        where = "line" if file.startswith("<") else file
        separator = " " if where == "line" else ":"
        return f"{function.name} ({where}{separator}{function.line_number or '?'})"
    return f"{function.name} ({place})"


@cache
def _place(function: Function) -> tuple[str | None, bool, bool]:
    """Return the path of a file in its folder of packages, if it is own code, or a package.

    The path is None for the recorder, which is not shown.
    """
    filename = function.filename or "<unknown>"
    if _RECORDER.search(filename):
        return None, False, False
    if installed := _PACKAGES.match(filename):
        return filename[installed.end() :].replace("\\", "/"), False, True
    if standard := _STANDARD.match(filename):
        return filename[standard.end() :].replace("\\", "/"), False, False
    if filename.startswith("<"):
        return filename, _TYPED.match(filename) is not None, False
    return filename.replace("\\", "/"), True, False


def _package(place: str) -> str:
    return place.partition("/")[0].removesuffix(".py")


def public_place(filename: str) -> str | None:
    """Return the path of a file in its folder of packages, or None if it may be private.

    The files of Python's standard library and of packages that ``work_kinds.toml`` names are
    public.
    """
    place, is_own, is_installed = _place(Function("", filename))
    if place is None or is_own or not _PLACE.fullmatch(place):
        return None
    public = named_packages() if is_installed else sys.stdlib_module_names
    package = re.split(r"[./>]", place.removeprefix("<frozen "))[0]
    return place if package in public else None


@cache
def named_packages() -> frozenset[str]:
    """Return the packages and modules at the beginnings of the table's patterns of files."""
    found: set[str] = set()
    for pattern in _builtin()[0]:
        if pattern.file is not None:
            # At bars that are not within parentheses.
            for path in re.split(r"\|(?![^()]*\))", pattern.file.pattern):
                head = path.partition("/")[0].replace(r"\.py", "")
                found.update(re.findall(r"[A-Za-z]\w+", head))
    return frozenset(found)


def pattern_words() -> frozenset[str]:
    """Return the words in the table's patterns of functions."""
    patterns = [p for pattern in _builtin()[0] for p in (pattern.function, pattern.call) if p]
    texts = [pattern.pattern for pattern in (*patterns, _COMPUTES)]
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def _matches(pattern: Pattern, place: str, name: str, caller: str | None) -> bool:
    return (
        (pattern.file is None or pattern.file.fullmatch(place) is not None)
        and (pattern.function is None or pattern.function.fullmatch(name) is not None)
        and (pattern.caller is None or pattern.caller.fullmatch(caller or "") is not None)
    )


def load_kinds(path: Path | None = None) -> Kinds:
    """Return the patterns of the user's file, followed by those of ``work_kinds.toml``.

    Raises
    ------
    BrokenKinds
        If the user's file cannot be read or is not valid.
    """
    own, categories = _own_kinds(path) if path else ([], {})
    builtin, builtin_categories = _builtin()
    unknown = {p.kind for p in own} - categories.keys() - builtin_categories.keys()
    if unknown:
        raise BrokenKinds(
            f"{str(path)!r}: unknown kind {min(unknown)!r}: "
            'add it below [kinds] as waiting or working, such as "my kind" = "working"'
        )
    return Kinds([*own, *builtin], categories | builtin_categories)


def _own_kinds(path: Path) -> tuple[list[Pattern], dict[str, str]]:
    try:
        return _parsed(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BrokenKinds(f"cannot read {str(path)!r}: {error.strerror}") from None
    except (ValueError, TypeError, re.error) as error:
        raise BrokenKinds(f"{str(path)!r}: {error}") from None


@cache
def _builtin() -> tuple[list[Pattern], dict[str, str]]:
    table = files("roast_analyze").joinpath("algorithms", "work_kinds.toml")
    return _parsed(table.read_text(encoding="utf-8"))


def _parsed(text: str) -> tuple[list[Pattern], dict[str, str]]:
    content = tomllib.loads(text)
    categories = content.get("kinds", {})
    wrong = {k: v for k, v in categories.items() if v not in ("waiting", "working", UNKNOWN)}
    if wrong:
        kind, category = next(iter(wrong.items()))
        raise ValueError(f"invalid category {category!r} of {kind!r}: use waiting or working")
    return [_pattern(entry) for entry in content.get("pattern", [])], categories


def _pattern(entry: Mapping[str, Any]) -> Pattern:
    if unknown := entry.keys() - _FIELDS:
        raise ValueError(f"unknown field {min(unknown)!r}: use {', '.join(sorted(_FIELDS))}")
    if "kind" not in entry or not entry.keys() & {"file", "function", "call"}:
        raise ValueError(f"incomplete pattern {dict(entry)}: it needs kind, and file or call")
    file, function, call, caller = (
        None if name not in entry else re.compile(entry[name])
        for name in ("file", "function", "call", "caller")
    )
    holds = entry.get("holds", 0 if call else 1)
    return Pattern(
        entry["kind"], file, function, call, caller,
        int(entry.get("rank", 1)), int(holds), entry.get("detail"),
    )  # fmt: skip


def classify(
    kinds: Kinds,
    functions: Sequence[Function],
    parents: Iterable[int],
    node_functions: Iterable[int],
) -> tuple[list[int], list[State]]:
    """Return what the stack of each node of some trees is for.

    Parameters
    ----------
    kinds : Kinds
    functions : sequence of Function
    parents : iterable of int
        Parent of each node, which precedes it; -1 for a root.
    node_functions : iterable of int
        Place of the function of each node in `functions`; -1 for a root.

    Returns
    -------
    list of int
        Of each node, the place of its state in the second list.
    list of State
    """
    states = [kinds.root]
    places = {kinds.root: 0}
    # A function called in the same state has the same result, in all trees.
    known: dict[tuple[int, int], int] = {}
    found: list[int] = []
    for parent, number in zip(parents, node_functions, strict=True):
        if parent < 0 or number < 0:
            found.append(0)
            continue
        step = found[parent], number
        place = known.get(step)
        if place is None:
            state = kinds.enter(states[step[0]], functions[number])
            place = known[step] = places.setdefault(state, len(states))
            if place == len(states):
                states.append(state)
        found.append(place)
    return found, states
