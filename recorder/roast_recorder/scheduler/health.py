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
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from socket import gethostname
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

#: Time without a write after which a recording that has something to write does not work. A
#: recording writes every second or so; a scheduler can be busy for a while.
SILENT_SECONDS: Final = 30.0

#: Added to the name of a trace for that of its note.
NOTE_ENDING: Final = ".not-recorded.json"

#: Operation of a scheduler that returns the health of its recordings.
OPERATION: Final = "roast_health"

#: Returns ``state`` and, if the recording began, ``records`` and ``records_dropped`` by kind,
#: ``buffer_bytes`` and ``last_write_age_seconds``; nothing if the scheduler has closed.
Health = Callable[[], dict[str, Any]]


class _Collector:
    """The metrics of one recording, in the form that prometheus_client collects."""

    def __init__(self, health: Health) -> None:
        self.health = health

    def describe(self) -> list[Any]:
        """Return nothing, so that registration does not collect."""
        return []

    def collect(self) -> list[Any]:
        """Return the metrics; none after an error, which would fail the scrape of Dask's."""
        try:
            return list(_metrics(self.health()))
        except Exception:
            logger.debug("roast: no metrics", exc_info=True)
            return []


def _metrics(health: dict[str, Any]) -> Iterator[Any]:
    from prometheus_client import core

    if not health:
        return
    about = "1 for the state of the recording"
    state = core.GaugeMetricFamily("roast_recording_state", about, labels=["state"])
    for name in (RECORDING, FAILING, ENDED, NOT_STARTED):
        state.add_metric([name], float(name == health["state"]))
    yield state
    for name, about in (
        ("records", "Records in the trace"),
        ("records_dropped", "Records that were lost before they could be written"),
    ):
        counter = core.CounterMetricFamily(f"roast_{name}", about, labels=["kind"])
        for kind, number in health.get(name, {}).items():
            counter.add_metric([kind], number)
        yield counter
    for name, about in (
        ("buffer_bytes", "Size of the records that are not in the trace yet"),
        ("last_write_age_seconds", "Time since all records were in the trace"),
    ):
        if name in health:
            yield core.GaugeMetricFamily(f"roast_{name}", about, value=health[name])


_registered: list[_Collector] = []


def register(health: Health) -> None:
    """Add the metrics of a recording to Dask's, in place of those of another scheduler."""
    try:
        from prometheus_client import REGISTRY

        for other in tuple(_registered):
            unregister(other.health)
        REGISTRY.register(collector := _Collector(health))
        _registered.append(collector)
    except ImportError:
        pass  # Dask's /metrics does not exist either
    except Exception as error:  # noqa: BLE001 - the scheduler must run
        logger.warning("roast: /metrics does not describe the recording: %s", error)


def unregister(health: Health) -> None:
    """Remove the metrics of a recording, if they are there."""
    for collector in [one for one in _registered if one.health == health]:
        from prometheus_client import REGISTRY

        _registered.remove(collector)
        with suppress(KeyError):
            REGISTRY.unregister(collector)


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
    note = {"t": time(), "problem": problem, "scheduler": scheduler, "host": gethostname()}
    with suppress(OSError):  # the disk may be what fails
        if not problem:
            note_of(trace).unlink(missing_ok=True)
            return
        # Other users of the folder can put a link or a FIFO there.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(note_of(trace), flags, 0o666), "w") as file:  # noqa: PTH123
            file.write(json.dumps(note) + "\n")


def is_noted(trace: str) -> bool:
    """Return whether a note is beside a trace, and is not empty as on a full disk."""
    with suppress(OSError):
        status = note_of(trace).lstat()
        return stat.S_ISREG(status.st_mode) and status.st_size > 0
    return False
