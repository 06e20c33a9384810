"""The text of exceptions, with the files that the ``repr`` of an ``OSError`` leaves out."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Iterator
from typing import Any, Final, Self

#: The repr of an ``OSError``, of which Python omits the file: ``(2, 'No such file …')``.
_OS_ERROR: Final = re.compile(r"\(-?\d+, ['\"]")

#: Maximum number of characters recorded of an exception.
MAX_EXCEPTION_LENGTH: Final = 10_000

#: Size of a pickled exception up to which files are searched for in it.
MAX_PICKLE_BYTES: Final = 1_000_000

#: Number of exceptions of a chain or of groups that are searched for files.
MAX_EXCEPTIONS: Final = 100

#: errno, strerror and up to two files of an ``OSError``.
OSErrorParts = tuple[int, str, Any, Any]


def exception_text(error: BaseException) -> str:
    """Return the bounded text of an exception, even if its ``__repr__`` raises."""
    try:
        text = repr(error)
    except Exception:  # noqa: BLE001 - a user's __repr__ may do anything
        return f"{type(error).__qualname__}: its text cannot be read"
    if _OS_ERROR.search(text):
        for parts in _os_errors(error):
            text = _with_files(text, parts)
    return text[:MAX_EXCEPTION_LENGTH]


def received_text(text: str, exception: Any) -> str:
    """Return the text of an exception that a worker has sent.

    The files are in its pickle, which is only searched: the scheduler lacks the user's modules
    and runs nothing of them.

    Parameters
    ----------
    text : str
        The exception's ``repr``, as the worker has sent it.
    exception : distributed.protocol.Serialized or distributed.protocol.Serialize
        The pickled exception.
    """
    if not _OS_ERROR.search(text):
        return text
    try:
        pickled = getattr(exception, "data", None)
        # Bytes are read without unpickling; Dask sends nothing else.
        if pickled is None and exception.header["type"] == "bytes":
            # Chunks of executors other than Dask's do without distributed.
            from distributed.protocol.serialize import deserialize

            pickled = deserialize(exception.header, exception.frames)
        if isinstance(pickled, bytes) and len(pickled) <= MAX_PICKLE_BYTES:
            search = _Search(io.BytesIO(pickled))
            search.load()
            for parts in search.found:
                text = _with_files(text, parts)
    except Exception:  # noqa: BLE001, S110 - the text is complete but for the files
        pass
    return text


def _with_files(text: str, parts: OSErrorParts) -> str:
    number, reason, first, second = parts
    to = "" if second is None else f" -> {second!r}"
    whole = f"[Errno {number}] {reason}: {first!r}{to}"
    short = f"({number!r}, {reason!r})"
    # In the repr of an exception that quotes another one, quotes may be escaped.
    found = short if short in text else short.replace("'", "\\'")
    return text.replace(found, f"({whole!r})", 1)


def _os_errors(error: BaseException) -> Iterator[OSErrorParts]:
    """Find the errors of files in an exception, its causes and the members of its groups."""
    waiting: list[BaseException | None] = [error]
    for _ in range(MAX_EXCEPTIONS):
        if not waiting:
            return
        if (found := waiting.pop(0)) is None:
            continue
        if isinstance(found, OSError) and found.filename is not None:
            yield found.errno or 0, found.strerror or "", found.filename, found.filename2
        if isinstance(found, BaseExceptionGroup):
            waiting += found.exceptions
        waiting += [found.__cause__ or found.__context__]


class _Search(pickle.Unpickler):
    """Reads a pickle without importing or calling what it names, and collects ``found``."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.found: list[OSErrorParts] = []

    def find_class(self, _module: str, _name: str) -> Any:
        search = self

        class Inert:
            """Any class, function or object."""

            def __new__(cls, *arguments: object) -> Self:
                search.collect(arguments)
                return super().__new__(cls)

            def __init__(self, *arguments: object) -> None: ...

            def __call__(
                self, *arguments: object
            ) -> Inert:  # a class that was pickled by value
                return Inert(*arguments)

            def __setstate__(self, state: object) -> None: ...

        return Inert

    def collect(self, arguments: tuple[object, ...]) -> None:
        """Collect the ``OSError`` that arguments make, or that one of them describes."""
        found = map(_parts, (arguments, *arguments))
        self.found += [parts for parts in found if parts is not None]


def _parts(value: object) -> OSErrorParts | None:
    """Return the parts of an ``OSError`` from its attributes or from its arguments."""
    match value:
        case {"errno": int(number), "strerror": str(reason), "filename": first, **others}:
            return number, reason, first, others.get("filename2")
        case (int(number), str(reason), str() | bytes() as first):
            return number, reason, first, None
        case (int(number), str(reason), str() | bytes() as first, _, second):
            return number, reason, first, second
    return None
