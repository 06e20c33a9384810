"""Append-only trace files: plain text, zstd or gzip, readable after every append.

A plain file contains the lines, a ``.gz`` file one member per append, a ``.zst`` file a
sequence of complete frames. Flushes are small and similar, so a zstd frame is not final
when its flush ends: the blocks of the next flush overwrite the three bytes that ended the
frame, and are compressed with the frame's content as their history::

    magic, header, block, block, END
    magic, header, block, block, block, END

Every earlier size of the file is therefore a position to which the file can be cut back,
once the three bytes are restored there. A failed append, a killed writer and a full disk
are all handled by cutting back.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zstandard import ZstdCompressionObj

#: Endings of a trace in one file, which select its compression.
ENDINGS = (".jsonl", ".jsonl.zst", ".jsonl.gz")

#: Uncompressed bytes after which a zstd frame is complete and the next flush begins another.
FRAME_BYTES = 256 * 2**10

#: Uncompressed bytes of one append that go into one frame, which bounds a reader's memory.
PIECE_BYTES = 8 * 2**20

#: Error of an append to a file that has been removed, moved or replaced.
REMOVED = "it was removed or replaced while it was recorded"


class TraceFile:
    """A file of whole lines that is valid after each append.

    An older trace of that name is replaced by the first append, and kept if there is none. A
    file that is not regular (a FIFO, a terminal) is written without seeking, one complete
    frame per append. With `resume_nbytes`, an earlier value of `nbytes`, the file of a writer
    that was killed is cut back to that size and continued.

    A ValueError is raised if another recording writes the file, or if it is smaller than
    `resume_nbytes`; an OSError if it cannot be opened.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, level: int = 6, resume_nbytes: int = 0
    ) -> None:
        self.path = Path(path)
        #: Size of the appended data on disk, with the end of the last frame.
        self.nbytes = resume_nbytes
        self._encoder = _ENCODERS[self.path.suffix](level)
        # Traces hold the user's file names and error messages: private to the user.
        flags = os.O_WRONLY | (0 if resume_nbytes else os.O_CREAT)
        self._file = os.fdopen(os.open(self.path, flags, 0o600), "wb", buffering=0)
        self.regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        # Whether the file has exactly `nbytes` bytes; an older trace is cut by an append.
        self._clean = not self.regular
        try:
            if self.regular:
                self._claim()
        except BaseException:
            self._file.close()
            raise

    def append(self, data: bytes) -> None:
        """Append whole lines; the operating system has them on return.

        After an OSError the file is unchanged, and a later append can succeed.
        """
        if not data:
            return
        if not self._clean:
            self._cut_back()
        if not self.regular:
            self._encoder.end_frame()
        try:
            overlap, encoded = self._encoder.encode(data)
            self._write(encoded, self.nbytes - overlap)
            # The data would be in no file otherwise.
            self._require_in_place()
        except BaseException:
            # If this fails, the next append tries it again.
            with contextlib.suppress(OSError):
                self._cut_back()
            raise
        self.nbytes += len(encoded) - overlap

    def close(self) -> None:
        """Close the file, and remove it if it is empty."""
        if self._file.closed:
            return
        if self.nbytes and not self._clean:
            with contextlib.suppress(OSError):
                self._cut_back()
        if self.regular and not os.fstat(self._file.fileno()).st_size:
            with contextlib.suppress(FileNotFoundError):
                self._require_in_place()
                self.path.unlink()
        self._file.close()

    def _require_in_place(self) -> None:
        """Raise FileNotFoundError if the path was removed or leads to another file."""
        if not self.regular:
            return
        ours = os.fstat(self._file.fileno())
        try:
            found = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError:
            return  # it cannot be examined, which need not affect the open file
        # Some file systems in user space number a file anew while it is open.
        if found and (os.path.samestat(found, ours) or found.st_size == ours.st_size > 0):
            return
        raise FileNotFoundError(errno.ENOENT, REMOVED, str(self.path))

    def _claim(self) -> None:
        """Lock the file, and cut off the incomplete data of a killed writer."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{str(self.path)!r} is being recorded to; stop that recording, or choose "
                "another name"
            ) from None
        except OSError:
            pass  # some network file systems have no locks
        if self.nbytes:
            size = os.fstat(self._file.fileno()).st_size
            if size < self.nbytes:
                raise ValueError(
                    f"{str(self.path)!r} has {size} bytes, but {self.nbytes} were written: "
                    "the file was changed by another program, and the recording cannot continue"
                )
            self._cut_back()

    def _cut_back(self) -> None:
        """Remove everything behind the last complete append."""
        # The compressor may refer to data that is being removed.
        self._encoder.end_frame()
        if self.regular:
            self._clean = False
            # An older trace of this name may be readable by others.
            os.fchmod(self._file.fileno(), 0o600)
            os.ftruncate(self._file.fileno(), self.nbytes)
            if self.nbytes:
                self._write(self._encoder.end, self.nbytes - len(self._encoder.end))
            self._clean = True

    def _write(self, data: bytes, offset: int) -> None:
        descriptor = self._file.fileno()
        rest = memoryview(data)
        while rest:
            if self.regular:
                # A write can be partial, as on a disk that is almost full.
                written = os.pwrite(descriptor, rest, offset)
            else:
                written = os.write(descriptor, rest)
            rest = rest[written:]
            offset += written


class _Plain:
    """Encoder of plain lines, and the interface of all encoders."""

    #: Last bytes of all encoded data, which the next data may overwrite.
    end = b""

    def __init__(self, level: int) -> None:
        self._level = level

    def encode(self, data: bytes) -> tuple[int, bytes]:
        """Return how many bytes at the end of the file to overwrite, and the new bytes."""
        return 0, data

    def end_frame(self) -> None:
        """End the frame, so that later data are independent of earlier data."""


class _Gzip(_Plain):
    """Encoder that writes one gzip member per append."""

    def encode(self, data: bytes) -> tuple[int, bytes]:
        return 0, gzip.compress(data, min(self._level, 9), mtime=0)


class _Zstd(_Plain):
    """Encoder of zstd frames that can be extended: it writes their last block itself."""

    #: A last block, raw and empty. No checksum follows: the frame header declares none.
    end = b"\x01\x00\x00"

    def __init__(self, level: int) -> None:
        import zstandard

        self._flush_block = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        # The size of the content is unknown when the frame header is written.
        self._compressor = zstandard.ZstdCompressor(level=level, write_content_size=False)
        self._frame: ZstdCompressionObj | None = None
        self._frame_nbytes = 0

    def encode(self, data: bytes) -> tuple[int, bytes]:
        extends = self._frame is not None and self._frame_nbytes < FRAME_BYTES
        encoded = b""
        while data:
            if self._frame is None or self._frame_nbytes >= FRAME_BYTES:
                self._frame = self._compressor.compressobj()
                self._frame_nbytes = 0
            # Whole lines: a reader of one frame can parse it.
            stop = data.find(b"\n", PIECE_BYTES - 1) + 1 or len(data)
            piece, data = data[:stop], data[stop:]
            self._frame_nbytes += len(piece)
            encoded += self._frame.compress(piece) + self._frame.flush(self._flush_block)
            encoded += self.end
        return len(self.end) if extends else 0, encoded

    def end_frame(self) -> None:
        self._frame = None


_ENCODERS: dict[str, type[_Plain]] = {".jsonl": _Plain, ".zst": _Zstd, ".gz": _Gzip}
