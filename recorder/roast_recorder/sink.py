"""The file: records in, whole lines or whole compressed frames out.

A block of records is encoded, compressed by itself and written with one call, so a file
that is cut at any moment loses its last block and no more.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson

Record = dict[str, Any]

#: How each kind of file is compressed, by the end of its name.
ENDINGS = (".jsonl", ".jsonl.zst", ".jsonl.gz")


class FileSink:
    """Writes records to one trace file.

    Parameters
    ----------
    path : path-like
        Ends in ``.jsonl``, ``.jsonl.zst`` or ``.jsonl.gz``. An older trace of that name is
        replaced once there is something to write, and not if recording never begins.

    Attributes
    ----------
    path : Path
    records_by_kind : Counter
        Records written so far.
    nbytes : int
        Bytes written so far, as they are on disk.

    Raises
    ------
    ValueError
        If the name has another ending, or another recording writes to the file.
    OSError
        If the file cannot be created.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._compress = _compressor(self.path)
        self.records_by_kind: Counter[str] = Counter()
        self.nbytes = 0
        # Traces hold file names and error texts of the user: nobody else may read them.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if self._regular:
            self._claim()

    def write(self, records: Iterable[Record]) -> None:
        """Write records as one block, which is with the operating system on return.

        Raises
        ------
        OSError
            If the file cannot take it; the file then ends with its last whole block.
        """
        counts: Counter[str] = Counter()
        lines = bytearray()
        for record in records:
            lines += _line(record)
            counts[record["kind"]] += 1
        if lines:
            if self._regular and not self.nbytes:
                self._file.truncate(0)
                os.fchmod(self._file.fileno(), 0o600)
            self._write_whole(self._compress(bytes(lines)))
            self.records_by_kind += counts

    def close(self) -> None:
        """Close the file; take it away if nothing was ever in it."""
        if self._regular and not os.fstat(self._file.fileno()).st_size:
            self.path.unlink(missing_ok=True)
        self._file.close()

    def _claim(self) -> None:
        """Keep other recordings away from the file for as long as it is open."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(
                f"{str(self.path)!r} is being recorded to; stop that recording, or choose "
                "another name"
            ) from None
        except OSError:
            # Some network file systems have no locks; then nobody is kept away.
            pass

    def _write_whole(self, block: bytes) -> None:
        written = 0
        try:
            while written < len(block):
                written += self._file.write(block[written:]) or 0
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(self.nbytes)
                self._file.seek(self.nbytes)
            raise
        self.nbytes += len(block)


def _line(record: Record) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _compressor(path: Path) -> Callable[[bytes], bytes]:
    ending = "".join(path.suffixes[-2:]) if path.suffix in (".zst", ".gz") else path.suffix
    if ending == ".jsonl":
        return bytes
    if ending == ".jsonl.zst":
        import zstandard

        return zstandard.ZstdCompressor(level=3).compress
    if ending == ".jsonl.gz":
        return gzip.compress
    raise ValueError(
        f"{str(path)!r} is no name for a trace: it must end in {', '.join(ENDINGS)}"
    )
