"""A recording, seen from the client: attach, pull, write, detach.

The client owns the file. It asks the recorder on the scheduler for the next batches again
and again and gives them to the :mod:`~roast_recorder.writer`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import pickle
import platform
import uuid
from time import time
from typing import TYPE_CHECKING, Any, Self

from roast_recorder import environment
from roast_recorder.settings import Settings
from roast_recorder.writer import Writer
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections import Counter
    from types import TracebackType

    from distributed import Client

logger = logging.getLogger("roast_recorder")

#: How long the end of a recording may take before the caller goes on without it.
STOP_TIMEOUT_SECONDS = 30.0


def record(client: Client, path: str | os.PathLike[str], **settings: Any) -> Recording:
    """Record what a cluster does, until the ``with`` block ends.

    Parameters
    ----------
    client : distributed.Client
        A connected client, synchronous or asynchronous.
    path : path-like
        The trace, on this machine: ``.jsonl``, ``.jsonl.zst`` or ``.jsonl.gz``. An older
        trace of that name is replaced.
    **settings
        Fields of :class:`roast_recorder.settings.Settings`.

    Returns
    -------
    Recording
        A context manager (``async with`` for an asynchronous client), or call its
        ``start()`` and ``stop()``.

    Raises
    ------
    ValueError
        If the path or a setting cannot be used.
    TypeError
        If a setting has no such name, or `client` is no client.
    """
    # Importing distributed takes a second, which `import roast_recorder` need not.
    from distributed import Client

    if not isinstance(client, Client):
        raise TypeError(
            f"record() takes a distributed.Client, not a {type(client).__name__}; "
            "a cluster's is cluster.get_client()"
        )
    return Recording(client, path, Settings.from_keywords(settings))


class Recording:
    """One recording of one cluster into one trace file.

    Attributes
    ----------
    trace_id : str
        Identity of the recording; the header carries it.
    """

    def __init__(
        self, client: Client, path: str | os.PathLike[str], settings: Settings
    ) -> None:
        self.trace_id = uuid.uuid4().hex
        self._client = client
        self._path = os.fspath(path)
        self._settings = settings
        self._writer: Writer | None = None
        self._puller: asyncio.Task[str] | None = None
        self._received = 0
        self._clock_offset_seconds = 0.0

    @property
    def records_by_kind(self) -> Counter[str]:
        """Records in the file so far."""
        return self._file.records_by_kind

    @property
    def dropped_by_kind(self) -> Counter[str]:
        """Records that had to be left out so far."""
        return self._file.dropped_by_kind

    def start(self) -> Any:
        """Attach the recorder.

        Returns
        -------
        Recording or awaitable
            An awaitable of the recording if the client is asynchronous.

        Raises
        ------
        OSError
            If the file cannot be written: said before anything is recorded.
        RuntimeError
            If this recording was started before.
        """
        return self._client.sync(self._start)

    def stop(self) -> Any:
        """Detach the recorder, fetch what is left and close the file.

        Stopping twice, or after the cluster has gone, does nothing more.

        Returns
        -------
        None or awaitable
            An awaitable if the client is asynchronous.
        """
        if not self._client.asynchronous and not self._loop_runs():
            return self._close_without_loop()
        return self._client.sync(self._stop)

    def __enter__(self) -> Self:
        if self._client.asynchronous:
            raise TypeError("an asynchronous client is recorded with 'async with'")
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except Exception:
            # The user's own exception, if there is one, matters more than ours.
            logger.exception("roast: recording %s did not end in order", self._path)

    async def __aenter__(self) -> Self:
        if not self._client.asynchronous:
            raise TypeError("a client that is not asynchronous is recorded with 'with'")
        await self._start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        try:
            await self._stop()
        except Exception:
            logger.exception("roast: recording %s did not end in order", self._path)

    def _loop_runs(self) -> bool:
        loop: Any = self._client.loop
        return loop is not None and loop.asyncio_loop.is_running()

    def _close_without_loop(self) -> None:
        """Close the file of a client that was closed before its recording was stopped."""
        if self._puller is None:
            return
        self._puller = None
        atexit.unregister(self.stop)
        self._file.close_now()
        logger.warning(
            "roast: the client was closed before its recording was stopped; %s ends there",
            self._path,
        )

    # -- on the client's event loop ------------------------------------------------------

    @property
    def _file(self) -> Writer:
        if self._writer is None:
            raise RuntimeError(f"the recording of {self._path!r} has not been started")
        return self._writer

    async def _start(self) -> Recording:
        if self._writer is not None:
            raise RuntimeError(f"the recording of {self._path!r} was started before")
        self._writer = Writer(self._path)
        try:
            await self._attach()
            await self._file.write([await self._header(), *self._client_facts()])
        except BaseException:
            with contextlib.suppress(Exception):
                await self._call("detach", abandon=True)
            await self._file.close()
            self._writer = None
            raise
        self._puller = asyncio.create_task(self._pull_until_the_end())
        if not self._client.asynchronous:
            atexit.register(self.stop)
        logger.info("roast: recording to %s", self._path)
        return self

    async def _attach(self) -> None:
        from roast_recorder.plugin import RecorderPlugin
        from roast_recorder.travel import dumps_by_value

        plugin = RecorderPlugin(self.trace_id, self._client.id, self._settings.as_dict())
        ours, theirs = platform.python_version(), await self._scheduler_python_version()
        same = ours.split(".")[:2] == theirs.split(".")[:2]
        pickled = dumps_by_value(plugin) if same else pickle.dumps(plugin)
        try:
            await self._scheduler.register_scheduler_plugin(
                plugin=pickled, name=plugin.name, idempotent=False
            )
        except ModuleNotFoundError as error:
            raise RuntimeError(
                f"the scheduler runs Python {theirs}, this client {ours}: use the same, or "
                f"install roast-trace on the scheduler ({error})"
            ) from None

    async def _scheduler_python_version(self) -> str:
        versions = await self._scheduler.versions()
        return str(versions["packages"]["python"])

    async def _call(self, operation: str, **arguments: Any) -> Any:
        """Call one of the recorder's operations on the scheduler."""
        from roast_recorder.plugin import operation_name

        function = getattr(self._scheduler, operation_name(operation, self.trace_id))
        return await function(**arguments)

    @property
    def _scheduler(self) -> Any:
        """The scheduler's remote operations.

        Raises
        ------
        OSError
            If the client is not connected.
        """
        if self._client.scheduler is None:
            raise OSError("the client has no scheduler")
        return self._client.scheduler

    def _scheduler_time(self) -> float:
        return time() - self._clock_offset_seconds

    async def _header(self) -> dict[str, Any]:
        from roast_recorder import __version__

        before = time()
        facts = await self._call("hello")
        self._clock_offset_seconds = (before + time()) / 2 - facts["t"]
        return {
            "kind": "header",
            "schema_version": SCHEMA_VERSION,
            "trace_id": self.trace_id,
            "segment": 1,
            "recorder_version": __version__,
            "settings": self._settings.as_dict(),
            "clock_offset_seconds": self._clock_offset_seconds,
            **facts,
        }

    def _client_facts(self) -> list[dict[str, Any]]:
        t = self._scheduler_time()
        return [
            {"kind": "environment", "t": t, "section": section, "name": name, "value": value}
            for section, name, value in environment.client_facts(self._client)
        ]

    async def _pull_until_the_end(self) -> str:
        """Pull and write until the recorder on the scheduler has nothing more.

        Returns
        -------
        str
            How the recording ended; empty if the connection broke before that.
        """
        try:
            while True:
                answer = await self._call("pull", received=self._received)
                await self._take(answer)
                if answer["ending"]:
                    return str(answer["ending"])
        except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on
            logger.warning(
                "roast: the connection to the recorder is lost (%s: %s); %s ends here",
                type(error).__name__,
                error,
                self._path,
            )
            return ""

    async def _take(self, answer: dict[str, Any]) -> None:
        for number, batch in answer["batches"]:
            if number > self._received:
                await self._file.write_batch(bytes(batch))
                self._received = number
        if answer["dropped"]:
            self.dropped_by_kind.update(answer["dropped"])
            await self._file.write(self._losses(answer["dropped"]))

    def _losses(self, dropped: dict[str, int]) -> list[dict[str, Any]]:
        t = self._scheduler_time()
        reason = "not fetched from the scheduler in time, or impossible to encode"
        return [
            {"kind": "loss", "t": t, "reason": reason, "record_kind": kind, "records": records}
            for kind, records in dropped.items()
        ]

    async def _stop(self) -> None:
        if self._puller is None:
            return
        puller, self._puller = self._puller, None
        atexit.unregister(self.stop)
        ending = ""
        try:
            async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                if not puller.done():
                    with contextlib.suppress(OSError):
                        await self._call("detach")
                ending = await puller
            if ending:
                await self._file.write([self._trailer(ending)])
        except TimeoutError:
            puller.cancel()
        finally:
            await self._file.close()
            self._say_how_it_ended(ending)

    def _say_how_it_ended(self, ending: str) -> None:
        whole = ending and not self.dropped_by_kind
        logger.log(
            logging.INFO if whole else logging.WARNING,
            "roast: %s has %d records in %d bytes; %d records were dropped; %s",
            self._path,
            self.records_by_kind.total(),
            self._file.nbytes,
            self.dropped_by_kind.total(),
            ending or "it did not end in order",
        )

    def _trailer(self, ending: str) -> dict[str, Any]:
        return {
            "kind": "trailer",
            "t": self._scheduler_time(),
            "segment": 1,
            "reason": ending,
            "records_by_kind": dict(self.records_by_kind),
            "dropped_by_kind": dict(self.dropped_by_kind),
        }
