"""Checksums of a segment and of the imports appended to it.

The trailer of a segment contains a CRC-32 of everything before it, and each import that of its
records. Nothing else reveals a changed digit in a plain file, which is still valid JSON.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.open.damage import Damage
from roast_analyze.open.lines import parse_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roast_analyze.open.block_reader import Lines

#: End of a trailer: the checksum of everything before it.
_STATED: Final = re.compile(rb',"crc32":([0-9]{1,10})\}\r?\Z')


@dataclass
class Checksum:
    """CRC-32 of the part of a segment that has been read."""

    crc32: int = 0  # of everything that has been read
    #: Whether the trailer states the same checksum; None if there is no trailer, or an older
    #: one without a checksum.
    matches: bool | None = None
    awaited_bytes: int = 0  # number of bytes to come that the last import announced
    awaited_crc32: int = 0  # checksum that the last import announced
    imported_crc32: int = 0  # checksum of the bytes of that import read so far
    changed_imports: int = 0  # imports that differ from their announcement

    def add(self, data: memoryview, by_kind: Mapping[str | None, Lines]) -> None:
        """Add the next lines of the segment, which are also given by kind.

        Of several trailers the first counts.
        """
        trailers, imports = (
            [*zip(by_kind[kind].starts.tolist(), by_kind[kind].each(), strict=True)]
            if kind in by_kind
            else []
            for kind in ("trailer", "import")
        )
        offset = self._add_awaited(data, 0)
        for start, line in imports:
            if start < offset:  # an imported record, not an announcement
                continue
            if self.awaited_bytes:
                self.changed_imports += 1
            announced = parse_record(line) or {}
            nbytes, crc32 = announced.get("nbytes"), announced.get("crc32")
            if type(nbytes) is int and type(crc32) is int and nbytes >= 0:
                self.awaited_bytes, self.awaited_crc32 = nbytes, crc32
            else:
                self.awaited_bytes = self.awaited_crc32 = 0
            self.imported_crc32 = 0
            offset = self._add_awaited(data, start + len(line) + 1)  # after the newline
        if self.matches is None and trailers:
            start, line = trailers[0]
            if stated := _STATED.search(line):
                end = start + stated.start()
                self.crc32 = zlib.crc32(data[:end], self.crc32)
                self.matches = self.crc32 == int(stated[1])
                data = data[end:]
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
