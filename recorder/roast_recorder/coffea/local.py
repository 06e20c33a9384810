"""Record without a cluster: the chunks of this process and of the pools that it creates.

coffea's IterativeExecutor and FuturesExecutor have no scheduler and no tasks, so the trace
contains chunks, sections and the processes that worked on them, in the usual records.

Processes of a pool write each chunk to a file in the recording's own folder, where this
process collects it. That works for processes however they were started, and a process that
is killed loses only the chunk that it was processing.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import logging
import os
import shutil
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import time, time_ns
from typing import TYPE_CHECKING, Any, Self

from roast_recorder.coffea.instrumentation import add_listener, remove_listener
from roast_recorder.header import header, header_facts
from roast_recorder.probes import part_of
from roast_recorder.process_state import here
from roast_recorder.scheduler.wire_format import loss, plain
from roast_recorder.writer.client import TraceOwner, Writer

if TYPE_CHECKING:
    from roast_recorder.coffea.measurement import Fields, Records
    from roast_recorder.settings import Settings

logger = logging.getLogger("roast_recorder")

#: How long :meth:`LocalRecording.stop` waits for the trace to be completed.
STOP_TIMEOUT_SECONDS = 30.0

#: Maximum number of chunks of this process, and of sections outside of chunks, that wait to be
#: written.
MAX_PENDING = 100_000


class LocalRecording(TraceOwner):
    """One recording of this process and its pools into one trace."""

    def __init__(self, path: str | os.PathLike[str] | None, settings: Settings) -> None:
        super().__init__(path, settings)
        self._name = f"roast-recorder-{self.trace_id}"
        self._spool: Spool | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._ending = ""  # how recording ended, if that was written
        self._chunks = 0
        self._workers: set[int] = set()

    def start(self) -> Self:
        """Start recording.

        Raises
        ------
        OSError, ValueError
            If the trace cannot be written.
        RuntimeError
            If this recording was already started.
        """
        if self._writer is not None:
            raise RuntimeError(f"the recording of {self.path!r} was already started")
        about = header(self.trace_id, self.settings, header_facts())
        writer = Writer(self.path, about, self.settings.as_dict())
        # In threads, because an event loop may be running in this one, as in a notebook.
        with ThreadPoolExecutor(1) as opener:
            opener.submit(asyncio.run, writer.open()).result()
        self._writer, spool = writer, Spool(self._name)
        self._spool = spool
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._record(writer, spool)),
            name="roast-local",
            daemon=True,
        )
        self._thread.start()
        if self.settings.measure_chunks:
            here().carriers[self._name] = spool.carry
            add_listener(self._name, spool.put)
        atexit.register(self.stop)
        logger.info("roast: recording to %s", self.path)
        return self

    def stop(self) -> None:
        """Stop recording and close the trace. Further calls have no effect."""
        thread, spool = self._thread, self._spool
        if thread is None or spool is None or spool.pid != os.getpid():
            return  # not started, or a forked child ends
        self._thread = None
        remove_listener(self._name)
        here().carriers.pop(self._name, None)
        self._stopping.set()
        thread.join(STOP_TIMEOUT_SECONDS)
        atexit.unregister(self.stop)
        spool.remove()
        writer = self._started
        writer.log_end(self._ending)
        self._report_end()

    def __enter__(self) -> Self:
        return self.start()

    # -- in the recording's thread -------------------------------------------------------

    async def _record(self, writer: Writer, spool: Spool) -> None:
        try:
            if "environment" in self.settings.kinds:
                await writer.write(self._environment())
            stopping = False
            while not stopping:
                # Blocking, because nothing else runs on this event loop.
                stopping = self._stopping.wait(self.settings.flush_interval_seconds)
                records = [record for part in spool.take() for record in self._records(*part)]
                if stopping:
                    records += spool.losses()
                if records:
                    await writer.write([plain(record) for record in records])
            await writer.finish(time(), self._end_reason)
            self._ending = self._end_reason
        except Exception:
            logger.exception("roast: %s ends here; the run continues", self.path)
            await writer.abandon()

    def _environment(self) -> list[Fields]:
        """Return the facts of this process, or their loss."""
        t = time()
        try:
            facts = part_of("environment", "client_facts")(self.settings)
        except Exception as error:  # noqa: BLE001 - as any probe, it fails alone
            reason = f"the process cannot be described: {type(error).__name__}: {error}"
            return [{"kind": "loss", "t": t, **loss(reason, "environment", 0, t, t)}]
        return [{"kind": "environment", "t": t, **fact} for fact in facts]

    def _records(self, pid: int, measured: Records) -> Iterator[Fields]:
        """Complete the records of one chunk as a scheduler would."""
        worker = f"pid:{pid}"
        if pid not in self._workers:
            self._workers.add(pid)
            host = socket.gethostname()
            yield {
                "kind": "worker_added",
                "t": min(fields["start_t"] for _, fields in measured),
                "worker": worker,
                "server_id": f"{worker}@{host}",
                "name": str(pid),
                "host": host,
                "pid": pid,
                "nthreads": 1,
            }
        attempt: Fields = {"worker": worker, "key": "(no chunk)"}
        kind, first = measured[0]
        if kind == "chunk":
            self._chunks += 1
            # Another attempt at the chunk has the same key. A secret in a name ends at its
            # quote, so the keys of other chunks remain different.
            about = ("dataset", "filename", "treename", "entry_start", "entry_stop")
            attempt["key"] = str(tuple(map(first.get, about)))
            attempt["run_id"] = self._chunks
        t = time()
        for kind, fields in measured:
            if kind == "loss":
                yield {"kind": kind, "t": t, **fields}
            elif kind in self.settings.kinds:
                yield {"kind": kind, "t": t, **fields, **attempt}


class Spool:
    """Records measured in several processes, collected by the one that created it.

    Each chunk of another process is a file, which is renamed when it is complete and removed
    when it has been collected.
    """

    def __init__(self, name: str) -> None:
        self.pid = os.getpid()
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix="roast-"))
        self._pending: deque[Records] = deque()
        self._dropped = 0

    def put(self, records: Records) -> None:
        """Add records of this process, or of one that was forked from it."""
        if os.getpid() != self.pid:
            _write(self.folder, self.name, records)
        elif len(self._pending) < MAX_PENDING:
            self._pending.append(records)
        else:
            self._dropped += 1

    def take(self) -> Iterator[tuple[int, Records]]:
        """Yield the process and the records of each chunk, and remove them."""
        while self._pending:
            yield self.pid, self._pending.popleft()
        for path in sorted(self.folder.glob("*.json")):
            pid, records = json.loads(path.read_bytes())
            path.unlink()
            yield pid, records

    def losses(self) -> Iterator[Fields]:
        """Yield ``loss`` records of what cannot be collected."""
        # A process that was killed, or a full disk, leaves a file with its first name.
        incomplete = len(list(self.folder.glob("*.incomplete")))
        t = time()
        for reason, chunks in (
            ("a process of a pool could not write a chunk", incomplete),
            ("a recording's buffer was full", self._dropped),
        ):
            if chunks:
                yield {"kind": "loss", "t": t, **loss(reason, "chunk", chunks, t, t)}

    def carry(self, function: Any) -> Any:
        """Return a function that measures in any process in which it is called."""
        return functools.partial(_call, _Listener(self.folder, self.name), function)

    def remove(self) -> None:
        """Remove the folder. Processes that write later remove their listener."""
        shutil.rmtree(self.folder, ignore_errors=True)


class _Listener:
    """Adds a listener to each process that unpickles it.

    What follows it in the pickle is unpickled when the functions that it refers to are patched.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._spool = folder, name

    def __reduce__(self) -> tuple[Any, ...]:
        return _listen, self._spool


def _listen(folder: Path, name: str) -> _Listener:
    if name not in here().listeners:
        add_listener(name, functools.partial(_write, folder, name))
    return _Listener(folder, name)


def _call(_listener: _Listener, function: Any, *arguments: Any, **keywords: Any) -> Any:
    return function(*arguments, **keywords)


def _write(folder: Path, name: str, records: Records) -> None:
    """Write records to the spool of another process; stop listening if it is gone."""
    pid = os.getpid()
    path = folder / f"{time_ns()}-{pid}-{threading.get_ident()}.incomplete"
    text = json.dumps(plain([pid, records]))
    try:
        path.write_text(text, encoding="utf-8")
        path.rename(path.with_suffix(".json"))
    except FileNotFoundError:
        remove_listener(name)
