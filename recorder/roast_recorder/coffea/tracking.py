"""The function :func:`track`, which marks a processor's calls as chunks to be measured.

coffea's Runner and dask-awkward are measured without it. It is for processors that are called
by hand or by another framework, on workers that are recorded.
"""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any, TypeVar

from roast_recorder.coffea.measurement import (
    call_measured,
    current_measurement,
    errors_logged,
)
from roast_recorder.coffea.task_identity import events_identity

Processor = TypeVar("Processor")


def track(processor: Processor) -> Processor:
    """Measure every chunk that a processor processes.

    Parameters
    ----------
    processor : coffea.processor.ProcessorABC or callable
        Takes the events of a chunk.

    Returns
    -------
    same as `processor`
        A copy that returns the same results. Without a recording it does nothing else; a
        chunk that is measured already is not measured twice.

    Raises
    ------
    TypeError
        If it cannot be called with events.
    """
    if not hasattr(processor, "process") and callable(processor):

        @functools.wraps(processor)
        def process(events: Any) -> Any:
            return _process_measured(processor, events)

        return process  # type: ignore[return-value]
    if not hasattr(processor, "process") or isinstance(processor, type):
        raise TypeError(f"invalid processor {processor!r}: use a processor or a function")
    if not hasattr(processor, "__dict__"):
        raise TypeError(
            f"cannot track {processor!r}, whose class has __slots__: "
            "track its method, processor.process"
        )
    tracked = copy.copy(processor)
    # Not setattr(), which a frozen dataclass refuses.
    object.__setattr__(tracked, "process", _Process(tracked))
    return tracked


class _Process:
    """Replacement of ``process`` on one processor; a class, so that it can be pickled."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        own = vars(processor).get("process")
        # A processor tracked twice must not use the attributes of the first copy.
        self._own: Any = own._own if isinstance(own, _Process) else own

    def __call__(self, events: Any) -> Any:
        function = self._own
        if function is None:
            # What the attribute ``process`` would be without this replacement.
            kind = type(self._processor)
            found = inspect.getattr_static(kind, "process", None)
            if found is None:
                function = kind.__getattr__(self._processor, "process")
            else:
                is_bound = hasattr(found, "__get__")
                function = found.__get__(self._processor, kind) if is_bound else found
        return _process_measured(function, events)


def _process_measured(function: Any, events: Any) -> Any:
    def process(events: Any) -> Any:
        measurement = current_measurement()
        if measurement is not None:
            with errors_logged("find the file of events"):
                factory = events.attrs["@events_factory"]
                measurement.open_events(factory, events, timed=False)
        return function(events)

    return call_measured(lambda: events_identity(events), "processed", process, (events,), {})
