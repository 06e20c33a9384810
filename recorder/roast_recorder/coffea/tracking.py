"""Saying in an analysis that its chunks are to be measured.

Nobody needs it for coffea's own ways of running: they are measured without it. It is for
processors that are called in some other way, by hand or by another framework, on workers
that a recorder has reached.
"""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any, TypeVar
from urllib.parse import unquote

from roast_recorder.coffea.measurement import current, measured, quietly

Processor = TypeVar("Processor")


def track(processor: Processor) -> Processor:
    """Have every chunk measured that a processor processes.

    Parameters
    ----------
    processor : coffea.processor.ProcessorABC or callable
        Takes the events of a chunk.

    Returns
    -------
    same as `processor`
        A copy that gives the same results. Where nothing records it does nothing else; a
        chunk that is measured already is not measured twice.

    Raises
    ------
    TypeError
        If it can't be called with events.
    """
    if hasattr(processor, "process") and not isinstance(processor, type):
        return _tracked(processor)  # type: ignore[no-any-return]
    if hasattr(processor, "process") or not callable(processor):
        raise TypeError(f"track() takes a processor or a function of events, not {processor!r}")

    @functools.wraps(processor)
    def process(events: Any) -> Any:
        return _measured(processor, events)

    return process  # type: ignore[return-value]


def _tracked(processor: Any) -> Any:
    """Give a copy of a processor with another ``process``."""
    if not hasattr(processor, "__dict__"):
        raise TypeError(
            f"track() finds no room in {processor!r}, whose class has __slots__: "
            "track its method, processor.process"
        )
    tracked = copy.copy(processor)
    # A frozen dataclass would refuse it.
    object.__setattr__(tracked, "process", _Process(tracked))
    return tracked


class _Process:
    """Takes the place of ``process`` on one processor."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        own = vars(processor).get("process")
        # What is tracked twice must not go on with the attributes of the first copy.
        self._own: Any = own._own if isinstance(own, _Process) else own

    def __call__(self, events: Any) -> Any:
        return _measured(self._own or self._of_class(), events)

    def _of_class(self) -> Any:
        """Find what a call of ``process`` would find if this were not there."""
        kind = type(self._processor)
        found = inspect.getattr_static(kind, "process", None)
        if found is None:
            return kind.__getattr__(self._processor, "process")
        return found.__get__(self._processor, kind) if hasattr(found, "__get__") else found


def _measured(function: Any, events: Any) -> Any:
    def process(events: Any) -> Any:
        measurement = current()
        if measurement is not None:
            with quietly("events come from nowhere"):
                factory = events.attrs["@events_factory"]
                measurement.opened_by(factory, events, timed=False)
        return function(events)

    return measured(lambda: _identity_of(events), "processed", process, (events,), {})


def _identity_of(events: Any) -> dict[str, Any] | None:
    """Say what chunk these events are; None if they are not read yet, or not from a file."""
    if hasattr(events, "dask"):
        return None
    metadata = getattr(events, "metadata", None) or {}
    factory = getattr(events, "attrs", {}).get("@events_factory")
    if factory is None and "filename" not in metadata:
        return None
    # What metadata does not tell, coffea's factory knows.
    told = {"treename": None, "fileuuid": None, "filename": None}
    told |= {} if factory is None else _told_by(factory)
    told |= metadata
    return {
        "dataset": told.get("dataset"),
        "filename": told["filename"] and str(told["filename"]),
        "treename": told["treename"],
        "file_uuid": str(told["fileuuid"] or "").replace("-", "") or None,
    }


def _told_by(factory: Any) -> dict[str, Any]:
    """Read a file's names off the key of a NanoEventsFactory: ``uuid/tree/entries``."""
    uuid, tree, _ = map(unquote, factory._partition_key.split("/"))
    file = getattr(factory.file_handle, "file", factory.file_handle)
    told = {
        "fileuuid": uuid,
        "treename": tree.strip("/").partition(";")[0],
        "filename": getattr(file, "file_path", None),
    }
    # That is how coffea writes it when a Parquet file tells neither.
    return {name: value for name, value in told.items() if value != "None"}
