"""Is what a segment holds what was written? Its trailer tells.

Of a plain file nothing else does: a digit that has become another one is still JSON.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Final

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
    """

    crc32: int = 0
    is_as_said: bool | None = None

    def add(self, data: memoryview, trailer: int | None) -> None:
        """Add what comes next.

        Parameters
        ----------
        data : memoryview
            Whole lines.
        trailer : int, optional
            Where among them the trailer begins. If a file has several, the first counts.
        """
        if trailer is not None and self.is_as_said is None:
            line = bytes(data[trailer:]).partition(b"\n")[0] + b"\n"
            if said := _SAID.search(line):
                before = zlib.crc32(data[: trailer + said.start()], self.crc32)
                self.is_as_said = before == int(said[1])
        self.crc32 = zlib.crc32(data, self.crc32)
