"""What all copies of the recorder's code in one process share.

The code that measures chunks comes to workers by value, and the package may be installed
there as well: one process can hold several copies of each class. What must be there once
lives in a module of its own that no copy brings along.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

#: The number changes with what is shared, so that two versions do not meet in one process.
_NAME = "_roast_recorder_here_1"


class Here(ModuleType):
    """The state of one process.

    Attributes
    ----------
    listeners : dict
        Whom to tell what was measured, by name. Nothing is measured while it is empty.
    patched : list
        What to put back when the last listener goes: ``(owner, name, original, ours)``.
    carriers : dict
        What makes a function measure in the processes of a pool as well, by name.
    local : threading.local
        ``measurement`` is that of the chunk that the thread is at, if any.
    measured : dict
        Measurements that are going on in any thread, by identity.
    profiled_for : set
        Names of those for whom Dask's profiler notes where samples end.
    watcher : threading.Thread or None
        Looks at the process's memory while anything is measured.
    memory_reader : tuple
        A process, of which a fork is another one, and what reads its memory.
    lock : threading.RLock
        Held while listeners come and go.
    """

    listeners: dict[str, Callable[[dict[str, Any]], None]]
    patched: list[tuple[Any, str, Any, Any]]
    carriers: dict[str, Callable[[Any], Any]]
    local: threading.local
    measured: dict[int, Any]
    profiled_for: set[str]
    watcher: threading.Thread | None
    memory_reader: tuple[int | None, Any]
    lock: Any


def here() -> Any:
    """Give the state of this process: a :class:`Here` of whichever copy came first."""
    found = sys.modules.get(_NAME)
    if found is None:
        made = Here(_NAME)
        made.listeners = {}
        made.patched = []
        made.carriers = {}
        made.local = threading.local()
        made.measured = {}
        made.profiled_for = set()
        made.watcher = None
        made.memory_reader = None, None
        made.lock = threading.RLock()
        # Of two threads that come here at once, one's is taken.
        found = sys.modules.setdefault(_NAME, made)
    return found
