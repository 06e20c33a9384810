"""Reading content in blocks of whole lines, and grouping the lines of a block by kind.

The recorder writes the kind first in each line. So the lines of a block are grouped by
comparing their first bytes all at once with numpy, and DuckDB then parses the lines of each
kind with only the fields of that kind. Each line is parsed once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from roast_schemas.describe import kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from roast_analyze.open.decompress import Piece

#: No record is longer than this, and DuckDB parses no longer line.
MAX_LINE_BYTES: Final = 16 * 2**20

#: Minimum size of a block. Larger blocks make larger row groups, and take more memory.
BLOCK_BYTES: Final = 64 * 2**20

_NEWLINE: Final = 10
_CARRIAGE_RETURN: Final = 13

#: Bytes before the kind, as written by the recorder and by Python's json.
OPENINGS: Final = (b'{"kind":"', b'{"kind": "')

#: Number of bytes of its name that identify a kind.
_NAME_BYTES: Final = 8

#: Number of bytes at the start of a line that are compared.
_HEAD_BYTES: Final = 32

#: Newlines are searched in pieces of this size, which fit into the processor's cache.
_PIECE_BYTES: Final = 2**20

_NAMES: Final = tuple(kinds())


@dataclass
class Block:
    """Some whole lines.

    Parameters
    ----------
    data : memoryview
        Valid until the third block after it is requested.
    end : int or None
        Offset in the file at which reading can continue after this block.
    too_long : int
        Number of overlong lines that were skipped since the last block.
    """

    data: memoryview
    end: int | None
    too_long: int = 0


def read_blocks(pieces: Iterable[Piece], *, anywhere: bool) -> Iterator[Block]:
    """Join pieces of content into blocks of whole lines.

    An offset at which reading can continue is never inside a block. For example, a frame that
    was cut is not joined with others.

    Parameters
    ----------
    pieces : iterable of Piece
    anywhere : bool
        Whether reading can continue after any line, rather than only where a piece ends.
    """
    buffer = _Buffer(anywhere)
    for piece in pieces:
        if piece.end is None:
            yield from buffer.whole_lines()
        buffer.add(piece)
        if buffer.used >= BLOCK_BYTES:
            yield from buffer.whole_lines()
    yield from buffer.whole_lines()
    yield from buffer.last_line()


class _Buffer:
    """Collects pieces of content until they are long enough for a block.

    Three buffers take turns, so that a block stays valid until the third one after it is
    started: one is being loaded, part of the previous one may still be, and the next is read.
    """

    def __init__(self, anywhere: bool) -> None:
        self._anywhere = anywhere
        self._data = bytearray()
        self._others = deque([bytearray(), bytearray()])
        self._end: int | None = None
        self._skipping = False
        self._too_long = 0
        self.used = 0

    def add(self, piece: Piece) -> None:
        data: bytes | memoryview = piece.data
        self._end = piece.end
        if self._skipping:
            _, newline, rest = bytes(data).partition(b"\n")
            self._skipping = not newline
            data = rest
        if self.used + len(data) >= len(self._data):
            larger = bytearray(max(2 * len(self._data), self.used + len(data) + 1))
            larger[: self.used] = memoryview(self._data)[: self.used]
            self._data = larger  # never resized in place: a block may still refer to it
        self._data[self.used : self.used + len(data)] = data
        self.used += len(data)

    def whole_lines(self) -> Iterator[Block]:
        """Yield a block of the lines that are complete, and keep the rest."""
        cut = self._data.rfind(b"\n", 0, self.used) + 1
        rest = memoryview(self._data)[cut : self.used]
        if len(rest) > MAX_LINE_BYTES:
            self._skipping = True
            self._too_long += 1
            rest = rest[:0]
        if not cut and not self._too_long:
            return
        end = self._end
        if end is not None and (rest or self._skipping):
            end = end - len(rest) if self._anywhere and not self._skipping else None
        yield Block(memoryview(self._data)[:cut], end, self._too_long)
        # Requesting the next block releases the oldest buffer.
        self._others.append(self._data)
        self._data = self._others.popleft()
        if len(self._data) <= len(rest):
            self._data = bytearray(max(len(self._others[-1]), len(rest) + 1))
        self._data[: len(rest)] = rest
        self.used = len(rest)
        self._too_long = 0

    def last_line(self) -> Iterator[Block]:
        """Yield a line without a newline at the end of the content, with one added."""
        if self.used:
            self._data[self.used] = _NEWLINE
            yield Block(memoryview(self._data)[: self.used + 1], None)


@dataclass
class Lines:
    """Some lines of a block, in order.

    Parameters
    ----------
    runs : list of memoryview
        Their bytes; adjacent lines share a run.
    numbers : array of int, shape (lines,)
        Their numbers in the block, from 0.
    nbytes : int
    starts : array of int, shape (lines,)
        Their offsets in the block.
    """

    runs: list[memoryview]
    numbers: NDArray[np.int64]
    nbytes: int
    starts: NDArray[np.int64]


@dataclass
class GroupedLines:
    """The lines of a block by kind.

    Parameters
    ----------
    lines : int
        Number of lines that are not blank, including overlong ones.
    too_long : int
        Number of overlong lines, which are left out.
    by_kind : dict of str or None to Lines
        Lines that begin as records of a kind do; None has all others.
    """

    lines: int
    too_long: int
    by_kind: dict[str | None, Lines]


def group_lines(block: Block) -> GroupedLines:
    """Group the lines of a block by kind."""
    data = np.frombuffer(block.data, np.uint8)
    stops = _newlines(data) + 1
    starts = np.concatenate(([0], stops[:-1])) if len(stops) else stops
    blank = (stops - starts == 1) | ((stops - starts == 2) & (data[starts] == _CARRIAGE_RETURN))
    if blank.any():
        starts, stops = starts[~blank], stops[~blank]
    numbers = np.arange(len(starts))
    long = stops - starts > MAX_LINE_BYTES
    if long.any():
        starts, stops, numbers = starts[~long], stops[~long], numbers[~long]
    codes = _kind_codes(data, starts)
    # Adjacent lines of one kind form a run.
    breaks = np.flatnonzero((np.diff(codes) != 0) | (starts[1:] != stops[:-1])) + 1
    firsts = np.concatenate(([0], breaks))[: len(starts)]
    lasts = np.concatenate((breaks, [len(starts)]))[: len(starts)] - 1
    by_kind: dict[str | None, Lines] = {}
    for code in np.unique(codes):
        is_own = codes[firsts] == code
        begin, end = starts[firsts[is_own]], stops[lasts[is_own]]
        by_kind[_NAMES[code] if code >= 0 else None] = Lines(
            runs=[block.data[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)],
            numbers=numbers[codes == code],
            nbytes=int((end - begin).sum()),
            starts=starts[codes == code],
        )
    skipped = int(long.sum()) + block.too_long
    return GroupedLines(len(blank) - int(blank.sum()) + block.too_long, skipped, by_kind)


def each_line(lines: Lines) -> Iterator[bytes]:
    """Yield lines one by one, without their newlines."""
    for run in lines.runs:
        yield from bytes(run[:-1]).split(b"\n")


def select_lines(lines: Lines, keep: list[bool]) -> Lines:
    """Return some of the lines."""
    if all(keep):
        return lines
    runs = [
        memoryview(line + b"\n")
        for line, wanted in zip(each_line(lines), keep, strict=True)
        if wanted
    ]
    numbers = lines.numbers[np.array(keep, np.bool_)]
    return replace(lines, runs=runs, numbers=numbers, nbytes=sum(map(len, runs)))


def _newlines(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    offsets = range(0, len(data), _PIECE_BYTES)
    found = [np.flatnonzero(data[a : a + _PIECE_BYTES] == _NEWLINE) + a for a in offsets]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _kind_codes(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the index of the kind that each line begins with, or -1."""
    whole = int(np.searchsorted(starts, len(data) - _HEAD_BYTES, "right"))
    if whole < len(starts):
        # Lines at the end of the data are shorter than a head: pad them.
        first = starts[whole]
        end = np.concatenate((data[first:], np.zeros(_HEAD_BYTES, np.uint8)))
        last = _kind_codes(end, starts[whole:] - first)
        return np.concatenate((_kind_codes(data, starts[:whole]), last))
    codes = np.full(len(starts), -1, np.int8)
    if not len(starts):
        return codes
    # A view of the data with a head at every offset, of which those of lines are copied.
    count = len(data) - _HEAD_BYTES + 1
    heads = np.ndarray(count, f"V{_HEAD_BYTES}", data.data, strides=(1,))[starts]
    for opening in OPENINGS:
        opened = _have(heads, opening, 0)
        if not opened.any():
            continue
        for code, name in enumerate(_NAMES):
            start_of_name = f'{name}"'.encode()[:_NAME_BYTES]
            codes[opened & _have(heads, start_of_name, len(opening))] = code
    return codes


def _have(heads: NDArray[np.void], text: bytes, offset: int) -> NDArray[np.bool_]:
    """Return which heads have a text at an offset, compared eight bytes at a time."""
    result = np.ones(len(heads), np.bool_)
    for begin in range(0, len(text), 8):
        part = text[begin : begin + 8]
        mask = np.frombuffer((b"\xff" * len(part)).ljust(8, b"\0"), "<u8")[0]
        wanted = np.frombuffer(part.ljust(8, b"\0"), "<u8")[0]
        words: NDArray[np.uint64] = np.ndarray(
            len(heads), "<u8", heads.data, offset + begin, strides=(_HEAD_BYTES,)
        )
        result &= (words & mask) == wanted
    return result
