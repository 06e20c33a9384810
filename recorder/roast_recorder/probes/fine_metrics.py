"""Fine metrics: seconds and bytes by activity, as the deltas of each heartbeat.

Metrics of tasks have a span and are in the data of Dask's spans extension; the others are among
the digests of the worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import Any

from roast_recorder.probes import SchedulerProbe
from roast_recorder.scheduler.wire_format import Record, Row, present, text

#: Types of metrics, unless a user's code computes them with numpy.
_NUMBERS = frozenset({float, int})


class OnScheduler(SchedulerProbe):
    """Record what the heartbeats of workers contain."""

    def _install(self) -> None:
        handlers = self.core.scheduler.handlers
        self.core.tap.message("fine_metric", handlers, "heartbeat_worker", self._on_heartbeat)

    def _on_heartbeat(self, message: dict[str, Any]) -> None:
        """Record what a worker has added to its fine metrics."""
        worker = message["address"]
        extensions = message.get("extensions") or {}
        digests = message["metrics"].get("digests_total_since_heartbeat", {})
        outside = (name for name in digests if type(name) is tuple and len(name) == 3)
        deltas = {
            **(extensions.get("spans") or {}),
            **{name: digests[name] for name in outside},
        }
        if not _NUMBERS.issuperset(map(type, deltas.values())):
            deltas = {name: float(delta) for name, delta in deltas.items()}
        if deltas:
            content = (worker, self.core.server_id("fine_metric", worker), deltas)
            self.core.append(("fine_metric", time(), len(deltas), content))


def _fine_metrics(kind: str, t: float, content: Row) -> Iterator[Record]:
    """Yield a record for each delta of a worker's heartbeat.

    A delta's name is (context, span_id, prefix, activity, unit) inside tasks and
    (context, activity, unit) outside of them.
    """
    worker, server_id, deltas = content
    for (context, *within_task, activity, unit), delta in deltas.items():
        span_id, prefix = within_task if len(within_task) == 2 else (None, None)
        record = {
            "kind": kind,
            "t": t,
            "worker": worker,
            "server_id": server_id,
            "context": str(context),
            "span_id": span_id,
            "prefix": prefix and text(prefix),
            "activity": text(activity),
            "unit": str(unit),
            "delta": delta,
        }
        yield present(record)


DECODERS = {"fine_metric": _fine_metrics}
