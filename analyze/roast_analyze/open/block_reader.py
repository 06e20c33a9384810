"""Content into whole lines, and lines by the kind of their record.

A trace is read in blocks of some ten megabytes. The kind of nearly every line stands in its
first bytes, where the recorder writes it: a block is taken apart by looking at those bytes
of all its lines at once (numpy), and DuckDB then reads the lines of a kind with the fields
of that kind alone, each line once.
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

#: No record is as long as this; DuckDB reads no line that is longer.
MAX_LINE_BYTES: Final = 16 * 2**20

#: So much is read at a time. Larger blocks make larger row groups, and more memory.
BLOCK_BYTES: Final = 64 * 2**20

_NEWLINE: Final = 10
_CARRIAGE_RETURN: Final = 13

#: What stands before the kind in a line: as the recorder writes it, and as Python's json does.
OPENINGS: Final = (b'{"kind":"', b'{"kind": "')

#: So many bytes from the beginning of its name on tell a kind from all others.
_NAME_BYTES: Final = 8

#: What is looked at of a line reaches no further than this.
_HEAD_BYTES: Final = 32

#: Newlines are looked for in so much at a time.
_PIECE_BYTES: Final = 2**20


@dataclass
class Block:
    """Some whole lines, of which none is too long.

    Parameters
    ----------
    data : memoryview
        Valid until the third block after it is asked for.
    end : int or None
        Place in the file at which reading can begin again after this block.
    too_long : int
        Lines that were left out since the last block for being too long.
    """

    data: memoryview
    end: int | None
    too_long: int = 0


def blocks(pieces: Iterable[Piece], anywhere: bool) -> Iterator[Block]:
    """Put pieces of content together to blocks of whole lines.

    A place from which reading can begin again is never within a block: a frame that was
    cut, say, comes in a block of its own.

    Parameters
    ----------
    pieces : iterable of Piece
    anywhere : bool
        Reading can begin again at any line, not just where a piece ends.
    """
    room = _Room(anywhere)
    for piece in pieces:
        if piece.end is None:
            yield from room.whole_lines()
        room.add(piece)
        if room.used >= BLOCK_BYTES:
            yield from room.whole_lines()
    yield from room.whole_lines()
    yield from room.last_line()


class _Room:
    """Where pieces of content wait until there are enough of them.

    There are three buffers in turn, so that a block is good until the third one after it is
    begun: while one is being loaded, and something is left to do of the one before it, the
    next one can be read.
    """

    def __init__(self, anywhere: bool) -> None:
        self._anywhere = anywhere
        self._buffer = bytearray()
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
        if self.used + len(data) >= len(self._buffer):
            larger = bytearray(max(2 * len(self._buffer), self.used + len(data) + 1))
            larger[: self.used] = memoryview(self._buffer)[: self.used]
            self._buffer = larger  # never resized: somebody may still look at it
        self._buffer[self.used : self.used + len(data)] = data
        self.used += len(data)

    def whole_lines(self) -> Iterator[Block]:
        cut = self._buffer.rfind(b"\n", 0, self.used) + 1
        rest = memoryview(self._buffer)[cut : self.used]
        if len(rest) > MAX_LINE_BYTES:
            self._skipping = True
            self._too_long += 1
            rest = rest[:0]
        if not cut and not self._too_long:
            return
        end = self._end
        if end is not None and (rest or self._skipping):
            end = end - len(rest) if self._anywhere and not self._skipping else None
        yield Block(memoryview(self._buffer)[:cut], end, self._too_long)
        # Only now, when nobody looks at the last block but one any more, is its buffer free.
        self._others.append(self._buffer)
        self._buffer = self._others.popleft()
        if len(self._buffer) <= len(rest):
            self._buffer = bytearray(max(len(self._others[-1]), len(rest) + 1))
        self._buffer[: len(rest)] = rest
        self.used = len(rest)
        self._too_long = 0

    def last_line(self) -> Iterator[Block]:
        """Give what has no newline behind it, as if it had one."""
        if self.used:
            self._buffer[self.used] = _NEWLINE
            yield Block(memoryview(self._buffer)[: self.used + 1], None)


@dataclass
class Lines:
    """Lines of a block, in order.

    Parameters
    ----------
    runs : list of memoryview
        Their bytes; lines that follow each other are together.
    numbers : array of int, shape (lines,)
        Which lines of the block they are, from 0.
    nbytes : int
    starts : array of int, shape (lines,)
        Places in the block at which they begin.
    """

    runs: list[memoryview]
    numbers: NDArray[np.int64]
    nbytes: int
    starts: NDArray[np.int64]


@dataclass
class SortedBlock:
    """A block, taken apart.

    Parameters
    ----------
    lines : int
        Lines that are not blank, those too long included.
    too_long : int
        Lines among them that are left out.
    by_kind : dict of str or None to Lines
        Lines that begin as records of a kind do; None has the others.
    """

    lines: int
    too_long: int
    by_kind: dict[str | None, Lines]

    def places(self, kind: str) -> list[int]:
        """Tell where in the block the lines of a kind begin."""
        lines = self.by_kind.get(kind)
        return [] if lines is None else lines.starts.tolist()


def sort_lines(block: Block) -> SortedBlock:
    """Take a block apart."""
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
    # Lines of one kind that follow each other.
    breaks = np.flatnonzero((np.diff(codes) != 0) | (starts[1:] != stops[:-1])) + 1
    firsts = np.concatenate(([0], breaks))[: len(starts)]
    lasts = np.concatenate((breaks, [len(starts)]))[: len(starts)] - 1
    by_kind = {}
    for code in np.unique(codes):
        mine = codes[firsts] == code
        begin, end = starts[firsts[mine]], stops[lasts[mine]]
        runs = [block.data[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
        name = _NAMES[code] if code >= 0 else None
        size = int((end - begin).sum())
        these = codes == code
        by_kind[name] = Lines(runs, numbers[these], size, starts[these])
    skipped = int(long.sum()) + block.too_long
    return SortedBlock(len(blank) - int(blank.sum()) + block.too_long, skipped, by_kind)


def each_line(lines: Lines) -> Iterator[bytes]:
    """Give lines one by one, without their newlines."""
    for run in lines.runs:
        yield from bytes(run[:-1]).split(b"\n")


def selected(lines: Lines, keep: list[bool]) -> Lines:
    """Give some of the lines."""
    if all(keep):
        return lines
    kept = [
        memoryview(line + b"\n")
        for line, wanted in zip(each_line(lines), keep, strict=True)
        if wanted
    ]
    numbers = lines.numbers[np.array(keep, np.bool_)]
    return replace(lines, runs=kept, numbers=numbers, nbytes=sum(map(len, kept)))


def without_blank_lines(lines: Lines) -> Lines:
    """Leave out lines of nothing but white space."""
    return selected(lines, [bool(line.strip()) for line in each_line(lines)])


_NAMES: Final = tuple(kinds())


def _newlines(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Find the newlines; piece by piece, since what is compared then stays in the cache."""
    pieces = range(0, len(data), _PIECE_BYTES)
    found = [np.flatnonzero(data[a : a + _PIECE_BYTES] == _NEWLINE) + a for a in pieces]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _kind_codes(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.int8]:
    """Give the number of the kind that each line begins with, -1 if there is none."""
    whole = int(np.searchsorted(starts, len(data) - _HEAD_BYTES, "right"))
    if whole < len(starts):
        # Too near the end to be looked at like the others.
        first = starts[whole]
        end = np.concatenate((data[first:], np.zeros(_HEAD_BYTES, np.uint8)))
        last = _kind_codes(end, starts[whole:] - first)
        return np.concatenate((_kind_codes(data, starts[:whole]), last))
    codes = np.full(len(starts), -1, np.int8)
    if not len(starts):
        return codes
    heads = _Heads(data, starts)
    for opening in OPENINGS:
        there = heads.have(opening, 0)
        if not there.any():
            continue
        for code, name in enumerate(_NAMES):
            quoted = f'{name}"'.encode()[:_NAME_BYTES]
            codes[there & heads.have(quoted, len(opening))] = code
    return codes


class _Heads:
    """The first bytes of lines, fetched once, and compared eight at a time."""

    def __init__(self, data: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        places = len(data) - _HEAD_BYTES + 1
        everywhere = np.ndarray(places, f"V{_HEAD_BYTES}", data.data, strides=(1,))
        self._heads = everywhere[starts]

    def have(self, text: bytes, offset: int) -> NDArray[np.bool_]:
        """Tell which lines have a text at an offset."""
        there = np.ones(len(self._heads), np.bool_)
        for begin in range(0, len(text), 8):
            part = text[begin : begin + 8]
            mask = np.frombuffer((b"\xff" * len(part)).ljust(8, b"\0"), "<u8")[0]
            wanted = np.frombuffer(part.ljust(8, b"\0"), "<u8")[0]
            there &= (self._words(offset + begin) & mask) == wanted
        return there

    def _words(self, offset: int) -> NDArray[np.uint64]:
        return np.ndarray(
            len(self._heads), "<u8", self._heads.data, offset, strides=(_HEAD_BYTES,)
        )
