"""Names of the compiled functions that sampled frames call.

A compiled function, such as ``time.sleep`` or ``zlib.decompress``, has no frame, so a profile
shows its time in the Python function that calls it. The instruction at which that function was
sampled is the call, and the bytecode has the names by which it found the compiled function.
Names of modules, classes and functions are replaced by those under which Python knows them:
``np.dot`` is ``numpy.dot``. Local variables are never read: their names are kept, as in
``file.read``.
"""

from __future__ import annotations

import dis
import weakref
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, NamedTuple

from roast_recorder.process_state import here

#: Bytecode of a function that is read at most, which takes a few microseconds per 100 bytes.
_MAX_BYTES: Final = 100_000

#: Code objects whose calls are kept.
_MAX_CODES: Final = 4096

#: A name is at most this long.
_MAX_CHARACTERS: Final = 120

#: Instructions, and how many low bits of their argument are not part of the number of a name.
_GLOBALS: Final = {"LOAD_GLOBAL": 1, "LOAD_NAME": 0}
_ATTRIBUTES: Final = {
    "LOAD_ATTR": 0 if "LOAD_METHOD" in dis.opmap else 1,
    "LOAD_METHOD": 0,
    "LOAD_SUPER_ATTR": 2,
}
_LOCALS: Final = {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF"}
_CALLS: Final = {"PRECALL", "CALL", "CALL_KW", "CALL_FUNCTION_EX"}
_ENTERS: Final = {"BEFORE_WITH", "LOAD_SPECIAL"}
_OPERATORS: Final = {
    "BINARY_OP": "",
    "COMPARE_OP": "compare",
    "BINARY_SUBSCR": "[]",
    "BINARY_SLICE": "[]",
    "STORE_SUBSCR": "[]=",
    "STORE_SLICE": "[]=",
    "UNARY_NEGATIVE": "-",
    "UNARY_INVERT": "~",
}


class _Callee(NamedTuple):
    """How an instruction finds what it calls."""

    #: Name of a global variable, or "" if the path begins with anything else.
    root: str
    path: str

    def then(self, more: str) -> _Callee:
        return _Callee(self.root, self.path + more)


_UNKNOWN: Final = _Callee("", "")


def compiled_call(frame: FrameType) -> str | None:
    """Return the name of what the innermost frame of a thread is calling.

    Returns
    -------
    str or None
        A dotted name, or ``operator`` and the operator, such as ``operator @``. None if the
        frame was between calls, or if its code is too large or has no positions.
    """
    code = frame.f_code
    # Not a global variable, which would be pickled with the recorder.
    calls: dict[int, tuple[weakref.ref[CodeType], dict[int, str | None]]]
    calls = here().compiled_calls
    known = calls.get(id(code))
    # Another code object can have the id of one that was deleted.
    if known is None or known[0]() is not code:
        if len(calls) >= _MAX_CODES:
            calls.clear()
        known = calls[id(code)] = weakref.ref(code), {}
    names, offset = known[1], frame.f_lasti
    if offset not in names:
        callee = _Instructions(code).callee(offset // 2) if offset < _MAX_BYTES else None
        names[offset] = callee and _name(callee, frame)
    return names[offset]


class _Instructions:
    """The bytecode of a function, in units of two bytes.

    :mod:`dis` takes a millisecond for a function of usual size.
    """

    def __init__(self, code: CodeType) -> None:
        self._code = code
        self._bytes = code.co_code
        self._positions = list(code.co_positions())

    def callee(self, unit: int) -> _Callee | None:
        """Return what the instruction at a unit calls; None if it is no call."""
        if not 0 <= unit < len(self._positions):
            return None
        # The offset of a frame can be that of the inline cache after an instruction.
        unit = unit if self._name(unit) != "CACHE" else self._before(unit)
        name = self._name(unit)
        if name in _OPERATORS:
            return _Callee("", f"operator {_OPERATORS[name] or self._operator(unit)}")
        if name in _ENTERS:
            return self._value(self._before(unit)).then(".__enter__")
        return self._called(unit) if name in _CALLS else None

    def _called(self, unit: int) -> _Callee | None:
        """Return what a call instruction calls: it starts in the code where its callee does."""
        start, end = self._range(unit)
        if start is None:
            return None
        for place in range(unit - 1, -1, -1):
            name = self._name(place)
            is_part = name in _GLOBALS or name in _LOCALS or name in _ATTRIBUTES
            if not (is_part or name in _ENTERS or name in _CALLS):
                continue
            begun, until = self._range(place)
            if begun != start or name == "PRECALL" or (name in _CALLS and until == end):
                continue
            if name in _ENTERS:  # the end of a block calls what it has entered
                return self._value(self._before(place)).then(".__exit__")
            # An attribute on another line has another start.
            after = self._after(place)
            while after < unit and self._name(after) in _ATTRIBUTES:
                place, after = after, self._after(after)  # noqa: PLW2901 - the loop ends here
            called = self._value(place)
            return called.then(".__exit__") if until == end else called
        return None

    def _value(self, unit: int, depth: int = 0) -> _Callee:
        """Return how the value was found that the instruction at a unit has left."""
        if unit < 0 or depth > 20:
            return _UNKNOWN
        name, code = self._name(unit), self._code
        if name in _GLOBALS:
            root = code.co_names[self._argument(unit) >> _GLOBALS[name]]
            return _Callee(root, root)
        if name in _LOCALS:
            return _Callee("", code._varname_from_oparg(self._argument(unit)))  # type: ignore[attr-defined]
        if name in _ATTRIBUTES:
            attribute = code.co_names[self._argument(unit) >> _ATTRIBUTES[name]]
            return self._value(self._before(unit), depth + 1).then(f".{attribute}")
        if name in _CALLS:
            return (self._called(unit) or _UNKNOWN).then("()")
        return _UNKNOWN

    def _name(self, unit: int) -> str:
        return dis.opname[self._bytes[2 * unit]]

    def _range(self, unit: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        line, end_line, column, end_column = self._positions[unit]
        if line is None or end_line is None or column is None or end_column is None:
            return None, None
        return (line, column), (end_line, end_column)

    def _before(self, unit: int) -> int:
        """Return the instruction before one; -1 before the first."""
        unit -= 1
        while unit >= 0 and self._name(unit) in ("CACHE", "EXTENDED_ARG", "PUSH_NULL", "COPY"):
            unit -= 1
        return unit

    def _after(self, unit: int) -> int:
        unit += 1
        while unit < len(self._positions) and self._name(unit) in ("CACHE", "EXTENDED_ARG"):
            unit += 1
        return unit

    def _argument(self, unit: int) -> int:
        argument, shift = self._bytes[2 * unit + 1], 8
        while unit > 0 and self._name(unit - 1) == "EXTENDED_ARG":
            unit -= 1
            argument |= self._bytes[2 * unit + 1] << shift
            shift += 8
        return argument

    def _operator(self, unit: int) -> str:
        symbols: list[tuple[str, str]] = getattr(dis, "_nb_ops", [])
        argument = self._argument(unit)
        return symbols[argument][1] if argument < len(symbols) else "?"


def _name(callee: _Callee, frame: FrameType) -> str:
    """Return the name of a callee, with that of its module if a global variable leads to it."""
    root, path = callee
    if root:
        first, dot, rest = path.partition(".")
        scope: dict[str, Any] = frame.f_globals
        value = scope.get(root, frame.f_builtins.get(root))
        # A lazy module, which has another class, is loaded by reading any attribute.
        while type(value) is ModuleType and rest and first == first.rstrip("()"):
            name, dot, after = rest.partition(".")
            # Not getattr(), which can import a module.
            inner = vars(value).get(name.removesuffix("()"))
            if inner is None:
                return f"{value.__name__}.{rest}"[:_MAX_CHARACTERS]
            value, first, rest = inner, name, after
        called = first[len(first.rstrip("()")) :]
        if value is not None:
            path = f"{_known_name(value, first)}{called}{dot}{rest}"
    return path[:_MAX_CHARACTERS]


def _known_name(value: Any, name: str = "") -> str:
    """Return the name of a module, function or class, or of the class of another value.

    `name` is that by which the program finds the value.

    The value belongs to the program: isinstance() and attributes of other kinds of objects,
    such as proxies, can call its code.
    """
    kind = type(value)
    if kind is ModuleType:
        return str(value.__name__)
    if kind is MethodType:  # such as numpy.random.normal, of a random state
        owner = value.__self__
        owner = owner if issubclass(type(owner), type) else type(owner)
        return f"{owner.__module__}.{owner.__qualname__}.{name.rstrip('()')}"
    if kind not in (BuiltinFunctionType, FunctionType) and not issubclass(kind, type):
        # NumPy's functions are instances of its own classes, and have names.
        if kind.__module__.partition(".")[0] == "numpy" and hasattr(value, "__name__"):
            return f"numpy.{value.__name__}"
        return f"{kind.__module__}.{kind.__qualname__}"
    # A method of a builtin object, such as `random.random`, has no module.
    module = getattr(value, "__module__", None)
    return f"{module}.{value.__qualname__}" if isinstance(module, str) else value.__qualname__
