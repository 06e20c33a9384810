"""Is what a segment holds what was written? Its trailer tells, and each import behind it.

Of a plain file nothing else does: a digit that has become another one is still JSON.
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

#: How the trailer of a segment ends: with the checksum of all that comes before.
_SAID: Final = re.compile(rb',"crc32":([0-9]{1,10})\}\r?\n\Z')


@dataclass
class Checksum:
    """CRC-32 of what was read of a segment.

    Parameters
    ----------
    crc32 : int
        Of all of it so far.
    is_as_said : bool or None
        Whether the trailer says the same; None if there is none, or an older one, which
        does not say it.
    awaited_bytes : int
        What is still to come of what an import announced.
    awaited_crc32, imported_crc32 : int
        Checksum that this import announced, and that of what came of it so far.
    changed_imports : int
        Imports that were not what they announced.
    """

    crc32: int = 0
    is_as_said: bool | None = None
    awaited_bytes: int = 0
    awaited_crc32: int = 0
    imported_crc32: int = 0
    changed_imports: int = 0

    def add(self, data: memoryview, trailers: list[int], imports: list[int]) -> None:
        """Add what comes next.

        Parameters
        ----------
        data : memoryview
            Whole lines.
        trailers, imports : list of int
            Where among them trailers and imports begin. If a file has several trailers, the
            first counts.
        """
        self._add_imported(data, imports)
        if trailers and self.is_as_said is None:
            line = _line(data, trailers[0])
            if said := _SAID.search(line):
                place = trailers[0] + said.start()
                self.crc32 = zlib.crc32(data[:place], self.crc32)
                self.is_as_said = self.crc32 == int(said[1])
                data = data[place:]
        self.crc32 = zlib.crc32(data, self.crc32)

    def import_damage(self) -> Iterator[Damage]:
        """Say what is wrong with the imports."""
        if self.changed_imports:
            detail = "the checksum of what was imported is another one: import it again"
            yield Damage("changed import", None, detail)
        if self.awaited_bytes:
            detail = f"{self.awaited_bytes} bytes of what was imported are missing"
            yield Damage("cut import", None, detail)

    def _add_imported(self, data: memoryview, imports: list[int]) -> None:
        at = self._take(data, 0)
        for place in imports:
            if place < at:  # within what another import announced
                continue
            if self.awaited_bytes:
                self.changed_imports += 1
            line = _line(data, place)
            self.awaited_bytes, self.awaited_crc32 = _announced(line)
            self.imported_crc32 = 0
            at = self._take(data, place + len(line))

    def _take(self, data: memoryview, at: int) -> int:
        """Take what was announced of some data, from a place on; give the place behind it."""
        if not self.awaited_bytes:
            return at
        taken = data[at : at + self.awaited_bytes]
        self.imported_crc32 = zlib.crc32(taken, self.imported_crc32)
        self.awaited_bytes -= len(taken)
        if not self.awaited_bytes and self.imported_crc32 != self.awaited_crc32:
            self.changed_imports += 1
        return at + len(taken)


def _line(data: memoryview, place: int) -> bytes:
    """Give the line that begins at a place, with its end."""
    stop = place
    while stop < len(data):
        piece = bytes(data[stop : stop + 2**16])
        if (newline := piece.find(b"\n")) >= 0:
            return bytes(data[place : stop + newline + 1])
        stop += len(piece)
    return bytes(data[place:])


def _announced(line: bytes) -> tuple[int, int]:
    """Tell size and checksum of what follows an import; nothing, if it does not say them."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return 0, 0
    nbytes, crc32 = record.get("nbytes"), record.get("crc32")
    if type(nbytes) is int and type(crc32) is int and nbytes >= 0:
        return nbytes, crc32
    return 0, 0
