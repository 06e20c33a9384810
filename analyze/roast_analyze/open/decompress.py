"""Decompression of a file that may be damaged or still growing.

Compressed traces are sequences of independent frames, so the frames around a damaged one can be
read: :class:`Content` yields them and records what it skipped. It reads a file once, from front
to back, up to the size that the file had at the beginning, and holds at most one frame in
memory. A file that is still being written can be read, and continued later.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

import zstandard

from roast_analyze.open.damage import Damage

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

#: First bytes of a frame, by compression.
MAGIC: Final = {"zstd": b"\x28\xb5\x2f\xfd", "gzip": b"\x1f\x8b\x08"}

#: Last suffix of a file name, by compression.
SUFFIX: Final = {"zstd": ".zst", "gzip": ".gz"}

#: Some editors write this in front of UTF-8 text.
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

#: Sizes of a read. A hostile compressed frame can grow by a factor of ten thousand.
_PLAIN_BYTES: Final = 2**22
_COMPRESSED_BYTES: Final = 2**17

#: A frame up to this size is yielded only when it is known to be complete.
_FRAME_BYTES: Final = 2**26


@dataclass
class Breaks:
    """Places where the compression of a file is damaged, or cut off."""

    damaged: int = 0
    first_damaged_at: int | None = None
    cut_at: int | None = None

    def damage(self) -> Iterator[Damage]:
        """Yield the damage of the file."""
        if self.damaged:
            places = "once" if self.damaged == 1 else f"{self.damaged} times, first"
            detail = f"{places} at byte {self.first_damaged_at} of the compressed file"
            yield Damage("damaged compression", None, detail)
        if self.cut_at is not None:
            detail = f"cut off at byte {self.cut_at} of the compressed file"
            yield Damage("damaged compression", None, detail)


@dataclass(frozen=True)
class Piece:
    """A piece of the decompressed content of a file.

    Parameters
    ----------
    data : bytes-like
        Valid until the next piece is requested.
    end : int or None
        Offset in the file after this piece if reading can continue there when the file has
        grown: any place in plain text, and the end of each compressed frame but the last.
    """

    data: bytes | memoryview
    end: int | None


@dataclass
class Content:
    """The decompressed content of a file, as an iterable of pieces.

    Parameters
    ----------
    file : binary file
        Open for reading, seekable.
    compression : str
        As returned by :func:`detect_compression`.
    start : int
        Offset to start at: 0, or the `end` of a :class:`Piece`.
    stop : int
        Offset to stop at, even if the file has grown.
    breaks : Breaks
        Updated when damage is found.
    """

    file: IO[bytes]
    compression: str
    start: int
    stop: int
    breaks: Breaks = field(default_factory=Breaks)

    def __iter__(self) -> Iterator[Piece]:
        self.file.seek(self.start)
        return self._plain() if self.compression == "uncompressed" else self._frames()

    def _plain(self) -> Iterator[Piece]:
        buffer = memoryview(bytearray(_PLAIN_BYTES))
        offset = self.start
        while offset < self.stop:
            read = self.file.readinto(buffer[: self.stop - offset])  # type: ignore[attr-defined]
            if not read:
                return
            skipped = 0
            if offset == 0 and bytes(buffer[: len(_BYTE_ORDER_MARK)]) == _BYTE_ORDER_MARK:
                skipped = len(_BYTE_ORDER_MARK)
            offset += read
            yield Piece(buffer[skipped:read], offset)

    def _frames(self) -> Iterator[Piece]:
        source = _Source(self.file, self.start, self.stop)
        while source.has_more():
            begin = source.offset
            end = yield from self._frame(source)
            if end == "complete":
                continue
            following = source.find(MAGIC[self.compression], begin + 1)
            if end == "cut" and following is None:
                self.breaks.cut_at = self.stop
            else:
                self.breaks.damaged += 1
                if self.breaks.first_damaged_at is None:
                    self.breaks.first_damaged_at = begin
            source.seek(self.stop if following is None else following)

    def _frame(self, source: _Source) -> Generator[Piece, None, str]:
        """Decompress one frame; return whether it is complete, cut or broken."""
        decompressor: Any = (
            zlib.decompressobj(wbits=31)
            if self.compression == "gzip"
            else zstandard.ZstdDecompressor().decompressobj()
        )
        held: list[bytes] = []
        held_bytes = 0
        try:
            while not decompressor.eof and source.has_more():
                held.append(decompressor.decompress(source.read()))
                held_bytes += len(held[-1])
                if held_bytes > _FRAME_BYTES:
                    yield Piece(b"".join(held), None)
                    held, held_bytes = [], 0
        except (zlib.error, zstandard.ZstdError):
            end = "broken"
        else:
            end = "complete" if decompressor.eof else "cut"
        if end == "complete":
            source.seek(source.offset - len(decompressor.unused_data))
            # The recorder extends the last frame of a file by overwriting the end of it.
            yield Piece(b"".join(held), source.offset if source.has_more() else None)
        else:
            # The output may end within a line, which must not be joined to what follows.
            yield Piece(b"".join([*held, b"\n"]), None)
        return end


class _Source:
    """The compressed bytes of a file between two offsets, buffered."""

    def __init__(self, file: IO[bytes], start: int, stop: int) -> None:
        self._file = file
        self._stop = stop
        self._buffer = b""
        self._buffer_offset = start
        self.offset = start

    def has_more(self) -> bool:
        return self.offset < self._stop

    def read(self) -> bytes:
        """Return the next bytes."""
        data = self._buffer[self.offset - self._buffer_offset :]
        if not data:
            self._buffer_offset = self.offset
            self._file.seek(self.offset)
            self._buffer = self._file.read(min(_COMPRESSED_BYTES, self._stop - self.offset))
            data = self._buffer
        if not data:  # the file has been truncated since it was opened
            self._stop = self.offset
        self.offset += len(data)
        return data

    def seek(self, offset: int) -> None:
        if not self._buffer_offset <= offset <= self._buffer_offset + len(self._buffer):
            self._buffer, self._buffer_offset = b"", offset
        self.offset = offset

    def find(self, magic: bytes, begin: int) -> int | None:
        """Return the first offset from `begin` on that has some bytes, or None."""
        self._file.seek(begin)
        before = b""
        while block := self._file.read(min(_PLAIN_BYTES, self._stop - begin)):
            window = before + block
            if (found := window.find(magic)) >= 0:
                return begin - len(before) + found
            begin += len(block)
            before = window[1 - len(magic) :]
        return None


def detect_compression(file: IO[bytes], suffix: str) -> str:
    """Return ``zstd``, ``gzip`` or ``uncompressed``, from the first bytes of a file.

    The suffix of its name is only used if the file was cut within these bytes.
    """
    file.seek(0)
    beginning = file.read(4)
    for name, magic in MAGIC.items():
        is_cut = suffix == SUFFIX[name] and beginning and magic.startswith(beginning)
        if beginning.startswith(magic) or is_cut:
            return name
    return "uncompressed"
