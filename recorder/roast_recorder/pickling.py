"""How the recorder gets to a scheduler whose environment lacks it.

The plugin is pickled by value: the classes and functions it needs travel inside the
pickle. The scheduler then runs the client's version of the recorder, and an environment
with `distributed` alone will do. Bytecode travels, so both must run the same Python; if
they don't, the plugin goes by its name, and the scheduler must have the recorder installed.
"""

from __future__ import annotations

import pickle
import threading
import zlib
from typing import TYPE_CHECKING, Any

import cloudpickle

if TYPE_CHECKING:
    from roast_recorder.settings import Settings

#: cloudpickle's registry is one for the whole process.
_registry = threading.Lock()


def pickled_meter(trace_id: str, settings: Settings) -> bytes | None:
    """Pickle what goes to every worker, or give None if it has nothing to do there."""
    chunks = settings.measure_chunks and not {"chunk", "section"}.isdisjoint(settings.kinds)
    profiles = "profile" in settings.kinds
    facts = "environment" in settings.kinds
    logs = settings.transfers or settings.worker_transitions
    if not (chunks or profiles or facts or logs):
        return None
    # Importing distributed takes a second.
    from roast_recorder.worker.plugin import WorkerRecorder

    interval = settings.profile_interval_seconds if profiles else None
    meter = WorkerRecorder(
        trace_id,
        chunks=chunks,
        profile_interval_seconds=interval,
        facts=settings.as_dict() if facts else None,
        transfers=settings.transfers,
        transitions=settings.worker_transitions,
    )
    return dumps_by_value(meter)


def dumps_by_value(plugin: Any) -> bytes:
    """Pickle an object of the recorder together with the recorder's code.

    Parameters
    ----------
    plugin : object
        It must not refer to what only this process has.
    """
    import roast_recorder
    import roast_schemas

    with _registry:
        registered = cloudpickle.list_registry_pickle_by_value()
        ours = [p for p in (roast_recorder, roast_schemas) if p.__name__ not in registered]
        for package in ours:
            cloudpickle.register_pickle_by_value(package)
        try:
            pickled: bytes = cloudpickle.dumps(plugin)
            return _compressed(pickled)
        finally:
            for package in ours:
                cloudpickle.unregister_pickle_by_value(package)


class _Calls:
    """What is pickled as a call, of the standard library alone."""

    def __init__(self, function: Any, argument: Any) -> None:
        self._call = function, (argument,)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call


def _compressed(pickled: bytes) -> bytes:
    """Make a pickle of a pickle, a third as large: a thousand workers are to get it."""
    small = zlib.compress(pickled, 9)
    return pickle.dumps(_Calls(pickle.loads, _Calls(zlib.decompress, small)))
