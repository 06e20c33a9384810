"""A recording that lives with the scheduler, and writes on the scheduler's host.

The plugin and the writing process are the same as a client's; only the way between them is
short.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import uuid
from time import time
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import SchedulerPlugin

from roast_recorder import environment
from roast_recorder.pickling import pickled_meter
from roast_recorder.scheduler.plugin import RecorderPlugin, operation_name
from roast_recorder.scheduler.pump import pump
from roast_recorder.writer.client import Writer
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from distributed import Scheduler

    from roast_recorder.settings import Settings

logger = logging.getLogger("roast_recorder")


class Resident:
    """Records a scheduler from within, until it closes.

    Parameters
    ----------
    scheduler : Scheduler
    target : str
        A file or a folder on the scheduler's host.
    settings : Settings
    retain_root : str, optional
        Folder of the traces that ``retain_limit_bytes`` counts together.
    trace_id : str, optional
    """

    def __init__(
        self,
        scheduler: Scheduler,
        target: str,
        settings: Settings,
        *,
        retain_root: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        self.trace_id = trace_id or uuid.uuid4().hex
        self._scheduler = scheduler
        self._target = target
        meter = pickled_meter(self.trace_id, settings)
        self._plugin = RecorderPlugin(self.trace_id, None, settings.as_dict(), meter)
        self._writer = Writer(
            target, self._header(settings), settings.as_dict(), retain_root=retain_root
        )
        self._pumping: asyncio.Task[None] | None = None
        self.ending = ""

    async def start(self) -> None:
        """Open the trace, attach the recorder.

        Raises
        ------
        ValueError, OSError, ImportError
            If there can be no trace at the target.
        """
        await self._writer.open()
        await self._plugin.start(self._scheduler)
        self._plugin.when_nobody_is_left(self._finish_now)
        self._scheduler.add_plugin(self._plugin, name=self._plugin.name)
        self._pumping = asyncio.create_task(self._pump())
        atexit.register(self._finish_now)
        logger.info("roast: recording to %s", self._target)

    def _header(self, settings: Settings) -> dict[str, Any]:
        return {
            "kind": "header",
            "schema_version": SCHEMA_VERSION,
            "trace_id": self.trace_id,
            "settings": settings.as_told(),
            "clock_offset_seconds": 0.0,
            **environment.header_facts(self._scheduler),
        }

    async def stop(self, ending: str) -> None:
        """End the recording in order, if it has not ended."""
        if self._pumping is not None:
            await self._plugin.detach(ending=ending)
            await asyncio.wait([self._pumping])

    def status(self) -> dict[str, Any]:
        """Say what has been written, and how the recording ended if it has."""
        writer = self._writer
        return {
            "records_by_kind": dict(writer.records_by_kind),
            "dropped_by_kind": dict(writer.dropped_by_kind),
            "nbytes": writer.nbytes,
            "ending": self.ending,
        }

    async def _pump(self) -> None:
        try:
            ending = await pump(self._plugin.pull, self._writer)
            await self._writer.finish(time(), ending)
            self._pumping = None
            self._has_ended(ending)
        except asyncio.CancelledError:
            self._finish_now()
            raise
        except Exception:
            logger.exception("roast: recording to %s has ended", self._target)

    def _finish_now(self) -> None:
        """Write what is left, at the last moment at which anything runs here.

        The scheduler's event loop may end with its last step, so nothing may wait for it.
        """
        pumping, self._pumping = self._pumping, None
        if pumping is None:
            return
        batches, ending = self._plugin.pull_the_rest()
        self._writer.finish_now(batches, time(), ending)
        with contextlib.suppress(RuntimeError):
            pumping.cancel()
        self._has_ended(ending)

    def _has_ended(self, ending: str) -> None:
        self.ending = ending
        atexit.unregister(self._finish_now)
        writer = self._writer
        logger.info(
            "roast: %s has %d records in %d bytes; %d records were dropped; %s",
            self._target,
            writer.records_by_kind.total(),
            writer.nbytes,
            writer.dropped_by_kind.total(),
            ending,
        )


class ResidentPlugin(SchedulerPlugin):
    """A resident recording that a client has asked for.

    Parameters
    ----------
    trace_id, target, settings
        As :class:`Resident` takes them.
    client_id : str
        When this client goes, the recording ends.
    """

    def __init__(self, trace_id: str, client_id: str, target: str, settings: Settings) -> None:
        self.name = f"roast-resident-{trace_id}"
        self._trace_id = trace_id
        self._client_id = client_id
        self._target = target
        self._settings = settings

    async def start(self, scheduler: Scheduler) -> None:
        """Begin to record."""
        self._scheduler = scheduler
        self._resident = Resident(
            scheduler, self._target, self._settings, trace_id=self._trace_id
        )
        await self._resident.start()
        scheduler.handlers[operation_name("status", self._trace_id)] = self.status
        scheduler.handlers[operation_name("stop", self._trace_id)] = self.stop

    async def status(self) -> dict[str, Any]:
        """Say what has been written, and how the recording ended if it has."""
        return self._resident.status()

    async def stop(self, ending: str = "recording was stopped") -> dict[str, Any]:
        """End the recording, and leave nothing behind."""
        await self._resident.stop(ending)
        for operation in ("status", "stop"):
            self._scheduler.handlers.pop(operation_name(operation, self._trace_id), None)
        self._scheduler.plugins.pop(self.name, None)
        return self._resident.status()

    def remove_client(self, scheduler: Scheduler, client: str) -> None:  # noqa: ARG002
        """End the recording of a client that has gone."""
        if client == self._client_id and not self._resident.ending:
            self._stopping = asyncio.create_task(self.stop("the client has gone"))
