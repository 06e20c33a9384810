"""Probes: further sources of records, beside the tasks, workers and clients of the core.

A probe is one module of this folder and its entry in :data:`PROBES`. It has a class for each
process in which it records:

* ``OnScheduler``, a :class:`SchedulerProbe`,
* ``OnWorker``, a :class:`WorkerProbe`,
* ``OnClient``, a :class:`ClientProbe`.

Its methods may raise, which is reported as a loss of its kinds of records: all other probes
continue. ``core`` has what they need in the section *for probes* of its class: the settings,
the tap, and what appends records, which also ``_install`` may call.

The classes of the probes that record a chosen kind travel to the cluster in the pickles of the
plugins. All state is therefore in the instances, and no probe imports another one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from distributed.scheduler import TaskState

    from roast_recorder.client_recording import Recording
    from roast_recorder.scheduler.plugin import Recorder
    from roast_recorder.scheduler.wire_format import Record, Row
    from roast_recorder.worker.plugin import WorkerRecorder

#: The kinds of records to which each probe contributes, by the name of its module. The order
#: matters for events only, which are passed to the probes until one has recorded them.
PROBES: Final = {
    "samples": ("worker_sample", "scheduler_sample"),
    "host": ("host_sample",),
    "stalls": ("stall",),
    "spans": ("span", "task"),
    "fine_metrics": ("fine_metric",),
    "chunks": ("chunk", "section"),
    "profiles": ("profile",),
    "environment": ("environment",),
    "graphs": ("graph", "graph_update", "computation"),
    "client_activity": ("client_activity",),
    "client_program": ("client_program",),
    "cluster_size": ("cluster_size",),
    "wanted_keys": ("wanted_keys",),
    "worker_logs": ("worker_transition", "spill", "transfer"),
    "events": ("event",),
}

#: Probes whose rows have a form of their own: their modules have ``DECODERS`` by kind, with
#: which the writing process turns the content of a row into records. It imports only these.
DECODING: Final = frozenset({"samples", "fine_metrics", "wanted_keys", "worker_logs"})


class Probe:
    """What the probes of all sides have in common."""

    #: Kinds that it records on this side, if not all of its entry in :data:`PROBES`.
    kinds: ClassVar[tuple[str, ...]]

    #: Name of a setting without which it records nothing.
    setting: ClassVar[str]

    def __init__(self, core: Any) -> None:
        self.core = core
        self._install()

    def _install(self) -> None:
        """Install the hooks, through ``core.tap``.

        If it raises, as for a name that this version of Dask lacks, the probe ends, its hooks
        are removed, and the loss of its kinds is reported.
        """


class SchedulerProbe(Probe):
    """A probe on the scheduler. Its methods run on the event loop."""

    core: Recorder

    def on_graph(
        self, tasks: list[TaskState], t: float, client: str, stimulus_id: str | None
    ) -> None:
        """Record a graph with its new tasks."""

    def on_span(self, span_id: str | None) -> None:
        """Record the span of a task, when the first task of the span enters."""

    def on_event(self, topic: Any, message: Any) -> bool:  # noqa: ARG002
        """Record an event of Dask's; return True if no further probe should."""
        return False

    def before_pull(self) -> None:
        """Append what has waited for more of its kind."""

    def finish(self) -> None:
        """Append the last records.

        Called when recording ends, and also when workers are about to leave a scheduler that
        closes.
        """


class WorkerProbe(Probe):
    """A probe on a worker. Its methods run on the event loop.

    Rows are (kind, number of records, content): the scheduler adds the time.
    """

    core: WorkerRecorder

    def take(self) -> list[Row]:
        """Return the rows since the last call. They are sent twice a second."""
        return []

    def take_last(self) -> list[Row]:
        """Return the last rows of the recording or of this worker."""
        return self.take()


class ClientProbe(Probe):
    """A probe in the program that records. Its methods run on the client's event loop."""

    core: Recording

    def before_write(self) -> None:
        """Append what has changed since the last records were written."""


def load(
    side: str, kinds: frozenset[str], settings: dict[str, Any]
) -> list[tuple[tuple[str, ...], Callable[[Any], Any]]]:
    """Return the probes of one side, such as ``OnWorker``, that record any of some kinds.

    Each is a pair of these kinds and the class. In place of a probe that cannot be imported is
    what raises the error where it would be created, so that the trace reports the loss.
    """
    found: list[tuple[tuple[str, ...], Callable[[Any], Any]]] = []
    for name, recorded in PROBES.items():
        if kinds.isdisjoint(recorded):
            continue
        create = part_of(name, side)
        chosen = kinds.intersection(getattr(create, "kinds", recorded))
        if create and chosen and settings.get(getattr(create, "setting", ""), True):
            found.append((tuple(sorted(chosen)), create))
    return found


def part_of(probe: str, name: str) -> Any:
    """Return a class or function of a probe; None if the probe has none of this name.

    If the probe cannot be imported, as after its file was removed, return what raises the error
    where it is called. Nothing else imports a probe.
    """
    try:
        return getattr(import_module(f"roast_recorder.probes.{probe}"), name, None)
    except Exception as error:  # noqa: BLE001 - the rest can be used
        return _Missing(f"{type(error).__name__}: {error}")


class _Missing:
    """Raises instead of what a probe would do."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __call__(self, *_arguments: Any) -> Any:
        raise ImportError(self._reason)


def decoder(kind: str) -> Callable[[str, float, Any], Iterable[Record]] | None:
    """Return the decoder of the rows of a kind; None if their content is fields of records."""
    for name in DECODING:
        if kind in PROBES[name]:
            decoders = part_of(name, "DECODERS")
            return decoders.get(kind) if isinstance(decoders, dict) else decoders
    return None
