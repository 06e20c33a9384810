"""Rows: the facts on their way from the scheduler to the client that writes them.

A row is a tuple whose first element is one of the tags below; what follows is fixed by
the tag. Rows exist because a hook on the scheduler's thread must cost next to nothing: it
appends a tuple of what it was handed and returns. A whole batch of rows is encoded at
once, in C, and only :mod:`roast_recorder.expand`, on the client, turns a row into the
record that the schema declares.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

#: ``(TRANSITION, t, key, start, finish, stimulus_id, worker, run_id, details)``
TRANSITION: Final = 0
#: ``(TASK, t, key, prefix, group, dependencies, priority, annotations, span_id, client,
#: stimulus_id, state)``
TASK: Final = 1
#: ``(WORKER_SAMPLE, t, worker, server_id, …)`` as :mod:`roast_recorder.sampler` lists them
WORKER_SAMPLE: Final = 2
#: ``(RECORD, t, kind, fields)``: any record that is too rare to deserve a tag
RECORD: Final = 3

#: Text of an object that no other rule covers is cut at this length.
MAX_TEXT_LENGTH: Final = 1000

#: An array of numbers that is larger than this is named by its shape.
MAX_ARRAY_SIZE: Final = 10_000

#: What is nested deeper than this inside an odd row is cut, visibly.
MAX_DEPTH: Final = 20

#: An odd row of more containers than this takes the scheduler too long; it is left out.
MAX_CONTAINERS: Final = 200_000


def encode(rows: list[tuple[Any, ...]]) -> tuple[bytes, Counter[str]]:
    """Encode a batch of rows as a JSON array of arrays.

    Parameters
    ----------
    rows : list of tuple
        What a hook was handed may hold anything: sets, bytes, numpy scalars, users'
        objects. Whatever JSON lacks is replaced by its nearest plain value, or its text.

    Returns
    -------
    bytes
        UTF-8 JSON.
    Counter
        Rows that could not be encoded in any way and are left out, by kind of record.
    """
    left_out: Counter[str] = Counter()
    try:
        return _dumps(rows), left_out
    except Exception:  # noqa: BLE001 - users' objects may raise anything
        encoded = []
        for row in rows:
            try:
                encoded.append(_encode_odd(row))
            except Exception:  # noqa: BLE001
                left_out[kind_of(row)] += 1
        return b"[" + b",".join(encoded) + b"]", left_out


def decode(batch: bytes) -> list[list[Any]]:
    """Decode what :func:`encode` made; tuples come back as lists."""
    import orjson

    rows: list[list[Any]] = orjson.loads(batch)
    return rows


def kind_of(row: tuple[Any, ...]) -> str:
    """Name the kind of record that a row becomes."""
    if row[0] == RECORD:
        return str(row[2])
    return {TRANSITION: "transition", TASK: "task", WORKER_SAMPLE: "worker_sample"}[row[0]]


def _dumps(value: Any) -> bytes:
    # Imported here because this function travels to clusters that may lack it.
    try:
        import orjson
    except ImportError:
        # A batch is a list of rows; the limits are those of a row.
        rebuilt = map(_plain, value) if isinstance(value, list) else _plain(value)
        return json.dumps(list(rebuilt)).encode()
    return orjson.dumps(value, default=_nearest)


def _encode_odd(row: tuple[Any, ...]) -> bytes:
    """Encode one row of a batch in which some row could not be encoded."""
    try:
        return _dumps(row)
    except Exception:  # noqa: BLE001
        return _dumps(_plain(row))


def _nearest(value: Any) -> Any:
    """Give the plain value nearest to one that JSON lacks."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, (bytes, bytearray)):
        return str(bytes(value[:MAX_TEXT_LENGTH]))[:MAX_TEXT_LENGTH]
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


def _plain(
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
        # A larger number has no place in JSON's 64 bits; its text says what it was.
        return int(value) if -(2**63) <= value < 2**63 else str(value)[:MAX_TEXT_LENGTH]
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
            _plain(str(key)): _plain(item, inside, containers)
            for key, item in list(value.items())
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, inside, containers) for item in list(value)]
    return _plain(_nearest(value), inside, containers)
