"""Wrap the functions of coffea and uproot that process chunks and read columns.

:data:`PATCHES` lists them. Each is replaced by a wrapper that does the same and reports to
the :class:`~roast_recorder.coffea.measurement.Measurement` of the current chunk. Wrappers are
installed with the first listener and removed with the last.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from copy import copy
from importlib.abc import MetaPathFinder
from time import perf_counter
from typing import Any

from roast_recorder.coffea.measurement import (
    Fields,
    Records,
    call_measured,
    current_measurement,
    errors_logged,
    publish,
    read_clocks,
)
from roast_recorder.coffea.task_identity import (
    find_work_item,
    reader_identity,
    work_item_identity,
)
from roast_recorder.exception_text import exception_text
from roast_recorder.process_state import here

#: Modules of pools whose processes are on this machine and can import the recorder.
LOCAL_POOLS = ("concurrent.futures.process", "loky", "joblib")

#: Called in place of a function, with that function and its arguments.
Wrapper = Callable[..., Any]


def add_listener(name: str, listener: Callable[[Records], None]) -> None:
    """Measure every chunk that this process processes, and pass its records to a listener.

    It is called in the thread that processed the chunk. It replaces one of the same name.
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
                target=_patch, args=(module_name,), name="roast-import", daemon=True
            ).start()
        elif module is not None:
            _patch(module_name)


def remove_listener(name: str) -> None:
    """Remove a listener, if present; with the last one, restore all functions."""
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
    """Patch modules as soon as they have been imported.

    Importing coffea takes seconds and most tasks need none of it, so it is not imported here.
    """

    #: Recognized by other copies of this code in the process.
    of_roast = True

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return the spec that the other finders return, with a loader that patches."""
        if fullname not in PATCHES:
            return None
        # As the import system does, leave out finders of before Python 3.4.
        finders = [getattr(f, "find_spec", None) for f in sys.meta_path if f is not self]
        found = (find(fullname, path, target) for find in finders if find is not None)
        spec: Any = next((spec for spec in found if spec is not None), None)
        if spec is None:
            return None
        with errors_logged(f"patch {fullname}"):
            # The loader is kept, because others use its further methods, such as `get_source`.
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                _patch(fullname)

            spec.loader.exec_module = exec_module
        return spec


def _import_hooks() -> list[Any]:
    return [finder for finder in sys.meta_path if getattr(finder, "of_roast", False)]


def _patch(module_name: str) -> None:
    """Install the wrappers of a module that are not installed yet."""
    state = here()
    with errors_logged(f"patch {module_name}"):
        # This waits for a thread that is importing it.
        module = importlib.import_module(module_name)
        with state.lock:
            if not state.listeners:
                return
            patched = {(owner, attribute) for owner, attribute, *_ in state.patched}
            for class_name, attribute, wrapper in PATCHES[module_name]:
                owner = getattr(module, class_name, None)
                # Other versions of coffea and uproot may lack it.
                original = getattr(owner, "__dict__", {}).get(attribute)
                if original is None or (owner, attribute) in patched:
                    continue
                # coffea pickles `Runner._work_function` by name, which must find a static
                # method again.
                is_static = isinstance(original, staticmethod)
                replacement = wrapped(original.__func__ if is_static else original, wrapper)
                replacement = staticmethod(replacement) if is_static else replacement
                setattr(owner, attribute, replacement)
                state.patched.append((owner, attribute, original, replacement))


def wrapped(function: Callable[..., Any], wrapper: Wrapper) -> Any:
    """Return a function that calls the wrapper, by the name under which pickle finds it."""

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        return wrapper(function, *arguments, **keywords)

    return call


# -- functions that process chunks -----------------------------------------------------------


def process_item(original: Any, *arguments: Any, **keywords: Any) -> Any:
    """Wrap ``Runner._work_function``."""

    def identify() -> Fields | None:
        items = map(find_work_item, (*arguments, keywords.get("item")))
        item = next((item for item in items if item is not None), None)
        if item is None:
            return None
        # True until the file is opened: then the result does not come from the checkpoint.
        from_checkpoint = keywords.get("checkpointer") is not None or None
        return {**work_item_identity(item), "from_checkpoint": from_checkpoint}

    return call_measured(identify, "processed", original, arguments, keywords)


def process_in_pool(
    original: Any, executor: Any, items: Any, function: Any, accumulator: Any
) -> Any:
    """Wrap ``FuturesExecutor.__call__``, which processes chunks in a pool of processes."""
    pool = getattr(executor, "pool", None)
    pool = getattr(pool, "func", pool)  # of a functools.partial
    with ExitStack() as stack:
        if items and here().carriers and callable(pool) and not isinstance(pool, type):
            # The kind of a pool that a function creates is known only then.
            pool = stack.enter_context(executor.pool(max_workers=executor.workers))
            executor = copy(executor)
            executor.pool = lambda **_: nullcontext(pool)
        with errors_logged("measure the chunks of a pool"):
            kind = pool if isinstance(pool, type) else type(pool)
            if any(base.__module__.startswith(LOCAL_POOLS) for base in kind.__mro__):
                for carry in list(here().carriers.values()):
                    function = carry(function)
        return original(executor, items, function, accumulator)


def open_and_read(original: Any, *arguments: Any, **keywords: Any) -> Any:
    """Wrap the reader of a dask-awkward task that opens a file."""
    return call_measured(
        lambda: reader_identity(*arguments, **keywords), "read", original, arguments, keywords
    )


def read_open_file(original: Any, *arguments: Any, **keywords: Any) -> Any:
    """Wrap the reader of a dask-awkward task whose files are open already."""

    def identify() -> Fields:
        reader, number, start, stop = arguments
        tree = reader.ttrees[number]
        return reader_identity(reader, tree.file.file_path, tree.name, start, stop, True)

    return call_measured(identify, "read", original, arguments, keywords)


def fetch_metadata(original: Any, *arguments: Any, **keywords: Any) -> Any:
    """Wrap ``Runner.metadata_fetcher_root``, which reads the number of entries of a file."""
    start_t, started_at = read_clocks()
    try:
        return original(*arguments, **keywords)
    except Exception as error:
        # With skipbadfiles coffea leaves the file out, and nothing else reports it.
        with errors_logged("record a file that cannot be read"):
            fields = {
                **work_item_identity(arguments[-1]),
                "until": "metadata",
                "thread": threading.get_ident(),
                "start_t": start_t,
                "stop_t": start_t + (perf_counter() - started_at),
                "exception": exception_text(error),
            }
            publish([("chunk", fields)])
        raise


# -- functions that open and read files ------------------------------------------------------


def _report(method: str, *arguments: Any, **keywords: Any) -> Any:
    """Call a method of the measurement of the current chunk, if there is one."""
    measurement = current_measurement()
    if measurement is not None:
        with errors_logged("measure a read"):
            return getattr(measurement, method)(*arguments, **keywords)
    return None


def timed(begin: str, end: str) -> Wrapper:
    """Return a wrapper of a function that reads.

    It passes the time and the arguments to the measurement's method `end`, if `begin`
    returned True for the arguments.
    """

    def call_timed(original: Any, *arguments: Any, **keywords: Any) -> Any:
        if not _report(begin, *arguments):
            return original(*arguments, **keywords)
        started_at = perf_counter()
        try:
            return original(*arguments, **keywords)
        finally:
            _report(end, perf_counter() - started_at, *arguments)

    return call_timed


def open_events(original: Any, factory: Any, *arguments: Any, **keywords: Any) -> Any:
    """Wrap ``NanoEventsFactory.events``."""
    events = original(factory, *arguments, **keywords)
    _report("open_events", factory, events, timed=True)
    return events


def read_basket(original: Any, basket: Any, *arguments: Any, **keywords: Any) -> Any:
    """Wrap ``Model_TBasket.read_members``."""
    result = original(basket, *arguments, **keywords)
    _report("add_basket", basket)
    return result


def decompress_block(original: Any, algorithm: Any, *arguments: Any, **keywords: Any) -> Any:
    """Wrap ``decompress`` of uproot's algorithms."""
    started_at = perf_counter()
    result = original(algorithm, *arguments, **keywords)
    _report("add_decompression", algorithm, perf_counter() - started_at)
    return result


read_column = timed("begin_column", "end_column")
read_tree = timed("begin_tree", "end_tree")

#: Class, function and wrapper of everything that is patched, by module.
PATCHES: dict[str, list[tuple[str, str, Wrapper]]] = {
    "coffea.processor.executor": [
        ("Runner", "_work_function", process_item),
        ("Runner", "metadata_fetcher_root", fetch_metadata),
        ("Runner", "metadata_fetcher_parquet", fetch_metadata),
        ("FuturesExecutor", "__call__", process_in_pool),
    ],
    "coffea.nanoevents.factory": [("NanoEventsFactory", "events", open_events)],
    "coffea.nanoevents.mapping.uproot": [
        ("UprootSourceMapping", "extract_column", read_column)
    ],
    "coffea.nanoevents.mapping.parquet": [
        ("ParquetSourceMapping", "extract_column", read_column)
    ],
    "uproot.models.TBasket": [("Model_TBasket", "read_members", read_basket)],
    "uproot.compression": [
        (f"_Decompress{name}", "decompress", decompress_block)
        for name in ("ZLIB", "LZMA", "LZ4", "ZSTD")
    ],
    "uproot._dask": [
        ("_UprootOpenAndRead", "_call_impl", open_and_read),
        ("_UprootRead", "_call_impl", read_open_file),
        ("UprootReadMixin", "read_tree", read_tree),
    ],
}
