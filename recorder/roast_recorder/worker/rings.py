"""Hearing what is appended to a ring that forgets.

A log of Dask's is a :class:`collections.deque` that keeps its newest entries. One that tells
of what is appended takes its place, for all who listen, and looks the same to everybody else.
When the last listener goes, a ring of Dask's kind is back, with what this one held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

Listener = Callable[[Any], None]


class HeardRing(deque[Any]):
    """A ring that tells its listeners of every entry."""

    # Appending is what happens while Dask works: no look into a dict for it.
    __slots__ = ("listeners",)

    def __init__(self, entries: Iterable[Any] = (), maxlen: int | None = None) -> None:
        super().__init__(entries, maxlen)
        self.listeners: list[Listener] = []

    def append(self, entry: Any, _append: Any = deque.append) -> None:
        """Add an entry at the end."""
        _append(self, entry)
        for listener in self.listeners:
            listener(entry)


def listen(owner: Any, attribute: str, listener: Listener) -> Callable[[], None]:
    """Have a listener told of all entries from now on; give back what ends that.

    Parameters
    ----------
    owner : object
    attribute : str
        Where the owner has its ring.
    listener : callable
        It must not raise, and should not keep entries that hold containers: what lives on
        has Python's garbage collector look at it again and again, and that costs more than
        all else here.
    """
    ring = getattr(owner, attribute)
    # Recorders travel by value, so another one's classes are not ours: go by the attribute.
    if not hasattr(ring, "listeners"):
        ring = HeardRing(ring, ring.maxlen)
        setattr(owner, attribute, ring)
    ring.listeners.append(listener)

    def leave() -> None:
        ring.listeners.remove(listener)
        if not ring.listeners and getattr(owner, attribute) is ring:
            setattr(owner, attribute, deque(ring, ring.maxlen))

    return leave
