"""State that all copies of the recorder's code in one process share.

Plugins are pickled by value and the package may be installed as well, so a process can have
several copies of each class. What must exist once is in a module that no copy contains.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

#: The number changes with the attributes: two versions must not share the state.
_NAME = "_roast_recorder_here_1"


class Here(ModuleType):
    """The state of one process.

    Attributes
    ----------
    listeners : dict
        Called with what was measured, by name. Nothing is measured while it is empty.
    patched : list
        What to restore when the last listener is removed: ``(owner, name, original, ours)``.
    carriers : dict
        Wrappers that make a function measure in the processes of a pool as well, by name.
    local : threading.local
        ``measurement`` is that of the thread's current chunk, if any.
    measured : dict
        Current measurements of all threads, by identity.
    profiled_for : set
        Names of those that count where samples of Dask's profiler end.
    watcher : threading.Thread or None
        Samples the memory of the process while anything is measured.
    memory_reader : tuple
        A process id, to detect forks, and what reads the memory of that process.
    lock : threading.RLock
        Held while listeners are added and removed.
    """

    listeners: dict[str, Callable[[Any], None]]
    patched: list[tuple[Any, str, Any, Any]]
    carriers: dict[str, Callable[[Any], Any]]
    local: threading.local
    measured: dict[int, Any]
    profiled_for: set[str]
    watcher: threading.Thread | None
    memory_reader: tuple[int | None, Any]
    lock: Any


def here() -> Any:
    """Return the state of this process, a :class:`Here` of whichever copy created it."""
    found = sys.modules.get(_NAME)
    if found is None:
        state = Here(_NAME)
        state.listeners = {}
        state.patched = []
        state.carriers = {}
        state.local = threading.local()
        state.measured = {}
        state.profiled_for = set()
        state.watcher = None
        state.memory_reader = None, None
        state.lock = threading.RLock()
        # Atomic: if two threads create it at once, both use the same.
        found = sys.modules.setdefault(_NAME, state)
    return found
