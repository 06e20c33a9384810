"""What can still be read of a file that DuckDB refuses as a whole.

DuckDB gives up on a damaged zstd frame, on a gzip file that was cut, and on a line longer
than its buffer. Compressed traces are sequences of independent frames, so everything
before and after the damage can be read: :func:`salvage` writes it to a plain file and says
what it left out.
"""

from __future__ import annotations

import mmap
import zlib
from contextlib import closing
from typing import IO, TYPE_CHECKING, Any, Final

import zstandard

from roast_analyze.damage import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: DuckDB's name of a compression, and the bytes that a frame of it begins with.
MAGIC: Final = {"zstd": b"\x28\xb5\x2f\xfd", "gzip": b"\x1f\x8b\x08"}

#: No record is as long as this; DuckDB reads no line that is much longer.
MAX_LINE_BYTES: Final = 16 * 2**20

#: What some editors put before a text in UTF-8.
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_BLOCK_BYTES: Final = 2**20

#: In place of where a frame ends: it makes no sense, or goes on beyond the file.
_BROKEN: Final = -1
_CUT: Final = -2


def compression_of(path: Path) -> str:
    """Tell by its first bytes how a file is compressed.

    Returns
    -------
    str
        ``zstd``, ``gzip`` or ``uncompressed``.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with path.open("rb") as file:
        beginning = file.read(4)
    return next(
        (name for name, magic in MAGIC.items() if beginning.startswith(magic)), "uncompressed"
    )


def begins_with_mark(path: Path) -> bool:
    """Tell whether a file begins with a byte-order mark, which :func:`salvage` leaves out.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with path.open("rb") as file:
        return file.read(len(_BYTE_ORDER_MARK)) == _BYTE_ORDER_MARK


def salvage(path: Path, target: Path) -> list[Damage]:
    """Write the lines of a damaged file that can be read to a plain file.

    Parameters
    ----------
    path : Path
        A file that is not empty.
    target : Path
        Written over.

    Returns
    -------
    list of Damage
        What was left out.

    Raises
    ------
    OSError
        If one cannot be read or the other cannot be written.
    """
    compression = compression_of(path)
    damaged_at: list[int] = []
    cut_at: list[int] = []
    with path.open("rb") as file, target.open("wb") as out:
        lines = _LineFilter(out)
        with closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as data:
            for block in _content(data, compression, damaged_at, cut_at):
                lines.write(block)
        lines.end()
    return [*_damaged_compression(damaged_at, cut_at), *_overlong_lines(lines.too_long)]


def _damaged_compression(damaged_at: list[int], cut_at: list[int]) -> Iterator[Damage]:
    if damaged_at:
        places = "once" if len(damaged_at) == 1 else f"{len(damaged_at)} times, first"
        detail = f"{places} at byte {damaged_at[0]} of the compressed file"
        yield Damage("damaged compression", None, detail)
    for place in cut_at:
        yield Damage(
            "damaged compression", None, f"cut off at byte {place} of the compressed file"
        )


def _overlong_lines(count: int) -> Iterator[Damage]:
    if count:
        detail = f"longer than {MAX_LINE_BYTES // 2**20} MiB, which no record is"
        yield Damage("overlong lines", count, detail)


class _LineFilter:
    """Passes lines on, but for those that are too long, which it counts."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._line = bytearray()
        self._skipping = False
        self.too_long = 0

    def write(self, block: bytes) -> None:
        *whole, rest = block.split(b"\n")
        for part in whole:
            self._add(part)
            self.end()
        self._add(rest)

    def end(self) -> None:
        """End the current line."""
        if self._line:
            self._out.write(self._line + b"\n")
        self._line.clear()
        self._skipping = False

    def _add(self, part: bytes) -> None:
        if self._skipping:
            return
        self._line += part
        if len(self._line) > MAX_LINE_BYTES:
            self._line.clear()
            self._skipping = True
            self.too_long += 1


def _content(
    data: mmap.mmap, compression: str, damaged_at: list[int], cut_at: list[int]
) -> Iterator[bytes]:
    """Give what a file holds, in blocks; note where its compression is damaged or cut off."""
    if compression == "uncompressed":
        marked = data[: len(_BYTE_ORDER_MARK)] == _BYTE_ORDER_MARK
        for begin in range(len(_BYTE_ORDER_MARK) * marked, len(data), _BLOCK_BYTES):
            yield data[begin : begin + _BLOCK_BYTES]
        return
    begin = 0
    while 0 <= begin < len(data):
        end = yield from _frame(data, begin, compression)
        if end in (_BROKEN, _CUT):
            # Half a line may have come out: what follows must not be glued to it.
            yield b"\n"
            following = data.find(MAGIC[compression], begin + 1)
            if end == _CUT and following < 0:
                cut_at.append(len(data))
            else:
                damaged_at.append(begin)
            end = following
        begin = end


def _frame(data: mmap.mmap, begin: int, compression: str) -> Any:
    """Decompress one frame; return where it ends, or how it is not whole."""
    decompressor = _decompressor(compression)
    position = begin
    try:
        while not decompressor.eof and position < len(data):
            yield decompressor.decompress(data[position : position + _BLOCK_BYTES])
            position += _BLOCK_BYTES
    except (zlib.error, zstandard.ZstdError):
        return _BROKEN
    if not decompressor.eof:
        return _CUT
    return min(position, len(data)) - len(decompressor.unused_data)


def _decompressor(compression: str) -> Any:
    if compression == "gzip":
        return zlib.decompressobj(wbits=31)
    return zstandard.ZstdDecompressor().decompressobj()
