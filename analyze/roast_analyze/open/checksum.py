"""Checksums of a segment and of the imports appended to it.

The trailer of a segment contains a CRC-32 of everything before it, and each import that of its
records. Nothing else reveals a changed digit in a plain file, which is still valid JSON.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from roast_analyze.open.damage import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator

#: End of a trailer: the checksum of everything before it.
_STATED: Final = re.compile(rb',"crc32":([0-9]{1,10})\}\r?\n\Z')


@dataclass
class Checksum:
    """CRC-32 of the part of a segment that has been read.

    Parameters
    ----------
    crc32 : int
        Of everything that has been read.
    matches : bool or None
        Whether the trailer states the same checksum; None if there is no trailer, or an
        older one without a checksum.
    awaited_bytes : int
        Number of bytes to come that the last import announced.
    awaited_crc32, imported_crc32 : int
        Checksum that the last import announced, and that of the bytes read so far.
    changed_imports : int
        Imports that differ from their announcement.
    """

    crc32: int = 0
    matches: bool | None = None
    awaited_bytes: int = 0
    awaited_crc32: int = 0
    imported_crc32: int = 0
    changed_imports: int = 0

    def add(self, data: memoryview, trailers: list[int], imports: list[int]) -> None:
        """Add the next bytes of the segment.

        Parameters
        ----------
        data : memoryview
            Whole lines.
        trailers, imports : list of int
            Offsets in `data` of trailers and imports. Of several trailers the first counts.
        """
        self._add_imports(data, imports)
        if trailers and self.matches is None:
            line = _line_at(data, trailers[0])
            if stated := _STATED.search(line):
                offset = trailers[0] + stated.start()
                self.crc32 = zlib.crc32(data[:offset], self.crc32)
                self.matches = self.crc32 == int(stated[1])
                data = data[offset:]
        self.crc32 = zlib.crc32(data, self.crc32)

    def import_damage(self) -> Iterator[Damage]:
        """Yield the damage of imports."""
        if self.changed_imports:
            detail = (
                "the checksum of the imported records does not match: import the file again"
            )
            yield Damage("changed import", None, detail)
        if self.awaited_bytes:
            detail = f"{self.awaited_bytes} bytes of the imported records are missing"
            yield Damage("cut import", None, detail)

    def _add_imports(self, data: memoryview, imports: list[int]) -> None:
        offset = self._add_awaited(data, 0)
        for start in imports:
            if start < offset:  # an imported record, not an announcement
                continue
            if self.awaited_bytes:
                self.changed_imports += 1
            line = _line_at(data, start)
            self.awaited_bytes, self.awaited_crc32 = _parse_announcement(line)
            self.imported_crc32 = 0
            offset = self._add_awaited(data, start + len(line))

    def _add_awaited(self, data: memoryview, offset: int) -> int:
        """Add the awaited bytes from an offset on; return the offset after them."""
        if not self.awaited_bytes:
            return offset
        taken = data[offset : offset + self.awaited_bytes]
        self.imported_crc32 = zlib.crc32(taken, self.imported_crc32)
        self.awaited_bytes -= len(taken)
        if not self.awaited_bytes and self.imported_crc32 != self.awaited_crc32:
            self.changed_imports += 1
        return offset + len(taken)


def _line_at(data: memoryview, start: int) -> bytes:
    """Return the line at an offset, with its newline."""
    stop = start
    while stop < len(data):
        # A memoryview has no find; copying all of a block would take too long.
        piece = bytes(data[stop : stop + 2**16])
        if (newline := piece.find(b"\n")) >= 0:
            return bytes(data[start : stop + newline + 1])
        stop += len(piece)
    return bytes(data[start:])


def _parse_announcement(line: bytes) -> tuple[int, int]:
    """Return the size and the checksum that an import announces, or zeros."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return 0, 0
    nbytes, crc32 = record.get("nbytes"), record.get("crc32")
    if type(nbytes) is int and type(crc32) is int and nbytes >= 0:
        return nbytes, crc32
    return 0, 0
