"""The meters on all workers, as the recorder on the scheduler sees them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Any

from roast_recorder.process import PROCESS, Sheets
from roast_recorder.scheduler.buffer import EVENTS, FACTS, SAMPLES
from roast_recorder.scheduler.wire_format import PROFILES, RECORD, WORKER_LOG, Row, unpack
from roast_recorder.worker.plugin import PLUGIN_NAME, TOPIC

if TYPE_CHECKING:
    from distributed import Scheduler

    from roast_recorder.coffea.measurement import Records

logger = logging.getLogger("roast_recorder")

#: How long the workers that are there may take to get their meter, or to give it back.
ANSWER_TIMEOUT_SECONDS = 3.0


class Meters:
    """Sends a meter to every worker, and takes what they tell.

    Parameters
    ----------
    scheduler : Scheduler
    trace_id : str
    pickled : bytes or None
        A :class:`roast_recorder.worker.plugin.WorkerRecorder`. None if nothing is to be metered.
    kinds : set of str
        Kinds of records that are wanted.
    append : callable
        Takes a row, and which of what waits it is to be dropped with.

    Attributes
    ----------
    sheets : Sheets
        Which sheets of processes are written down already.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        trace_id: str,
        pickled: bytes | None,
        kinds: frozenset[str],
        append: Callable[[Row, int], None],
    ) -> None:
        self._scheduler = scheduler
        self._name = PLUGIN_NAME.format(trace_id=trace_id)
        self._topic = TOPIC.format(trace_id=trace_id)
        self._pickled = pickled
        self._kinds = kinds | {"loss"}
        self._append = append
        self.sheets = Sheets()
        self._asking: asyncio.Task[None] | None = None

    async def send(self) -> None:
        """Send a meter to all workers; those that come later get one as well."""
        if self._pickled is None:
            return
        register = self._scheduler.register_worker_plugin(
            None, plugin=self._pickled, name=self._name, idempotent=False
        )
        await self._ask(register)

    async def withdraw(self) -> None:
        """Take the meters back."""
        if self._name in self._scheduler.worker_plugins:
            await self._ask(self._scheduler.unregister_worker_plugin(None, name=self._name))
        _forget_events(self._scheduler, self._topic)

    def withdraw_soon(self) -> None:
        """Take the meters back, if nobody has, as soon as the event loop comes to it."""
        if self._name in self._scheduler.worker_plugins:
            self._asking = asyncio.get_running_loop().create_task(self.withdraw())

    def hear(self, topic: str, told: Any) -> bool:
        """Take what a worker tells.

        Returns
        -------
        bool
            Whether it was meant for recorders: for this one or for another.
        """
        # Not all topics are texts: Dask has logged restarts under None.
        if not str(topic).startswith(TOPIC.format(trace_id="")):
            return False
        if topic == self._topic:
            if "profiles" in told:
                self._hear_profiles(**told)
            elif "logs" in told:
                self._hear_logs(**told)
            else:
                self._hear_measured(json.loads(told["measured"]))
            # Dask would keep it for whoever asks.
            _forget_events(self._scheduler, topic)
        return True

    def _hear_profiles(self, profiles: bytes, records: int, worker: str) -> None:
        if "profile" in self._kinds:
            server = self._scheduler.workers.get(worker)
            server_id = server and server.server_id
            self._append((PROFILES, time(), worker, server_id, records, profiles), SAMPLES)

    async def hear_process(self, process: bytes, sheets: dict[str, bytes], worker: str) -> None:
        """Take what a worker says of itself.

        Parameters
        ----------
        process, sheets
            As :func:`roast_recorder.process.told_by_worker` gives them.
        worker : str
            Address of the worker.
        """
        if "environment" not in self._kinds:
            return
        t = time()
        for name, packed in sheets.items():
            if self.sheets.is_new(name):
                for fields in unpack(packed):
                    self._append((RECORD, t, "environment", fields), FACTS)
            elif self.sheets.lacks(name):
                self._append((RECORD, t, "loss", _loss_of_sheet(worker)), FACTS)
        server = self._scheduler.workers.get(worker)
        for described in unpack(process):
            fields = {
                "section": PROCESS,
                "name": described["role"],
                "value": described,
                "worker": worker,
                "server_id": server and server.server_id,
            }
            self._append((RECORD, t, "environment", fields), FACTS)

    def _hear_logs(
        self, logs: Any, losses: list[dict[str, Any]], worker: str, server_id: str
    ) -> None:
        t = time()
        for kind, records, packed in logs:
            if kind in self._kinds:
                row = (WORKER_LOG, t, worker, server_id, records, packed, kind)
                self._append(row, EVENTS)
        for loss in losses:
            self._append((RECORD, t, "loss", loss), FACTS)

    def _hear_measured(self, records: Records) -> None:
        t = time()
        for kind, fields in records:
            if kind in self._kinds:
                self._append((RECORD, t, kind, fields), FACTS)

    async def _ask(self, asking: Any) -> None:
        """Ask all workers, but wait only so long for the slow ones."""
        task = asyncio.ensure_future(self._answered(asking))
        self._asking = task
        await asyncio.wait({task}, timeout=ANSWER_TIMEOUT_SECONDS)

    async def _answered(self, asking: Any) -> None:
        try:
            answers = await asking
        except Exception as error:  # noqa: BLE001 - a worker may go meanwhile
            logger.debug("roast: not every worker has answered: %s", error)
            return
        errors = [
            answer for answer in answers.values() if answer and answer.get("status") == "error"
        ]
        if errors:
            logger.warning(
                "roast: %d of %d workers cannot tell what they do (%s)",
                len(errors),
                len(answers),
                errors[0].get("exception_text", "no reason given"),
            )


def _loss_of_sheet(worker: str) -> dict[str, Any]:
    return {
        "reason": "more different configurations or lists of packages than are kept",
        "record_kind": "environment",
        "records": 1,
        "detail": worker,
    }


def _forget_events(scheduler: Scheduler, topic: str) -> None:
    """Have Dask forget the events of a topic."""
    # There is no public way.
    broker: Any = getattr(scheduler, "_broker", None)
    if broker is not None:
        broker._topics.pop(topic, None)
        return
    for name in ("events", "event_counts"):  # until 2024.11
        getattr(scheduler, name).pop(topic, None)
