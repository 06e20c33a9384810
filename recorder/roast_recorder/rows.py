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

#: An object with more parts than this is cut, and one that is deeper.
MAX_PARTS: Final = 10_000
MAX_DEPTH: Final = 20


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
        return json.dumps(_plain(value)).encode()
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
        if getattr(value, "size", MAX_PARTS + 1) > MAX_PARTS:
            return f"<{type(value).__name__} of shape {getattr(value, 'shape', '?')}>"
        return value.tolist()
    try:
        return str(value)[:MAX_TEXT_LENGTH]
    except Exception:  # noqa: BLE001 - a user's __str__ may do anything
        return f"<{type(value).__qualname__}>"


def _plain(value: Any, depth: int = MAX_DEPTH, parts: list[int] | None = None) -> Any:
    """Rebuild a value out of what JSON has: text keys, finite numbers, valid Unicode.

    A row is a tuple of many, so the limit of parts holds for each of its elements.
    """
    if depth == MAX_DEPTH and isinstance(value, (list, tuple)):
        return [_plain(item, depth - 1, [MAX_PARTS]) for item in value]
    parts = [MAX_PARTS] if parts is None else parts
    parts[0] -= 1
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # A larger number has no place in JSON's 64 bits; its text says what it was.
        return int(value) if -(2**63) <= value < 2**63 else str(value)[:MAX_TEXT_LENGTH]
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if depth == 0 or parts[0] < 0:
        return "…"
    if isinstance(value, dict):
        return {
            str(_plain(str(key), depth, parts)): _plain(item, depth - 1, parts)
            for key, item in itertools.islice(value.items(), MAX_PARTS)
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth - 1, parts) for item in itertools.islice(value, MAX_PARTS)]
    return _plain(_nearest(value), depth - 1, parts)
