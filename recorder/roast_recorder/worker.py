"""The recorder on a worker: it tells the scheduler of every chunk that was made there.

It comes from the scheduler to all workers, to those that come later as well, and goes when
the recording ends. It travels by value, so workers need nothing installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import distributed.worker
from distributed import get_worker
from distributed.diagnostics.plugin import WorkerPlugin

from roast_recorder.hooks import listen, stop_listening

if TYPE_CHECKING:
    from distributed import Worker

#: Workers speak of chunks to the recorder of one trace on the topic of this name.
TOPIC = "roast-chunks-{trace_id}"


class ChunkMeter(WorkerPlugin):
    """Measures the chunks of one worker for one recorder.

    Parameters
    ----------
    trace_id : str
    """

    def __init__(self, trace_id: str) -> None:
        self.name = f"roast-recorder-{trace_id}"
        self._topic = TOPIC.format(trace_id=trace_id)

    def setup(self, worker: Worker) -> None:
        """Begin to listen."""
        listen(self._name_on(worker), _tells_scheduler(worker, self._topic))

    def teardown(self, worker: Worker) -> None:
        """Stop to listen."""
        stop_listening(self._name_on(worker))

    def _name_on(self, worker: Worker) -> str:
        # Several workers can share a process.
        return f"{self.name}-{worker.id}"


def _tells_scheduler(worker: Worker, topic: str) -> Callable[[dict[str, Any]], None]:
    """Make a listener that sends what it hears to the scheduler, as an event.

    An event is sent at once and arrives before the end of the task, also if that fails.
    """

    def tell(measured: dict[str, Any]) -> None:
        try:
            here = get_worker()
        except ValueError:
            return  # no task's thread
        if here is not worker:
            return
        # The module, since what holds a thread's state cannot travel by value.
        threads: Any = distributed.worker
        key = threads.thread_state.key
        task = worker.state.tasks.get(key)
        told = {
            "key": str(key),
            "run_id": getattr(task, "run_id", None),
            "worker": worker.address,
        }

        def complete(record: dict[str, Any]) -> dict[str, Any]:
            # As Dask does it: times are told on the scheduler's clock.
            return {
                **record,
                **told,
                "start_t": record["start_t"] + worker.scheduler_delay,
                "stop_t": record["stop_t"] + worker.scheduler_delay,
            }

        chunk = measured["chunk"] and complete(measured["chunk"])
        if chunk:
            # The scheduler has read it off the task.
            chunk.pop("usermeta", None)
        sections = list(map(complete, measured["sections"]))
        # As text: names that Dask cannot send would cost the worker its connection.
        text = json.dumps({**measured, "chunk": chunk, "sections": sections}, default=str)
        worker.log_event(topic, {"measured": text})

    return tell
