"""Rows: the facts on their way from the scheduler to the process that writes them.

Rows exist because a hook on the scheduler's thread must cost next to nothing: it appends
what it was handed and returns. A whole batch is encoded at once, in C, and only
:mod:`roast_recorder.scheduler.expand`, in the writing process, makes the records of it that the
schema declares.

Two shapes:

* **Transitions** are the values of one flat list, one transition after another; a tuple
  for each would cost as much again, most of it in the garbage collector. What follows
  ``t, key, start, finish, stimulus_id`` depends on these::

      … finish = "processing":  worker, run_id
      … start = "processing":   run_id, worker, thread, nbytes, typename, startstops, failure
      otherwise:                nothing

  ``failure`` is a dict with ``exception``, ``traceback`` and ``cause``, or None.
* **Rows** of all other kinds are tuples whose first element is one of the tags below.

Batches are encoded by :mod:`marshal`: it is as fast as the fastest encoders of JSON, half
as large because it writes an object once that is met again, knows sets, bytes and tuples,
and is there on every cluster. Both ends run the recorder's own code.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import marshal
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

#: ``(TASK, t, key, prefix, group, dependencies, priority, annotations, span_id, client,
#: stimulus_id, state, worker, run_id)``
TASK: Final = 1
#: ``(WORKER_SAMPLE, t, worker, server_id, …)`` as :mod:`roast_recorder.scheduler.sampler` lists them
WORKER_SAMPLE: Final = 2
#: ``(RECORD, t, kind, fields)``: any record that is too rare to deserve a tag
RECORD: Final = 3
#: ``(FINE_METRICS, t, worker, server_id, deltas)``: one row makes a record of each delta
FINE_METRICS: Final = 4
#: ``(PROFILES, t, worker, server_id, records, packed)``: so many records, as
#: :func:`pack` packs them
PROFILES: Final = 5
#: ``(WORKER_LOG, t, worker, server_id, records, packed, kind)``: so many records of that
#: kind, as :class:`roast_recorder.worker.log_observer.LogObserver` packs them
WORKER_LOG: Final = 6

Row = tuple[Any, ...]

#: What every Python since 3.4 can read.
MARSHAL_VERSION: Final = 4

#: Text of an object that no other rule covers is cut at this length.
MAX_TEXT_LENGTH: Final = 1000

#: An array of numbers that is larger than this is named by its shape.
MAX_ARRAY_SIZE: Final = 10_000

#: What is nested deeper than this inside an odd row is cut, visibly.
MAX_DEPTH: Final = 20

#: An odd row of more containers than this takes the scheduler too long; it is left out.
MAX_CONTAINERS: Final = 200_000


def encode(
    transitions: list[Any], rows: list[Row], *, odd_keys: bool = False
) -> tuple[bytes, dict[str, list[float]]]:
    """Encode a batch.

    Parameters
    ----------
    transitions : list
        Flat, as the module's docstring says.
    rows : list of tuple
        The fields of a :data:`RECORD` may hold anything: sets, numpy scalars, users'
        objects. Whatever JSON lacks is replaced by its nearest plain value, or its text.
    odd_keys : bool
        Whether some keys hold more than texts and numbers. :mod:`marshal` would take the
        memory of a numpy number for bytes, so keys become texts before.

    Returns
    -------
    bytes
    dict
        What could not be encoded in any way and is left out, as :func:`census` counts.
    """
    left_out: dict[str, list[float]] = {}
    if odd_keys:
        transitions = [
            value
            for t, key, *others in split_transitions(transitions)
            for value in (t, str(key), *others)
        ]
    rebuilt = (row if row[0] != RECORD else _plain_record(row, left_out) for row in rows)
    sound = [row for row in rebuilt if row is not None]
    try:
        return marshal.dumps((transitions, sound), MARSHAL_VERSION), left_out
    except Exception:  # noqa: BLE001 - users' objects may raise anything
        kept: list[Any] = []
        for transition in split_transitions(transitions):
            kept.extend(_encodable(transition, left_out, census(list(transition), [])) or ())
        copies = (_encodable(row, left_out, census([], [row])) for row in sound)
        encodable = [row for row in copies if row is not None]
        with contextlib.suppress(ValueError):
            return marshal.dumps((kept, encodable), MARSHAL_VERSION), left_out
        # Each alone is nested just so deep, and no deeper.
        add_counts(left_out, census(kept, encodable))
        return marshal.dumps(([], []), MARSHAL_VERSION), left_out


def decode(batch: bytes) -> tuple[list[Any], list[Row]]:
    """Decode what :func:`encode` made.

    Raises
    ------
    ValueError
        If it is something else.
    """
    try:
        transitions, rows = marshal.loads(batch)  # noqa: S302 - from our own plugin
    except (EOFError, TypeError) as error:
        raise ValueError(f"no batch of rows: {error}") from None
    return transitions, rows


def compress(batch: bytes) -> bytes:
    """Make a batch some five times smaller, as cheaply as can be done here."""
    # Imported here because this function travels to clusters that may lack it.
    try:
        import zstandard
    except ImportError:
        return zlib.compress(batch, 1)
    return zstandard.ZstdCompressor(level=1).compress(batch)


def decompress(batch: bytes) -> bytes:
    """Undo :func:`compress`, whichever way it went."""
    if batch[:4] == b"\x28\xb5\x2f\xfd":
        import zstandard

        return zstandard.ZstdDecompressor().decompress(batch)
    return zlib.decompress(batch)


def pack(records: list[dict[str, Any]]) -> bytes:
    """Make records small and opaque on their way through a scheduler."""
    return zlib.compress(json.dumps(records).encode(), 1)


def unpack(packed: bytes) -> list[dict[str, Any]]:
    """Undo :func:`pack`."""
    records: list[dict[str, Any]] = json.loads(zlib.decompress(packed))
    return records


#: What keys that are tuples are made of.
_PLAIN_PARTS = frozenset({str, int})


def is_odd(key: Any) -> bool:
    """Tell whether a key that is no text holds what must become text to be encoded."""
    return type(key) is not tuple or not _PLAIN_PARTS.issuperset(map(type, key))


def split_transitions(transitions: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Take the flat list of transitions apart."""
    start = 0
    while start < len(transitions):
        stop = start + 5
        if transitions[start + 3] == "processing":
            stop += 2
        elif transitions[start + 2] == "processing":
            stop += 7
        yield tuple(transitions[start:stop])
        start = stop


_KINDS = {
    TASK: "task",
    WORKER_SAMPLE: "worker_sample",
    FINE_METRICS: "fine_metric",
    PROFILES: "profile",
}


def kind_of(row: Row) -> str:
    """Name the kind of record that a row becomes."""
    if row[0] == RECORD:
        return str(row[2])
    if row[0] == WORKER_LOG:
        return str(row[6])
    return _KINDS[row[0]]


def records_in(row: Row) -> int:
    """Count the records that a row becomes."""
    if row[0] == FINE_METRICS:
        return len(row[4])
    return int(row[4]) if row[0] in (PROFILES, WORKER_LOG) else 1


def census(transitions: list[Any], rows: Iterable[Row]) -> dict[str, list[float]]:
    """Count what a batch holds.

    Returns
    -------
    dict
        For each kind of record: how many, first and last ``t``. A row of fine metrics
        counts as many as it has deltas, one of profiles or of a worker's logs as many as
        are packed in it.
    """
    found: dict[str, list[float]] = {}
    for t, *_ in split_transitions(transitions):
        _count(found, "transition", t, 1)
    for row in rows:
        _count(found, kind_of(row), row[1], records_in(row))
    return found


def add_counts(found: dict[str, list[float]], more: dict[str, list[float]]) -> None:
    """Add what :func:`census` counted to what it counted before."""
    for kind, (records, start_t, stop_t) in more.items():
        counted = found.setdefault(kind, [0, start_t, stop_t])
        counted[0] += records
        counted[1] = min(counted[1], start_t)
        counted[2] = max(counted[2], stop_t)


def _count(found: dict[str, list[float]], kind: str, t: float, records: int) -> None:
    add_counts(found, {kind: [records, t, t]})


def _plain_record(row: Row, left_out: dict[str, list[float]]) -> Row | None:
    tag, t, kind, fields = row
    try:
        return tag, t, kind, plain(fields)
    except Exception:  # noqa: BLE001 - users' objects may raise anything
        _count(left_out, kind, t, 1)
        return None


def _encodable(
    row: Row, left_out: dict[str, list[float]], counted: dict[str, list[float]]
) -> Row | None:
    """Give a row that :mod:`marshal` takes, or count it as left out."""
    try:
        marshal.dumps(row, MARSHAL_VERSION)
    except Exception:  # noqa: BLE001
        try:
            row = _copy(row)
            marshal.dumps(row, MARSHAL_VERSION)
        except Exception:  # noqa: BLE001
            add_counts(left_out, counted)
            return None
    return row


def _copy(value: Any) -> Any:
    """Rebuild a value out of what :mod:`marshal` takes, tuples and keys as they were."""
    if isinstance(value, tuple):
        return tuple(map(_copy, value))
    if isinstance(value, list):
        return list(map(_copy, value))
    if isinstance(value, dict):
        return {_copy(name): _copy(item) for name, item in value.items()}
    return str(value) if isinstance(value, str) else plain(value)


def _nearest(value: Any) -> Any:
    """Give the plain value nearest to one that JSON lacks."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        # Dask's events hold pickles of users' functions: neither readable nor public.
        return f"<{len(value)} bytes>"
    if type(value).__module__ == "numpy":
        if getattr(value, "ndim", None) == 0:
            return value.item()
        if getattr(value, "size", MAX_ARRAY_SIZE + 1) > MAX_ARRAY_SIZE:
            return f"<{type(value).__name__} of shape {getattr(value, 'shape', '?')}>"
        return value.tolist()
    try:
        return str(value)[:MAX_TEXT_LENGTH]
    except Exception:  # noqa: BLE001 - a user's __str__ may do anything
        return f"<{type(value).__qualname__}>"


def plain(
    value: Any, inside: tuple[int, ...] = (), containers: Iterator[int] | None = None
) -> Any:
    """Rebuild a value out of what JSON has: text keys, finite numbers, valid Unicode.

    Parameters
    ----------
    value : object
    inside : tuple of int
        Identities of the containers around the value: one that holds itself ends there.
    containers : iterator of int, optional
        Counts the containers of the whole.

    Raises
    ------
    ValueError
        If there are more containers than :data:`MAX_CONTAINERS`.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return int(value)
        # A larger number has no place in JSON; its text says what it was, if Python gives it.
        bits = value.bit_length()
        return str(value)[:MAX_TEXT_LENGTH] if bits < 10_000 else f"<a number of {bits} bits>"
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if len(inside) > MAX_DEPTH or id(value) in inside:
        return "…"
    containers = itertools.count() if containers is None else containers
    if next(containers) > MAX_CONTAINERS:
        raise ValueError("too many containers")
    inside = (*inside, id(value))
    if isinstance(value, dict):
        return {
            plain(str(key)): plain(item, inside, containers)
            for key, item in list(value.items())
        }
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if isinstance(value, (list, tuple)):
        return [plain(item, inside, containers) for item in list(value)]
    return plain(_nearest(value), inside, containers)
