"""Where coffea and uproot are listened to, in the process that reads.

A few of their functions are replaced by ones that do the same and tell the
:mod:`~roast_recorder.coffea.measurement` of a chunk what they saw. They are put in when the first
listener comes and taken out when the last one goes. A module that is not imported yet is
left alone until it is: importing coffea takes seconds, and most tasks need none of it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from time import perf_counter
from typing import Any

from roast_recorder.coffea.branches import name_of
from roast_recorder.coffea.measurement import current, measured, quietly
from roast_recorder.coffea.task_identity import (
    as_identity,
    find_work_item,
    metadata_of,
    usermeta_of,
)
from roast_recorder.process_state import here

#: Makes, of a function, one that does the same and tells what it sees.
Listening = Callable[[Callable[..., Any]], Callable[..., Any]]


def listen(name: str, listener: Callable[[dict[str, Any]], None]) -> None:
    """Have every chunk that this process makes measured.

    Parameters
    ----------
    name : str
        Of the listener; another one of that name is replaced.
    listener : callable
        Called in the thread that made the chunk, with what
        :meth:`roast_recorder.coffea.measurement.Measurement.end` gives.
    """
    state = here()
    with state.lock:
        state.listeners[name] = listener
        if _finders():
            return
        sys.meta_path.insert(0, _AfterImport())
    for module_name in _PATCHES:
        _look_at(module_name)


def stop_listening(name: str) -> None:
    """Tell this listener nothing more; leave nothing behind when it was the last."""
    state = here()
    with state.lock:
        state.listeners.pop(name, None)
        if state.listeners:
            return
        state.memory_reader = None, None
        for finder in _finders():
            sys.meta_path.remove(finder)
        while state.patched:
            owner, attribute, original, ours = state.patched.pop()
            # Somebody else may have replaced it meanwhile, with ours inside.
            if vars(owner).get(attribute) is ours:
                setattr(owner, attribute, original)


class _AfterImport(MetaPathFinder):
    """Patches modules as soon as they have been imported."""

    #: Another copy of this code must know it as ours.
    of_roast = True

    def __init__(self) -> None:
        self._finding: set[str] = set()

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:  # noqa: ARG002
        """Find a module as if this were not here, and patch it once it has run."""
        if fullname not in _PATCHES or fullname in self._finding:
            return None
        self._finding.add(fullname)
        try:
            with quietly(f"{fullname} is not listened to"):
                return _patched_once_run(importlib.util.find_spec(fullname))
        finally:
            self._finding.discard(fullname)
        return None  # Python goes on to look for it


def _finders() -> list[Any]:
    """Give what is ours among Python's finders of modules."""
    return [finder for finder in sys.meta_path if getattr(finder, "of_roast", False)]


def _patched_once_run(spec: Any) -> Any:
    """Have a module patched as soon as its loader has run it."""
    loader = spec and spec.loader
    if loader is None:
        return None

    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        loader.exec_module = execute
        execute(module)
        with quietly(f"{module.__name__} is not listened to"):
            _patch(module)

    loader.exec_module = exec_module
    return spec


def _look_at(name: str) -> None:
    """Patch a module that is there, or is on its way."""
    module = sys.modules.get(name)
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        # A thread imports it, which can take long: nobody else must wait for that.
        threading.Thread(
            target=_patch_when_there, args=(name,), name="roast-import", daemon=True
        ).start()
    elif module is not None:
        with quietly(f"{name} is not listened to"):
            _patch(module)


def _patch_when_there(name: str) -> None:
    with quietly(f"{name} is not listened to"):
        _patch(importlib.import_module(name))


def _patch(module: Any) -> None:
    """Put listening functions into a module's classes."""
    state = here()
    with state.lock:
        if not state.listeners:
            return
        for class_name, attribute, listening in _PATCHES[module.__name__]:
            owner = getattr(module, class_name, None)
            original = vars(owner).get(attribute) if owner is not None else None
            if original is None or any(
                owner is patched and attribute == patched_attribute
                for patched, patched_attribute, *_ in state.patched
            ):
                continue
            is_static = isinstance(original, staticmethod)
            function = original.__func__ if is_static else original
            # Whoever pickles it by its name finds it by its name.
            ours: Any = functools.wraps(function)(listening(function))
            ours = staticmethod(ours) if is_static else ours
            setattr(owner, attribute, ours)
            state.patched.append((owner, attribute, original, ours))


# -- coffea.processor ------------------------------------------------------------------------


def _measures_chunk(original: Callable[..., Any]) -> Callable[..., Any]:
    """``Runner._work_function``: opens a chunk and processes it."""

    def work_function(*arguments: Any, **keywords: Any) -> Any:
        def identity() -> dict[str, Any] | None:
            parts = (*arguments, keywords.get("item"))
            items = (find_work_item(part) for part in parts)
            item = next((item for item in items if item is not None), None)
            if item is None:
                return None
            # As long as nothing is opened.
            loads = keywords.get("checkpointer") is not None
            usermeta = usermeta_of(item, {})
            return {**as_identity(item), "usermeta": usermeta, "from_checkpoint": loads or None}

        return measured(identity, "processed", original, arguments, keywords)

    return work_function


def _carries_to_pool(original: Callable[..., Any]) -> Callable[..., Any]:
    """``FuturesExecutor.__call__``: the chunks are made in processes of a pool."""

    def call(self: Any, items: Any, function: Any, accumulator: Any) -> Any:
        with quietly("what a pool does is not measured"):
            if _runs_on_this_machine(self.pool):
                for carry in list(here().carriers.values()):
                    function = carry(function)
        return original(self, items, function, accumulator)

    return call


def _runs_on_this_machine(pool: Any) -> bool:
    """Tell whether a pool has processes that have the recorder, as this one has."""
    pool = getattr(pool, "func", pool)  # of a functools.partial
    kind = pool if isinstance(pool, type) else type(pool)
    return any(base.__module__.startswith(_PROCESS_POOLS) for base in kind.__mro__)


#: Modules of pools of processes of this machine.
_PROCESS_POOLS = ("concurrent.futures.process", "loky", "joblib")


# -- coffea.nanoevents -----------------------------------------------------------------------


def _notes_events(original: Callable[..., Any]) -> Callable[..., Any]:
    """``NanoEventsFactory.events``: the file is open, the processor comes next."""

    def events(self: Any) -> Any:
        made = original(self)
        measurement = current()
        if measurement is not None:
            with quietly("a file is opened unseen"):
                measurement.opened_by(self, made, timed=True)
        return made

    return events


def _notes_column(original: Callable[..., Any]) -> Callable[..., Any]:
    """``extract_column`` of coffea's mappings: a column is read, on first touch."""

    def extract_column(self: Any, branch: Any, *arguments: Any, **keywords: Any) -> Any:
        measurement = current()
        # One that is missing in this file is none; another file than the chunk's is its user's.
        if measurement is None or branch is None or not measurement.reads_from(self):
            return original(self, branch, *arguments, **keywords)
        begun = perf_counter()
        measurement.is_reading = True
        try:
            return original(self, branch, *arguments, **keywords)
        finally:
            seconds = perf_counter() - begun
            measurement.is_reading = False
            with quietly("a column is read unseen"):
                log = self._access_log
                name = log[-1].branch if log else name_of(branch)
                measurement.touches(name, branch, seconds)

    return extract_column


# -- uproot ----------------------------------------------------------------------------------


def _notes_basket(original: Callable[..., Any]) -> Callable[..., Any]:
    """``Model_TBasket.read_members``: only who reads a basket learns how large it is."""

    def read_members(self: Any, *arguments: Any, **keywords: Any) -> Any:
        result = original(self, *arguments, **keywords)
        measurement = current()
        if measurement is not None:
            with quietly("a basket is read unseen"):
                measurement.decompresses(
                    self.parent, self.basket_num, int(self.uncompressed_bytes)
                )
        return result

    return read_members


def _measures_opening(original: Callable[..., Any]) -> Callable[..., Any]:
    """``_UprootOpenAndRead._call_impl``: a task of dask-awkward's reads a chunk."""

    def call_impl(self: Any, *arguments: Any) -> Any:
        def identity() -> dict[str, Any] | None:
            filename, treename, start, stop, is_chunk = arguments
            entries = {"entry_start": int(start), "entry_stop": int(stop)} if is_chunk else {}
            return {
                **metadata_of(self),
                "filename": str(filename),
                "treename": treename,
                **entries,
            }

        return measured(identity, "read", original, (self, *arguments), {})

    return call_impl


def _measures_read(original: Callable[..., Any]) -> Callable[..., Any]:
    """``_UprootRead._call_impl``: the same, of a file that is open already."""

    def call_impl(self: Any, number: int, start: int, stop: int) -> Any:
        def identity() -> dict[str, Any] | None:
            tree = self.ttrees[number]
            return {
                **metadata_of(self),
                "filename": str(tree.file.file_path),
                "treename": tree.name,
                "entry_start": int(start),
                "entry_stop": int(stop),
            }

        return measured(identity, "read", original, (self, number, start, stop), {})

    return call_impl


def _notes_tree(original: Callable[..., Any]) -> Callable[..., Any]:
    """``UprootReadMixin.read_tree``: reads the columns that the task needs, at once."""

    def read_tree(self: Any, tree: Any, start: int, stop: int) -> Any:
        measurement = current()
        if measurement is None or measurement.is_reading:
            return original(self, tree, start, stop)
        begun = perf_counter()
        with quietly("a file is opened unseen"):
            # One of the two readers got files that were open.
            opens = not hasattr(self, "ttrees")
            measurement.opened(tree, tree, int(stop - start), (start, stop), timed=opens)
        measurement.is_reading = True
        try:
            result = original(self, tree, start, stop)
        finally:
            measurement.is_reading = False
        with quietly("columns are read unseen"):
            measurement.reads(perf_counter() - begun)
            for name in self.common_keys:
                if name in tree:
                    measurement.touches(name, tree[name], None)
        return result

    return read_tree


#: What is listened to: by module, its class, the function, and what takes its place.
_PATCHES: dict[str, list[tuple[str, str, Listening]]] = {
    "coffea.processor.executor": [
        ("Runner", "_work_function", _measures_chunk),
        ("FuturesExecutor", "__call__", _carries_to_pool),
    ],
    "coffea.nanoevents.factory": [("NanoEventsFactory", "events", _notes_events)],
    "coffea.nanoevents.mapping.uproot": [
        ("UprootSourceMapping", "extract_column", _notes_column)
    ],
    "coffea.nanoevents.mapping.parquet": [
        ("ParquetSourceMapping", "extract_column", _notes_column)
    ],
    "uproot.models.TBasket": [("Model_TBasket", "read_members", _notes_basket)],
    "uproot._dask": [
        ("_UprootOpenAndRead", "_call_impl", _measures_opening),
        ("_UprootRead", "_call_impl", _measures_read),
        ("UprootReadMixin", "read_tree", _notes_tree),
    ],
}
