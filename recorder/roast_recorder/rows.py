"""Rows: the facts on their way from the scheduler to the client that writes them.

A row is a tuple whose first element is one of the tags below; what follows is fixed by
the tag. Rows exist because a hook on the scheduler's thread must cost next to nothing: it
appends a tuple of what it was handed and returns. A whole batch of rows is encoded at
once, in C, and only :mod:`roast_recorder.expand`, on the client, turns a row into the
record that the schema declares.
"""

from __future__ import annotations

import json
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

_FAILURES = (TypeError, ValueError, OverflowError, RecursionError)


def encode(rows: list[tuple[Any, ...]]) -> bytes:
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
    """
    try:
        return _dumps(rows)
    except _FAILURES:
        return b"[" + b",".join(_encode_odd(row) for row in rows) + b"]"


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
        return json.dumps(value, default=_nearest, allow_nan=False).encode()
    return orjson.dumps(value, default=_nearest, option=orjson.OPT_SERIALIZE_NUMPY)


def _encode_odd(row: tuple[Any, ...]) -> bytes:
    """Encode one row of a batch in which some row could not be encoded."""
    try:
        return _dumps(row)
    except _FAILURES:
        return _dumps(_plain(row, depth=20))


def _nearest(value: Any) -> Any:
    """Give the plain value nearest to one that JSON lacks."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, tuple):
        return list(value)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    try:
        return str(value)[:MAX_TEXT_LENGTH]
    except Exception:  # noqa: BLE001 - a user's __str__ may do anything
        return f"<{type(value).__qualname__}>"


def _plain(value: Any, depth: int) -> Any:
    """Rebuild a value out of what JSON has: text keys, finite numbers, valid Unicode."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else float(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if depth == 0:
        return "…"
    if isinstance(value, dict):
        return {
            _plain(str(key), depth): _plain(item, depth - 1)
            for key, item in list(value.items())
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth - 1) for item in list(value)]
    return _plain(_nearest(value), depth - 1)
