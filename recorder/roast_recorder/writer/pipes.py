"""How the recorder and its writing process speak: questions one way, answers the other.

A message is a tuple of plain values, encoded by :mod:`marshal` behind its length. Both ends
run the same code in the same Python.
"""

from __future__ import annotations

import marshal
from typing import IO, Any

_LENGTH_BYTES = 8


def send(stream: IO[bytes], message: tuple[Any, ...]) -> None:
    """Send a message.

    Raises
    ------
    OSError
        If nobody reads any more.
    """
    content = marshal.dumps(message)
    rest = memoryview(len(content).to_bytes(_LENGTH_BYTES, "big") + content)
    while rest:
        # A pipe may take less than it is given, when a process was suspended meanwhile.
        rest = rest[stream.write(rest) or 0 :]
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[Any, ...] | None:
    """Receive a message; None if the other end has gone, in the middle of one or not."""
    length = stream.read(_LENGTH_BYTES)
    if len(length) < _LENGTH_BYTES:
        return None
    nbytes = int.from_bytes(length, "big")
    content = stream.read(nbytes)
    if len(content) < nbytes:
        return None
    message: tuple[Any, ...] = marshal.loads(content)  # noqa: S302 - from our own process
    return message
