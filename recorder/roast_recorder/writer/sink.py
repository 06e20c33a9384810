"""One file of whole lines, readable as it stands after every append.

A plain file holds the lines, a ``.gz`` one member an append. A ``.zst`` is a sequence of
complete frames. Flushes are small and much alike, so a frame is not ended with the flush
that began it: the next one is compressed with what is in the frame already, and its
blocks take the place of the three bytes that ended the frame::

    magic, header, block, block, END
    magic, header, block, block, block, END

Every earlier size of the file is therefore a place where it can be cut back to, once the
three bytes are put there again. An append that fails, a writer that was killed and a full
disk are all answered by that.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zstandard import ZstdCompressionObj

#: Raw bytes after which a zstd frame is left as it is and another one begun.
FRAME_BYTES = 256 * 2**10

#: Raw bytes of one append that are compressed into one frame, so that none grows huge.
PIECE_BYTES = 8 * 2**20


class TraceFile:
    """A file that lines are appended to and that is whole after each append.

    Parameters
    ----------
    path : path-like
        Ends in one of :data:`ENDINGS`. An older trace of that name is replaced at the
        first append, and stays if there is none. What is no regular file (a FIFO, a
        terminal) is written to without seeking, a complete frame an append.
    level : int
        How hard to compress.
    resume_nbytes : int, optional
        Another writer wrote this file and was killed: the file is cut back to this size,
        which its `nbytes` had, and goes on from there.

    Attributes
    ----------
    path : Path
    nbytes : int
        Size of what was appended, as it is on disk, with the end of the last frame.

    Raises
    ------
    ValueError
        If the name has another ending, another recording writes to the file, or the file
        that is to be resumed has not got `resume_nbytes` bytes.
    OSError
        If the file cannot be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        level: int = 6,
        resume_nbytes: int | None = None,
    ) -> None:
        self.path = Path(path)
        self.nbytes = resume_nbytes or 0
        self._encoder = _encoder(self.path, level)
        # Traces hold file names and error texts of the user: nobody else may read them.
        flags = os.O_WRONLY | (0 if self.nbytes else os.O_CREAT)
        self._file = os.fdopen(os.open(self.path, flags, 0o600), "wb", buffering=0)
        self._regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        # Whether the file is known to end with what was appended, and to be ours.
        self._whole = not self._regular
        if self._regular:
            self._begin()

    def append(self, data: bytes) -> None:
        """Append whole lines, which are with the operating system on return.

        Raises
        ------
        OSError
            If the file cannot take them. It then ends as it did before, and a later
            append works once there is room.
        """
        if not data:
            return
        if not self._whole:
            self.give_back(self.nbytes)
        if not self._regular:
            self._encoder.end_frame()
        try:
            overlap, encoded = self._encoder.encode(data)
            self._write(encoded, self.nbytes - overlap)
        except BaseException:
            with contextlib.suppress(OSError):
                self.give_back(self.nbytes)
            raise
        self.nbytes += len(encoded) - overlap

    def give_back(self, nbytes: int) -> None:
        """Take away what was appended since the file had this size.

        Parameters
        ----------
        nbytes : int
            A value that :attr:`nbytes` had.

        Raises
        ------
        OSError
            If the file cannot be changed; the next append tries that again.
        """
        # What the compressor refers back to may be gone, so it must begin anew.
        self._encoder.end_frame()
        if not self._regular:
            return
        self.nbytes = nbytes
        self._whole = False
        descriptor = self._file.fileno()
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, nbytes)
        if nbytes:
            self._write(self._encoder.end, nbytes - len(self._encoder.end))
        self._whole = True

    def close(self) -> None:
        """Close the file; take it away if nothing is in it."""
        if self._file.closed:
            return
        if self.nbytes and not self._whole:
            with contextlib.suppress(OSError):
                self.give_back(self.nbytes)
        if self._regular and not os.fstat(self._file.fileno()).st_size:
            self.path.unlink(missing_ok=True)
        self._file.close()

    def _begin(self) -> None:
        try:
            self._claim()
            if self.nbytes:
                self._resume()
        except BaseException:
            self._file.close()
            raise

    def _claim(self) -> None:
        """Keep other recordings away from the file for as long as it is open."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{str(self.path)!r} is being recorded to; stop that recording, or choose "
                "another name"
            ) from None
        except OSError:
            # Some network file systems have no locks; then nobody is kept away.
            pass

    def _resume(self) -> None:
        found = os.fstat(self._file.fileno()).st_size
        if found < self.nbytes:
            raise ValueError(
                f"{str(self.path)!r} has {found} bytes where {self.nbytes} had been written; "
                "it was changed meanwhile and cannot be gone on with"
            )
        self.give_back(self.nbytes)

    def _write(self, data: bytes, offset: int) -> None:
        descriptor = self._file.fileno()
        rest = memoryview(data)
        while rest:
            if self._regular:
                written = os.pwrite(descriptor, rest, offset)
            else:
                written = os.write(descriptor, rest)
            rest = rest[written:]
            offset += written


class _Plain:
    """Lines as they are.

    Attributes
    ----------
    end : bytes
        What the encoded data always end with, and what the next may overwrite.
    """

    end = b""

    def __init__(self, level: int) -> None:
        self._level = level

    def encode(self, data: bytes) -> tuple[int, bytes]:
        """Encode lines.

        Returns
        -------
        overlap : int
            How many bytes of the file's present end are to be overwritten.
        encoded : bytes
        """
        return 0, data

    def end_frame(self) -> None:
        """Let what comes next be readable without what came before."""


class _Gzip(_Plain):
    """One gzip member at a time."""

    def encode(self, data: bytes) -> tuple[int, bytes]:
        return 0, gzip.compress(data, min(self._level, 9), mtime=0)


class _Zstd(_Plain):
    """Frames that can be extended, because they are ended by hand."""

    #: A last block, raw and empty: no checksum follows it, as the header promises none.
    end = b"\x01\x00\x00"

    def __init__(self, level: int) -> None:
        import zstandard

        super().__init__(level)
        self._flush_block = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        # The size of a frame's content is not known when its header is written.
        self._compressor = zstandard.ZstdCompressor(level=level, write_content_size=False)
        self.end_frame()

    def encode(self, data: bytes) -> tuple[int, bytes]:
        extends = self._frame is not None and self._raw_nbytes < FRAME_BYTES
        overlap = len(self.end) if extends else 0
        return overlap, b"".join(self._extend(piece) for piece in _pieces(data))

    def end_frame(self) -> None:
        self._frame: ZstdCompressionObj | None = None
        self._raw_nbytes = 0

    def _extend(self, piece: bytes) -> bytes:
        if self._raw_nbytes >= FRAME_BYTES:
            self.end_frame()
        if self._frame is None:
            self._frame = self._compressor.compressobj()
        self._raw_nbytes += len(piece)
        return self._frame.compress(piece) + self._frame.flush(self._flush_block) + self.end


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut lines into pieces of about :data:`PIECE_BYTES`, each of whole lines."""
    start = 0
    while len(data) - start > PIECE_BYTES:
        stop = data.find(b"\n", start + PIECE_BYTES - 1) + 1 or len(data)
        yield data[start:stop]
        start = stop
    if start < len(data):
        yield data[start:]


_ENCODERS: dict[str, type[_Plain]] = {".jsonl": _Plain, ".jsonl.zst": _Zstd, ".jsonl.gz": _Gzip}

#: How the name of a trace in one file ends, and thereby how it is compressed.
ENDINGS = tuple(_ENCODERS)


def _encoder(path: Path, level: int) -> _Plain:
    for ending, encoder in _ENCODERS.items():
        if path.name.endswith(ending):
            return encoder(level)
    raise ValueError(
        f"{str(path)!r} is no name for a trace: it must end in {', '.join(ENDINGS)}"
    )
