"""Decompression of a file that may be damaged or still growing.

Compressed traces are sequences of independent frames, so the frames around a damaged one can be
read: :class:`Content` yields them and records what it skipped. It reads a file once, from front
to back, up to the size that the file had at the beginning, and holds at most one frame in
memory, or a part of one that is larger than 64 MiB. A file that is still being written can be
read, and continued later.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, field
from io import BufferedReader, FileIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import xxhash
import zstandard

from roast_analyze.open.damage import Damage

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

#: First bytes of a frame, by compression.
MAGIC: Final = {"zstd": b"\x28\xb5\x2f\xfd", "gzip": b"\x1f\x8b\x08"}

#: Last suffix of a file name, by compression.
SUFFIX: Final = {"zstd": ".zst", "gzip": ".gz"}

#: Buffer of a file to decompress.
_BUFFER_BYTES: Final = 2**17

#: Compressed bytes that are decompressed at once: at most 64 MiB of content, since four bytes
#: of zstd can be a block of 128 KiB, and deflate expands by a factor of a thousand.
_STEP_BYTES: Final = {"zstd": 2**11, "gzip": 2**16}

#: Size of a read of plain bytes.
_PLAIN_BYTES: Final = 2**22

#: A frame up to this size is yielded only when it is known to be complete.
_FRAME_BYTES: Final = 2**26

#: Some editors write this in front of UTF-8 text.
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


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


class Piece(NamedTuple):
    """A piece of the decompressed content of a file."""

    data: bytes
    #: Offset in the file after this piece if reading can continue there when the file has
    #: grown: any place in plain text, and the end of each compressed frame but the last.
    end: int | None


@dataclass
class Content:
    """The decompressed content of a file, as an iterable of pieces."""

    file: BufferedReader  # as opened by :func:`open_for_content`
    compression: str  # as returned by :func:`detect_compression`
    start: int  # 0, or the `end` of a piece
    stop: int  # nothing after it is read, even if the file has grown
    breaks: Breaks = field(default_factory=Breaks)  # updated when damage is found
    _digest: xxhash.xxh3_128 = field(default_factory=xxhash.xxh3_128, init=False)
    _digested_bytes: int = field(default=0, init=False)

    @property
    def digest(self) -> str | None:
        """Digest of the file up to `stop`; None if parts of it were not read, or skipped."""
        return self._digest.hexdigest() if self._digested_bytes == self.stop else None

    def __iter__(self) -> Iterator[Piece]:
        self.file.seek(self.start)
        if self.compression == "uncompressed":
            yield from self._plain()
            return
        while (begin := self.file.tell()) < self.stop:
            end = yield from self._frame()
            if end == "complete":
                continue
            following = self._find_frame(begin + 1)
            if end == "cut" and following is None:
                # The end of a growing file is complete when it is read: the recorder extends
                # the last frame by overwriting the end of it.
                if os.fstat(self.file.fileno()).st_size <= self.stop:
                    self.breaks.cut_at = self.stop
            else:
                self.breaks.damaged += 1
                if self.breaks.first_damaged_at is None:
                    self.breaks.first_damaged_at = begin
            self.file.seek(self.stop if following is None else following)

    def _plain(self) -> Iterator[Piece]:
        offset = self.start
        while data := self.file.read(min(_PLAIN_BYTES, self.stop - offset)):
            self._add_to_digest(offset, data)
            text = data if offset else data.removeprefix(_BYTE_ORDER_MARK)
            offset += len(data)
            yield Piece(text, offset)

    def _frame(self) -> Generator[Piece, None, str]:
        """Decompress one frame; return whether it is complete, cut or broken."""
        decompressor: Any = (
            zlib.decompressobj(wbits=31)
            if self.compression == "gzip"
            else zstandard.ZstdDecompressor().decompressobj()
        )
        held: list[bytes] = []
        held_bytes = 0
        try:
            # Nothing is left before `stop` if the file was truncated after it was opened.
            while not decompressor.eof and (
                data := self.file.peek()[: self.stop - self.file.tell()]
            ):
                step = _STEP_BYTES[self.compression]
                for begin in range(0, len(data), step):
                    part = data[begin : begin + step]
                    held.append(decompressor.decompress(part))
                    # The next frame is decompressed from the same buffer.
                    used_bytes = len(part) - len(decompressor.unused_data)
                    self._add_to_digest(self.file.tell(), part[:used_bytes])
                    self.file.seek(used_bytes, os.SEEK_CUR)
                    held_bytes += len(held[-1])
                    if held_bytes > _FRAME_BYTES:
                        yield Piece(b"".join(held), None)
                        held, held_bytes = [], 0
                    if decompressor.eof:
                        break
        except (zlib.error, zstandard.ZstdError):
            end = "broken"
        else:
            end = "complete" if decompressor.eof else "cut"
        if end == "complete":
            offset = self.file.tell()
            # The recorder may extend the last frame of a file.
            yield Piece(b"".join(held), offset if offset < self.stop else None)
        else:
            # The output may end within a line, which must not be joined to what follows.
            yield Piece(b"".join([*held, b"\n"]), None)
        return end

    def _add_to_digest(self, offset: int, data: bytes) -> None:
        if offset == self._digested_bytes:
            self._digest.update(data)
            self._digested_bytes += len(data)

    def _find_frame(self, begin: int) -> int | None:
        """Return the first offset from `begin` on where a frame begins, or None."""
        magic = MAGIC[self.compression]
        self.file.seek(begin)
        before = b""
        while block := self.file.read(min(_PLAIN_BYTES, self.stop - begin)):
            window = before + block
            if (found := window.find(magic)) >= 0:
                return begin - len(before) + found
            begin += len(block)
            # The number can cross the border of two blocks.
            before = window[1 - len(magic) :]
        return None


def open_for_content(path: Path) -> BufferedReader:
    """Open a file with a buffer from which several frames can be decompressed."""
    return BufferedReader(FileIO(path), _BUFFER_BYTES)


def detect_compression(file: BufferedReader, suffix: str) -> str:
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
