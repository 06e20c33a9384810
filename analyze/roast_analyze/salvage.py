"""What can still be read of a file that DuckDB refuses as a whole.

DuckDB gives up on a damaged zstd frame, on a gzip file that was cut, and on a line longer
than its buffer. Compressed traces are sequences of independent frames, so everything
before and after the damage can be read: :func:`salvage` writes it to a plain file and says
what it left out.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any, Final

#: DuckDB's name of a compression, and the bytes that a frame of it begins with.
MAGIC: Final = {"zstd": b"\x28\xb5\x2f\xfd", "gzip": b"\x1f\x8b\x08"}

#: No record is as long as this; DuckDB does not read longer lines.
MAX_LINE_BYTES: Final = 16 * 2**20

_BLOCK_BYTES: Final = 2**20


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


def salvage(path: Path, target: Path) -> list[tuple[str, int | None, str]]:
    """Write the lines of a damaged file that can be read to a plain file.

    Parameters
    ----------
    path : Path
    target : Path
        Written over.

    Returns
    -------
    list of (str, int or None, str)
        Reason, records and detail of what was left out.
    """
    compression = compression_of(path)
    damaged_at: list[int] = []
    with path.open("rb") as file, target.open("wb") as out:
        lines = _LineFilter(out)
        if compression == "uncompressed":
            for block in iter(lambda: file.read(_BLOCK_BYTES), b""):
                lines.write(block)
        else:
            with closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as data:
                for block in _frames(data, compression, damaged_at):
                    lines.write(block)
        lines.end()
    found: list[tuple[str, int | None, str]] = []
    if damaged_at:
        places = f"{len(damaged_at)} places, the first" if len(damaged_at) > 1 else "one place,"
        detail = f"in {places} at byte {damaged_at[0]} of the compressed file"
        found.append(("damaged compression", None, detail))
    if lines.too_long:
        detail = f"longer than {MAX_LINE_BYTES // 2**20} MiB, which no record is"
        found.append(("overlong lines", lines.too_long, detail))
    return found


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


def _frames(data: mmap.mmap, compression: str, damaged_at: list[int]) -> Iterator[bytes]:
    """Decompress frame after frame; after a damaged one, go on at the next that is whole."""
    begin = 0
    while begin < len(data):
        decompressor = _decompressor(compression)
        position = begin
        try:
            while not decompressor.eof and position < len(data):
                yield decompressor.decompress(data[position : position + _BLOCK_BYTES])
                position += _BLOCK_BYTES
        except _errors(compression):
            decompressor = None
        if decompressor is not None and decompressor.eof:
            begin = min(position, len(data)) - len(decompressor.unused_data)
            continue
        damaged_at.append(begin)
        yield b"\n"
        following = data.find(MAGIC[compression], begin + 1)
        if following < 0:
            return
        begin = following


def _decompressor(compression: str) -> Any:
    if compression == "gzip":
        return zlib.decompressobj(wbits=31)
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


def _errors(compression: str) -> Any:
    if compression == "gzip":
        return zlib.error
    import zstandard

    return zstandard.ZstdError
