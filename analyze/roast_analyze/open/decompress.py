"""What a file holds, decompressed, as far as it can be read.

Compressed traces are sequences of independent frames, so what comes before and after a
damaged one can be read: :class:`Content` gives it and notes what it left out. It reads a
file once, from the front to the size that it had at the beginning, and holds no more of it
than a frame: a file that is still being written can be read, and gone on with later.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

import zstandard

from roast_analyze.open.damage import Damage

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

#: Name of a compression, and the bytes that a frame of it begins with.
MAGIC: Final = {"zstd": b"\x28\xb5\x2f\xfd", "gzip": b"\x1f\x8b\x08"}

#: What some editors put before a text in UTF-8.
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

#: Plain text is read in pieces of this size, and compressed text in pieces of that one: a
#: hostile frame grows ten thousandfold.
_PLAIN_BYTES: Final = 2**22
_COMPRESSED_BYTES: Final = 2**17

#: A frame that holds no more than this is given when it is known to be whole.
_FRAME_BYTES: Final = 2**26

_WHOLE, _CUT, _BROKEN = "whole", "cut", "broken"


@dataclass
class Breaks:
    """Where the compression of a file is broken: at damage, or because the file was cut."""

    damaged: int = 0
    first_damaged_at: int | None = None
    cut_at: int | None = None

    def note_damage(self, place: int) -> None:
        """Count a frame that makes no sense."""
        self.damaged += 1
        if self.first_damaged_at is None:
            self.first_damaged_at = place

    def damage(self) -> Iterator[Damage]:
        """Say it in words."""
        if self.damaged:
            places = "once" if self.damaged == 1 else f"{self.damaged} times, first"
            detail = f"{places} at byte {self.first_damaged_at} of the compressed file"
            yield Damage("damaged compression", None, detail)
        if self.cut_at is not None:
            detail = f"cut off at byte {self.cut_at} of the compressed file"
            yield Damage("damaged compression", None, detail)


@dataclass(frozen=True)
class Piece:
    """Some of what a file holds.

    Parameters
    ----------
    data : bytes-like
        Valid until the next piece is asked for.
    end : int or None
        Place in the file up to which everything has now been given, if reading can begin
        again there when the file has grown; of plain text it can anywhere, of compressed text
        behind each frame but the last one.
    """

    data: bytes | memoryview
    end: int | None


@dataclass
class Content:
    """What a file holds, from a place on.

    Parameters
    ----------
    file : binary file
        Open for reading, seekable.
    compression : str
        As :func:`compression_of` tells it.
    start : int
        Place to begin at: 0, or where a :class:`Piece` ended.
    stop : int
        Place to end at, though the file may have grown since.
    breaks : Breaks
        Where the compression turns out to be broken is noted here.
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
        room = memoryview(bytearray(_PLAIN_BYTES))
        place = self.start
        while place < self.stop:
            read = self.file.readinto(room[: self.stop - place])  # type: ignore[attr-defined]
            if not read:
                return
            skipped = 0
            if place == 0 and bytes(room[: len(_BYTE_ORDER_MARK)]) == _BYTE_ORDER_MARK:
                skipped = len(_BYTE_ORDER_MARK)
            place += read
            yield Piece(room[skipped:read], place)

    def _frames(self) -> Iterator[Piece]:
        source = _Source(self.file, self.start, self.stop)
        while source.more():
            begin = source.place
            end = yield from self._frame(source)
            if end == _WHOLE:
                continue
            following = source.find(MAGIC[self.compression], begin + 1)
            if end == _CUT and following is None:
                self.breaks.cut_at = self.stop
            else:
                self.breaks.note_damage(begin)
            source.go_to(self.stop if following is None else following)

    def _frame(self, source: _Source) -> Generator[Piece, None, str]:
        """Decompress one frame; return how it ended."""
        decompressor = _decompressor(self.compression)
        held: list[bytes] = []
        held_bytes = 0
        try:
            while not decompressor.eof and source.more():
                held.append(decompressor.decompress(source.take()))
                held_bytes += len(held[-1])
                if held_bytes > _FRAME_BYTES:
                    yield Piece(b"".join(held), None)
                    held, held_bytes = [], 0
        except (zlib.error, zstandard.ZstdError):
            end = _BROKEN
        else:
            end = _WHOLE if decompressor.eof else _CUT
        if end == _WHOLE:
            source.go_to(source.place - len(decompressor.unused_data))
            # The recorder extends the last frame of a file: it writes over the end of it.
            yield Piece(b"".join(held), source.place if source.more() else None)
        else:
            # Half a line may have come out: what follows must not be glued to it.
            yield Piece(b"".join([*held, b"\n"]), None)
        return end


class _Source:
    """The compressed bytes of a file between two places."""

    def __init__(self, file: IO[bytes], start: int, stop: int) -> None:
        self._file = file
        self._stop = stop
        self._read_bytes = b""  # what was read at `_read_place`
        self._read_place = start
        self.place = start

    def more(self) -> bool:
        return self.place < self._stop

    def take(self) -> bytes:
        """Give what comes next, and step behind it."""
        taken = self._read_bytes[self.place - self._read_place :]
        if not taken:
            self._read_place = self.place
            self._file.seek(self.place)
            self._read_bytes = self._file.read(min(_COMPRESSED_BYTES, self._stop - self.place))
            taken = self._read_bytes
        if not taken:  # the file has become shorter meanwhile
            self._stop = self.place
        self.place += len(taken)
        return taken

    def go_to(self, place: int) -> None:
        if not self._read_place <= place <= self._read_place + len(self._read_bytes):
            self._read_bytes, self._read_place = b"", place
        self.place = place

    def find(self, magic: bytes, begin: int) -> int | None:
        """Find the next place with some bytes."""
        self._file.seek(begin)
        before = b""
        while block := self._file.read(min(_PLAIN_BYTES, self._stop - begin)):
            window = before + block
            if (found := window.find(magic)) >= 0:
                return begin - len(before) + found
            begin += len(block)
            before = window[1 - len(magic) :]
        return None


def compression_of(file: IO[bytes]) -> str:
    """Tell by its first bytes how a file is compressed.

    Returns
    -------
    str
        ``zstd``, ``gzip`` or ``uncompressed``.
    """
    file.seek(0)
    beginning = file.read(4)
    return next(
        (name for name, magic in MAGIC.items() if beginning.startswith(magic)), "uncompressed"
    )


def _decompressor(compression: str) -> Any:
    if compression == "gzip":
        return zlib.decompressobj(wbits=31)
    return zstandard.ZstdDecompressor().decompressobj()
