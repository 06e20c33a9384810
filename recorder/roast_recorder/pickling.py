"""Pickling of plugins, so that schedulers and workers need not have the recorder installed.

Plugins are pickled by value: the classes and functions that they need are in the pickle.
An environment with `distributed` alone then runs the client's version of the recorder.
Bytecode is part of the pickle, so all must run the same version of Python. If they do not,
plugins are pickled by name, and scheduler and workers must have the recorder installed.
"""

from __future__ import annotations

import io
import pickle
import threading
import zlib
from collections import ChainMap
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import cloudpickle

import roast_recorder
import roast_schemas
from roast_recorder.worker.plugin import WorkerRecorder

if TYPE_CHECKING:
    from roast_recorder.settings import Settings

#: The whole process shares cloudpickle's registry.
_registry = threading.Lock()


def pickled_worker_plugin(
    trace_id: str, settings: Settings, *, by_value: bool = True
) -> bytes | None:
    """Return the pickled plugin for workers, or None if it would record nothing."""
    plugin = WorkerRecorder(trace_id, settings.as_dict())
    if not plugin.sources:
        return None
    return dumps_by_value(plugin) if by_value else pickle.dumps(plugin)


def dumps_by_value(plugin: Any) -> bytes:
    """Pickle an object together with the recorder's code."""
    with _registry:
        registered = cloudpickle.list_registry_pickle_by_value()
        new = [p for p in (roast_recorder, roast_schemas) if p.__name__ not in registered]
        for package in new:
            cloudpickle.register_pickle_by_value(package)
        try:
            pickled = io.BytesIO()
            _Pickler(pickled).dump(plugin)
        finally:
            for package in new:
                cloudpickle.unregister_pickle_by_value(package)
    # Compressed, it is a third as large, which matters with a thousand workers.
    compressed = zlib.compress(pickled.getvalue(), 9)
    return pickle.dumps(_Call(pickle.loads, _Call(zlib.decompress, compressed)))


#: How cloudpickle pickles a code object.
_reduce_code: Final = cloudpickle.CloudPickler.dispatch_table[CodeType]


def _reduce_code_with_filename(code: CodeType) -> tuple[Any, ...]:
    create, arguments, *others = _reduce_code(code)
    # The first string among the arguments of `CodeType` is the file name.
    place = next(i for i, value in enumerate(arguments) if isinstance(value, str))
    arguments = (*arguments[:place], code.co_filename, *arguments[place + 1 :])
    return create, arguments, *others


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Pickle functions with their file names, which cloudpickle 3.1.3 replaces.

    The file name distinguishes the recorder's functions from the user's in profiles.
    """

    dispatch_table: ClassVar[Any] = ChainMap(
        {CodeType: _reduce_code_with_filename}, cloudpickle.CloudPickler.dispatch_table
    )


class _Call:
    """A function call that unpickles as its result, using only the standard library."""

    def __init__(self, function: Any, argument: Any) -> None:
        self._call = function, (argument,)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call
