"""The health of a scheduler's own recording: metrics for Prometheus, and notes about problems.

The metrics are part of Dask's ``/metrics``, if prometheus_client is installed. Everything in
them is counted anyway: a scrape reads it, and between scrapes they cost nothing. As Dask's
own, they describe the newest scheduler of the process.

A note is a small file beside a trace, or where it would have been, that contains why nothing
is written to it. ``roast-record status`` reads it.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from distributed import Scheduler

logger = logging.getLogger("roast_recorder")

#: The recording writes; cannot write now; has ended; could not start.
RECORDING: Final = "recording"
FAILING: Final = "failing"
ENDED: Final = "ended"
NOT_STARTED: Final = "not started"

#: Added to the name of a trace for that of its note.
NOTE_ENDING: Final = ".not-recorded.json"

#: Operation of a scheduler that returns the health of its recordings.
OPERATION: Final = "roast_health"

#: Returns some of ``state``, ``records`` and ``dropped`` by kind, ``buffer_bytes`` and
#: ``last_write_age_seconds``; nothing if the scheduler has closed.
Health = Callable[[], dict[str, Any]]


class _Collector:
    """The metrics of one recording, in the form that prometheus_client collects."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def describe(self) -> list[Any]:
        """Return nothing, so that registration does not collect."""
        return []

    def collect(self) -> list[Any]:
        """Return the metrics; none after an error, which would fail the scrape of Dask's."""
        try:
            return list(_metrics(self._health()))
        except Exception:
            logger.debug("roast: no metrics", exc_info=True)
            return []


def _metrics(health: dict[str, Any]) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    if not health:
        return
    state = GaugeMetricFamily(
        "roast_recording_state", "1 for the state of the recording", labels=["state"]
    )
    for name in (RECORDING, FAILING, ENDED, NOT_STARTED):
        state.add_metric([name], float(name == health["state"]))
    yield state
    for name, about in (
        ("records", "Records in the trace"),
        ("dropped", "Records that were lost before they could be written"),
    ):
        family = {"records": "roast_records", "dropped": "roast_records_dropped"}[name]
        counter = CounterMetricFamily(family, about, labels=["kind"])
        for kind, number in health.get(name, {}).items():
            counter.add_metric([kind], number)
        yield counter
    for name, about in (
        ("buffer_bytes", "Size of the records that are not in the trace yet"),
        ("last_write_age_seconds", "Time since all records were in the trace"),
    ):
        if name in health:
            yield GaugeMetricFamily(f"roast_{name}", about, value=health[name])


_registered: list[_Collector] = []


def register(health: Health) -> Callable[[], None]:
    """Add the metrics of a recording to Dask's; return a function that removes them."""
    collector = _Collector(health)

    def unregister(*collectors: _Collector) -> None:
        for one in collectors or (collector,):
            if one in _registered:
                _registered.remove(one)
                with suppress(Exception):
                    REGISTRY.unregister(one)

    try:
        from prometheus_client import REGISTRY

        unregister(*_registered)
        REGISTRY.register(collector)
        _registered.append(collector)
    except ImportError:
        pass  # Dask's /metrics does not exist either
    except Exception as error:  # noqa: BLE001 - the scheduler must run
        logger.warning("roast: /metrics does not describe the recording: %s", error)
    return unregister


def report_not_started(scheduler: Scheduler, trace: str, problem: str) -> None:
    """Report that a scheduler cannot be recorded; the trace is empty if it has no place."""
    about = {"trace": trace, "state": NOT_STARTED, "problem": problem}
    register(lambda: {} if scheduler.status.name == "closed" else about)
    scheduler.handlers.setdefault(OPERATION, lambda: [about])
    if trace:
        write_note(trace, problem, str(scheduler.address))


def note_of(trace: str) -> Path:
    """Return the path of the note beside a trace."""
    return Path(trace.rstrip("/") + NOTE_ENDING)


def write_note(trace: str, problem: str, scheduler: str) -> None:
    """Note why nothing is written to a trace, or remove the note if there is no problem."""
    about = {"t": time(), "scheduler": scheduler, "host": socket.gethostname()}
    note = {**about, "pid": os.getpid(), "problem": problem}
    with suppress(OSError):  # the disk may be what fails
        if problem:
            note_of(trace).write_text(json.dumps(note) + "\n")
        else:
            note_of(trace).unlink(missing_ok=True)
