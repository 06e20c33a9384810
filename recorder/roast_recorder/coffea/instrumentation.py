"""Wrap the functions of coffea and uproot that process chunks and read columns.

:data:`PATCHES` lists them. Each is replaced by a wrapper that does the same and reports to
the :class:`~roast_recorder.coffea.measurement.Measurement` of the current chunk. Wrappers are
installed with the first listener and removed with the last.

A module that is not imported yet is patched after its import: importing coffea takes
seconds, and most tasks need none of it.
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

from roast_recorder.coffea.branches import branch_name
from roast_recorder.coffea.measurement import (
    Fields,
    Records,
    call_measured,
    current_measurement,
    errors_logged,
)
from roast_recorder.coffea.task_identity import (
    find_work_item,
    reader_identity,
    work_item_identity,
)
from roast_recorder.process_state import here

#: Returns the replacement of a function.
Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def add_listener(name: str, listener: Callable[[Records], None]) -> None:
    """Measure every chunk that this process makes, and pass its records to a listener.

    Parameters
    ----------
    name : str
        Another listener of that name is replaced.
    listener : callable
        Called in the thread that processed the chunk.
    """
    state = here()
    with state.lock:
        state.listeners[name] = listener
        if _import_hooks():
            return
        sys.meta_path.insert(0, _ImportHook())
    for module_name in PATCHES:
        module = sys.modules.get(module_name)
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            # Another thread is importing it, which can take seconds. Do not wait for it.
            threading.Thread(
                target=_import_and_patch, args=(module_name,), name="roast-import", daemon=True
            ).start()
        elif module is not None:
            _patch(module)


def remove_listener(name: str) -> None:
    """Remove a listener if it is there. With the last one, all functions are restored."""
    state = here()
    with state.lock:
        state.listeners.pop(name, None)
        if state.listeners:
            return
        state.memory_reader = None, None
        for hook in _import_hooks():
            sys.meta_path.remove(hook)
        while state.patched:
            owner, attribute, original, replacement = state.patched.pop()
            # Another library may have replaced it since, with our wrapper inside.
            if vars(owner).get(attribute) is replacement:
                setattr(owner, attribute, original)


class _ImportHook(MetaPathFinder):
    """Patch modules as soon as they have been imported."""

    #: Recognized by other copies of this code in the process.
    of_roast = True

    def __init__(self) -> None:
        self._finding: set[str] = set()

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:  # noqa: ARG002
        """Return the spec that the other finders return, with a loader that patches."""
        if fullname not in PATCHES or fullname in self._finding:
            return None
        self._finding.add(fullname)  # the search below comes here again
        try:
            with errors_logged(f"patch {fullname}"):
                spec = importlib.util.find_spec(fullname)
                if spec is not None and spec.loader is not None:
                    _patch_after_loading(spec.loader)
                    return spec
        finally:
            self._finding.discard(fullname)
        return None


def _import_hooks() -> list[Any]:
    return [finder for finder in sys.meta_path if getattr(finder, "of_roast", False)]


def _patch_after_loading(loader: Any) -> None:
    original = loader.exec_module

    def exec_module(module: Any) -> None:
        loader.exec_module = original
        original(module)
        _patch(module)

    loader.exec_module = exec_module


def _import_and_patch(name: str) -> None:
    with errors_logged(f"patch {name}"):
        _patch(importlib.import_module(name))


def _patch(module: Any) -> None:
    """Install the wrappers of a module that are not installed yet."""
    state = here()
    with state.lock, errors_logged(f"patch {module.__name__}"):
        if not state.listeners:
            return
        for class_name, attribute, wrap in PATCHES[module.__name__]:
            owner = getattr(module, class_name, None)
            # Other versions of coffea and uproot may lack it.
            original = vars(owner).get(attribute) if owner is not None else None
            if original is None or any(
                owner is patched and attribute == name for patched, name, *_ in state.patched
            ):
                continue
            is_static = isinstance(original, staticmethod)
            function = original.__func__ if is_static else original
            # With the original's name, by which pickle finds it.
            wrapper: Any = functools.wraps(function)(wrap(function))
            replacement = staticmethod(wrapper) if is_static else wrapper
            setattr(owner, attribute, replacement)
            state.patched.append((owner, attribute, original, replacement))


# -- wrappers --------------------------------------------------------------------------------


def _measures(identify: Callable[..., Fields | None], until: str) -> Wrap:
    """Wrap a function that processes a chunk; `identify` takes the same arguments."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments: Any, **keywords: Any) -> Any:
            return call_measured(
                lambda: identify(*arguments, **keywords), until, original, arguments, keywords
            )

        return measured

    return wrap


def _observes(observe: Callable[[Any, Any, Any], None]) -> Wrap:
    """Wrap a method; `observe` takes measurement, object and result."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def observed(self: Any, *arguments: Any, **keywords: Any) -> Any:
            result = original(self, *arguments, **keywords)
            measurement = current_measurement()
            if measurement is not None:
                with errors_logged(f"observe {original.__name__}"):
                    observe(measurement, self, result)
            return result

        return observed

    return wrap


def _times(begin: Callable[..., bool], end: Callable[..., None]) -> Wrap:
    """Wrap a method that reads from the file.

    `begin` takes measurement, object and arguments and returns whether to time the call;
    `end` takes measurement, seconds, object and arguments.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def timed(self: Any, *arguments: Any, **keywords: Any) -> Any:
            measurement = current_measurement()
            is_timed = False
            if measurement is not None:
                with errors_logged(f"time {original.__name__}"):
                    is_timed = begin(measurement, self, *arguments)
            if not is_timed:
                return original(self, *arguments, **keywords)
            started_at = perf_counter()
            measurement.is_reading = True
            try:
                return original(self, *arguments, **keywords)
            finally:
                seconds = perf_counter() - started_at
                measurement.is_reading = False
                with errors_logged(f"time {original.__name__}"):
                    end(measurement, seconds, self, *arguments)

        return timed

    return wrap


def _measures_in_pool(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``FuturesExecutor.__call__``, which makes chunks in the processes of a pool."""

    def call(self: Any, items: Any, function: Any, accumulator: Any) -> Any:
        with errors_logged("measure the chunks of a pool"):
            pool = getattr(self.pool, "func", self.pool)  # of a functools.partial
            kind = pool if isinstance(pool, type) else type(pool)
            if any(base.__module__.startswith(_LOCAL_POOLS) for base in kind.__mro__):
                for carry in list(here().carriers.values()):
                    function = carry(function)
        return original(self, items, function, accumulator)

    return call


#: Modules of pools whose processes are on this machine and can import the recorder.
_LOCAL_POOLS = ("concurrent.futures.process", "loky", "joblib")


# -- what the wrappers report --------------------------------------------------------------


def _identify_work_item(*arguments: Any, **keywords: Any) -> Fields | None:
    """Identify the chunk of ``Runner._work_function``."""
    items = map(find_work_item, (*arguments, keywords.get("item")))
    item = next((item for item in items if item is not None), None)
    if item is None:
        return None
    # True until the file is opened: then the result does not come from the checkpoint.
    from_checkpoint = keywords.get("checkpointer") is not None or None
    return {**work_item_identity(item, {}), "from_checkpoint": from_checkpoint}


def _identify_open_file(reader: Any, number: int, start: int, stop: int) -> Fields:
    """Identify the chunk of a dask-awkward task whose file is open already."""
    tree = reader.ttrees[number]
    return reader_identity(reader, tree.file.file_path, tree.name, start, stop, True)


def _begin_column(measurement: Any, mapping: Any, branch: Any, *_: Any) -> bool:
    # None: the file lacks the branch. The processor may also read columns of other files.
    return branch is not None and measurement.reads_from(mapping)


def _end_column(measurement: Any, seconds: float, mapping: Any, branch: Any, *_: Any) -> None:
    log = mapping._access_log
    measurement.add_branch(log[-1].branch if log else branch_name(branch), branch, seconds)


def _begin_tree(measurement: Any, reader: Any, tree: Any, start: int, stop: int) -> bool:
    if measurement.is_reading:
        return False
    # The reader of files that were open before has them as `ttrees`.
    opens = not hasattr(reader, "ttrees")
    measurement.opened(tree, tree, int(stop - start), (start, stop), timed=opens)
    return True


def _end_tree(measurement: Any, seconds: float, reader: Any, tree: Any, *_: Any) -> None:
    measurement.read_seconds += seconds
    for name in reader.common_keys:
        if name in tree:
            measurement.add_branch(name, tree[name])


_observe_events = _observes(
    lambda measurement, factory, events: measurement.opened_by(factory, events, timed=True)
)
_observe_basket = _observes(
    lambda measurement, basket, _: measurement.add_basket(
        basket.parent, basket.basket_num, int(basket.uncompressed_bytes)
    )
)
_times_column = _times(_begin_column, _end_column)

#: Class, function and wrapper of everything that is patched, by module.
PATCHES: dict[str, list[tuple[str, str, Wrap]]] = {
    "coffea.processor.executor": [
        ("Runner", "_work_function", _measures(_identify_work_item, "processed")),
        ("FuturesExecutor", "__call__", _measures_in_pool),
    ],
    "coffea.nanoevents.factory": [("NanoEventsFactory", "events", _observe_events)],
    "coffea.nanoevents.mapping.uproot": [
        ("UprootSourceMapping", "extract_column", _times_column)
    ],
    "coffea.nanoevents.mapping.parquet": [
        ("ParquetSourceMapping", "extract_column", _times_column)
    ],
    # The uncompressed size of a basket is known only when it is read.
    "uproot.models.TBasket": [("Model_TBasket", "read_members", _observe_basket)],
    "uproot._dask": [
        ("_UprootOpenAndRead", "_call_impl", _measures(reader_identity, "read")),
        ("_UprootRead", "_call_impl", _measures(_identify_open_file, "read")),
        ("UprootReadMixin", "read_tree", _times(_begin_tree, _end_tree)),
    ],
}
