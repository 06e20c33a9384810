"""State that all copies of the recorder's code in one process share.

Plugins are pickled by value and the package may be installed as well, so a process can have
several copies of each class. State that must exist once is in a module of its own.
"""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any

#: The number changes with the attributes: two versions must not share the state.
_NAME = "_roast_recorder_here_2"


def here() -> Any:
    """Return the state of this process, which the first copy of the code creates."""
    found = sys.modules.get(_NAME)
    if found is None:
        state: Any = ModuleType(_NAME)
        # Callbacks for measurements, by name. Nothing is measured while there are none.
        state.listeners = {}
        # What to restore when the last listener is removed: (owner, name, original, ours).
        state.patched = []
        # Wrappers that make a function measure in the processes of a pool as well, by name.
        state.carriers = {}
        # `measurement` is that of the thread's current chunk, if any.
        state.local = threading.local()
        # Current measurements of all threads, by identity.
        state.measured = {}
        # Names of the recordings that count the innermost functions of profiler samples.
        state.profiled_for = set()
        # Names of the compiled functions that code objects call, by their ids.
        state.compiled_calls = {}
        # Time since the previous samples, while samples are taken; else None.
        state.sampled_seconds = None
        # Thread that samples the memory of the process while anything is measured.
        state.watcher = None
        # A process id, to detect forks, and the function that reads that process's memory.
        state.memory_reader = None, None
        # Held while listeners are added and removed.
        state.lock = threading.RLock()
        # Atomic: if two threads create it at once, both use the same.
        found = sys.modules.setdefault(_NAME, state)
    return found
