"""The client's end of the pipe: batches in, lines in the file out, on a thread of its own.

Decoding, expanding, compressing and writing happen here, one batch at a time and in
order. A file that stops being writable is said once; the run goes on, and what could not
be written is counted.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from roast_recorder import expand, rows
from roast_recorder.sink import FileSink

logger = logging.getLogger("roast_recorder")


class Writer:
    """Writes a trace file without making an event loop wait.

    Parameters
    ----------
    path : path-like
        As :class:`roast_recorder.sink.FileSink` takes it, with the same errors.

    Attributes
    ----------
    dropped_by_kind : Counter
        Records that never reached the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._sink = FileSink(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="roast-writer")
        self._warned = False
        self.dropped_by_kind: Counter[str] = Counter()

    @property
    def records_by_kind(self) -> Counter[str]:
        """Records in the file so far."""
        return self._sink.records_by_kind

    @property
    def nbytes(self) -> int:
        """Size of the file so far, in bytes."""
        return self._sink.nbytes

    async def write_batch(self, batch: bytes) -> None:
        """Write an encoded batch of rows."""
        await self._run(self._write_rows, batch)

    async def write(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records that are none of the scheduler's."""
        await self._run(self._write_records, list(records))

    async def close(self) -> None:
        """Close the file and end the thread."""
        await self._run(self._sink.close)
        self._thread.shutdown(wait=False)

    def close_now(self) -> None:
        """Do the same without an event loop, after what is being written."""
        self._thread.shutdown(wait=True)
        self._sink.close()

    async def _run(self, function: Callable[..., None], *arguments: Any) -> None:
        loop = asyncio.get_running_loop()
        try:
            running = loop.run_in_executor(self._thread, function, *arguments)
        except RuntimeError:
            # The interpreter is shutting down and starts no work on threads any more.
            function(*arguments)
        else:
            await running

    def _write_rows(self, batch: bytes) -> None:
        self._write_records(list(expand.records(rows.decode(batch))))

    def _write_records(self, records: list[dict[str, Any]]) -> None:
        try:
            self._sink.write(records)
        except Exception as error:  # noqa: BLE001 - the run goes on, whatever it is
            self.dropped_by_kind.update(record["kind"] for record in records)
            if not self._warned:
                self._warned = True
                logger.warning(
                    "roast: %s cannot be written (%s); the run goes on, its trace has gaps",
                    self._sink.path,
                    error,
                )
