"""A recording without a cluster: the chunks of this process and of the pools it makes.

coffea's IterativeExecutor and FuturesExecutor know no scheduler and no tasks. What is left
of a trace then is chunks, sections and who worked on them, in the same words.

Processes of a pool write what they measured to files of their own in a folder that is
this recording's, a line a chunk, and this process collects it: nothing is lost with a
process that is killed, but the chunk that it was at.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import logging
import os
import platform
import shutil
import socket
import tempfile
import threading
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Self

from roast_recorder import __version__, environment, process
from roast_recorder.coffea.instrumentation import listen, stop_listening
from roast_recorder.coffea.measurement import as_record, loss_of_sections
from roast_recorder.process_state import here
from roast_recorder.scheduler.wire_format import plain
from roast_recorder.writer.client import Writer
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from types import TracebackType

    from roast_recorder.settings import Settings

logger = logging.getLogger("roast_recorder")

#: How long the end of a recording may take before the caller goes on without it.
STOP_TIMEOUT_SECONDS = 30.0


class LocalRecording:
    """One recording of what this process does into one trace.

    Parameters
    ----------
    path : path-like
        As :func:`roast_recorder.record` takes it.
    settings : Settings

    Attributes
    ----------
    trace_id : str
        Identity of the recording; the header carries it.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Settings) -> None:
        self.trace_id = uuid.uuid4().hex
        self._path = os.fspath(path)
        self._settings = settings
        self._writer: Writer | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._name = f"roast-recorder-{self.trace_id}"
        self._spool: Spool | None = None
        self._chunks = 0
        self._workers: set[str] = set()

    @property
    def records_by_kind(self) -> Counter[str]:
        """Records in the trace so far."""
        return self._started.records_by_kind

    @property
    def dropped_by_kind(self) -> Counter[str]:
        """Records that had to be left out so far."""
        return self._started.dropped_by_kind

    @property
    def nbytes(self) -> int:
        """Size of the trace so far."""
        return self._started.nbytes

    @property
    def _started(self) -> Writer:
        if self._writer is None:
            raise RuntimeError(f"the recording of {self._path!r} has not been started")
        return self._writer

    def start(self) -> Self:
        """Begin to listen.

        Raises
        ------
        OSError, ValueError
            If the trace cannot be written: said before anything is recorded.
        RuntimeError
            If this recording was started before.
        """
        if self._writer is not None:
            raise RuntimeError(f"the recording of {self._path!r} was started before")
        self._writer = Writer(self._path, self._header(), self._settings.as_dict())
        self._spool = spool = Spool(self._name)
        self._stopping = threading.Event()
        opened: Future[None] = Future()
        thread = threading.Thread(
            target=lambda: asyncio.run(self._record(spool, opened)),
            name="roast-local",
            daemon=True,
        )
        thread.start()
        try:
            opened.result()
        except BaseException:
            self._stopping.set()
            self._writer = None
            spool.remove()
            raise
        self._thread = thread
        if self._settings.measure_chunks:
            here().carriers[self._name] = spool.carry
            listen(self._name, spool.tell)
        atexit.register(self.stop)
        logger.info("roast: recording to %s", self._path)
        return self

    def stop(self) -> None:
        """Listen no more, and close the trace. Stopping twice does nothing more."""
        thread, spool = self._thread, self._spool
        if thread is None or spool is None or spool.pid != os.getpid():
            return  # not started, or a forked child ends
        self._thread = None
        stop_listening(self._name)
        here().carriers.pop(self._name, None)
        self._stopping.set()
        thread.join(STOP_TIMEOUT_SECONDS)
        atexit.unregister(self.stop)
        spool.remove()
        writer = self._started
        logger.log(
            logging.WARNING if writer.dropped_by_kind else logging.INFO,
            "roast: %s has %d records in %d bytes; %d records were dropped",
            self._path,
            writer.records_by_kind.total(),
            writer.nbytes,
            writer.dropped_by_kind.total(),
        )

    def __enter__(self) -> Self:
        return self.start()

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

    def _header(self) -> dict[str, Any]:
        utc_offset = datetime.now().astimezone().utcoffset()
        return {
            "kind": "header",
            "t": time(),
            "schema_version": SCHEMA_VERSION,
            "trace_id": self.trace_id,
            "versions": {"python": platform.python_version(), "roast-trace": __version__},
            "settings": self._settings.as_told(),
            "clock_offset_seconds": 0.0,
            "utc_offset_seconds": utc_offset.total_seconds() if utc_offset else None,
        }

    # -- in the recording's thread -------------------------------------------------------

    async def _record(self, spool: Spool, opened: Future[None]) -> None:
        writer = self._started
        try:
            await writer.open()
        except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
            opened.set_exception(error)
            return
        opened.set_result(None)
        try:
            await writer.write(self._facts())
            # Nothing else runs on this loop.
            while not self._stopping.wait(self._settings.flush_interval_seconds):
                await self._write(spool)
            await self._write(spool)
            await writer.finish(time(), "recording was stopped")
        except Exception:
            logger.exception("roast: %s ends here; the run goes on", self._path)
            await writer.abandon()

    def _facts(self) -> list[dict[str, Any]]:
        if "environment" not in self._settings.kinds:
            return []
        described = process.describe("client", self._settings.as_dict())
        facts = process.facts_of(*described, process.Sheets()) + [
            {"section": section, "name": name, "value": value}
            for section, name, value in environment.program_facts()
        ]
        t = time()
        return [{"kind": "environment", "t": t, **plain(fact)} for fact in facts]

    async def _write(self, spool: Spool) -> None:
        records = [plain(record) for told in spool.take() for record in self._records(told)]
        if lost := spool.take_lost():
            records.append(_loss_of(lost))
        if records:
            await self._started.write(records)

    def _records(self, told: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Make records of what a process tells, as a scheduler's would be."""
        worker = f"pid:{told['pid']}"
        chunk = told["chunk"]
        parts = [part for part in (chunk, *told["sections"]) if part]
        if worker not in self._workers:
            self._workers.add(worker)
            yield {
                "kind": "worker_added",
                "t": min(part["start_t"] for part in parts),
                "worker": worker,
                "server_id": f"{worker}@{socket.gethostname()}",
                "name": str(told["pid"]),
                "host": socket.gethostname(),
                "pid": told["pid"],
                "nthreads": 1,
            }
        where: dict[str, Any] = {"worker": worker}
        if chunk:
            self._chunks += 1
            where |= {"key": _key_of(chunk), "run_id": self._chunks}
        t = time()
        kinds = self._settings.kinds
        if chunk and "chunk" in kinds:
            yield {"kind": "chunk", "t": t, **as_record(chunk), **where}
        if "section" in kinds:
            where.setdefault("key", "(no chunk)")
            for section in told["sections"]:
                yield {"kind": "section", "t": t, **as_record(section), **where}
            if told["more_sections"]:
                yield {"kind": "loss", "t": t, **loss_of_sections(told)}


def _loss_of(chunks: int) -> dict[str, Any]:
    t = time()
    return {
        "kind": "loss",
        "t": t,
        "reason": "a process of a pool could not write down what it had measured",
        "record_kind": "chunk",
        "records": chunks,
        "start_t": t,
        "stop_t": t,
    }


def _key_of(chunk: dict[str, Any]) -> str:
    """Name a chunk, so that another attempt at it is known as one."""
    entries = f"{chunk.get('entry_start')}-{chunk.get('entry_stop')}"
    parts = (chunk.get("dataset"), chunk.get("filename"), chunk.get("treename"), entries)
    return ":".join(str(part) for part in parts)


class Spool:
    """Where several processes put what they measured, and one takes it.

    Parameters
    ----------
    name : str
        Of the recording.

    Attributes
    ----------
    pid : int
        The process that takes.
    """

    def __init__(self, name: str) -> None:
        self.pid = os.getpid()
        self._name = name
        self._folder = Path(tempfile.mkdtemp(prefix="roast-"))
        self._here: deque[dict[str, Any]] = deque()
        self._offsets: dict[Path, int] = {}
        self._lost = 0

    def tell(self, told: dict[str, Any]) -> None:
        """Put something in, from this process or one that was forked from it."""
        told = {**told, "pid": os.getpid()}
        if told["pid"] == self.pid:
            self._here.append(told)
        else:
            _append_to(self._folder, self._name, told)

    def carry(self, function: Any) -> Carried:
        """Make a function measure in the processes of a pool, too."""
        return Carried(function, self._folder, self._name)

    def take(self) -> Iterator[dict[str, Any]]:
        """Take out what is in."""
        while self._here:
            yield self._here.popleft()
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                content = file.read()
            # A line that is just being written is left for the next time.
            whole = content[: content.rfind(b"\n") + 1]
            self._offsets[path] = self._offsets.get(path, 0) + len(whole)
            for line in whole.splitlines():
                try:
                    told = json.loads(line)
                except ValueError:  # the disk was full, and a part of it is missing
                    self._lost += 1
                else:
                    yield told

    def take_lost(self) -> int:
        """Give how many chunks could not be taken out since this was asked last."""
        lost, self._lost = self._lost, 0
        return lost

    def remove(self) -> None:
        """Leave nothing behind; who puts something in afterwards is told so."""
        shutil.rmtree(self._folder, ignore_errors=True)


class Carried:
    """A function on its way to a pool's processes, which it makes measure.

    Parameters
    ----------
    function : callable
    folder : Path
        Of a spool.
    name : str
        Of its recording.
    """

    def __init__(self, function: Any, folder: Path, name: str) -> None:
        self._function = function
        self._folder = folder
        self._name = name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the function."""
        return self._function(*arguments, **keywords)

    def __reduce__(self) -> tuple[Any, ...]:
        # What is unpickled first happens first: the process listens before coffea's
        # functions are looked up.
        return _arrived, (_Listens(self._folder, self._name), self._function)


class _Listens:
    """Makes the process listen in which it is unpickled."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return _listen_for, (self._folder, self._name)


def _arrived(_listens: None, function: Any) -> Any:
    return function


def _listen_for(folder: Path, name: str) -> None:
    if name not in here().listeners:
        listen(name, functools.partial(_append_to, folder, name))


def _append_to(folder: Path, name: str, told: dict[str, Any]) -> None:
    """Put something into the spool of another process; if that has ended, listen no more."""
    line = json.dumps(plain({**told, "pid": os.getpid()})) + "\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        descriptor = os.open(folder / f"{os.getpid()}.jsonl", flags, 0o600)
    except OSError:
        stop_listening(name)
        return
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
