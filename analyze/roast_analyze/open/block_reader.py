"""Reading content in blocks of whole lines, and grouping the lines of a block by kind.

The recorder writes the kind first in each line. So the lines of a block are grouped by
comparing their first bytes all at once with numpy, and DuckDB then parses the lines of each
kind with only the fields of that kind. Each line is parsed once.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from roast_analyze.open.lines import MAX_LINE_BYTES, OPENINGS, parse_record
from roast_schemas.describe import kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from roast_analyze.open.decompress import Piece

#: Minimum size of a block. Larger blocks make larger row groups, and take more memory.
BLOCK_BYTES: Final = 64 * 2**20

_NEWLINE, _CARRIAGE_RETURN = b"\n\r"

#: Number of bytes of its name that identify a kind.
_NAME_BYTES: Final = 16

#: Number of bytes at the start of a line that are compared.
_HEAD_BYTES: Final = 32

#: Newlines are searched in pieces of this size, which fit into the processor's cache.
_PIECE_BYTES: Final = 2**20

_NAMES: Final = tuple(kinds())


class Block(NamedTuple):
    """Some whole lines."""

    data: memoryview
    end: int | None  # offset in the file at which reading can continue after this block
    too_long: int = 0  # number of overlong lines that were skipped since the last block


def read_blocks(pieces: Iterable[Piece], *, anywhere: bool) -> Iterator[Block]:
    """Join pieces of content into blocks of whole lines.

    An offset at which reading can continue is never inside a block. For example, a frame that
    was cut is not joined with others. If `anywhere`, reading can continue after any line, not
    only where a piece ends.
    """
    blocks = _Blocks(anywhere)
    for piece in pieces:
        if piece.end is None:
            yield from blocks.whole_lines()
        blocks.add(piece)
        if len(blocks.text) >= BLOCK_BYTES:
            yield from blocks.whole_lines()
    yield from blocks.whole_lines()
    if blocks.text:  # a last line without a newline
        blocks.text += b"\n"
        yield Block(memoryview(blocks.text), None)


class _Blocks:
    """Collects pieces of content until they are long enough for a block."""

    def __init__(self, anywhere: bool) -> None:
        self.text = bytearray()
        self._anywhere = anywhere
        self._end: int | None = None
        self._skipping = False  # within an overlong line
        self._too_long = 0

    def add(self, piece: Piece) -> None:
        data = piece.data
        self._end = piece.end
        if self._skipping:
            _, newline, data = data.partition(b"\n")
            self._skipping = not newline
        self.text += data

    def whole_lines(self) -> Iterator[Block]:
        """Yield a block of the lines that are complete, and keep the rest."""
        cut = self.text.rfind(b"\n") + 1
        rest = self.text[cut:]
        if len(rest) > MAX_LINE_BYTES:
            self._skipping = True
            self._too_long += 1
            rest.clear()
        if not cut and not self._too_long:
            return
        end = self._end
        if end is not None and (rest or self._skipping):
            end = end - len(rest) if self._anywhere and not self._skipping else None
        yield Block(memoryview(self.text)[:cut], end, self._too_long)
        # The text of the block itself must not change: it may still be loaded.
        self.text, self._too_long = rest, 0


class Lines(NamedTuple):
    """Some lines of a block, in order."""

    runs: list[memoryview]  # their bytes; adjacent lines share a run
    nbytes: int
    numbers: NDArray[np.int64]  # their numbers in the block, from 0
    starts: NDArray[np.int64]  # their offsets in the block

    def each(self) -> Iterator[bytes]:
        """Yield the lines one by one, without their newlines."""
        for run in self.runs:
            yield from bytes(run[:-1]).split(b"\n")

    def select(self, keep: list[bool]) -> Lines:
        """Return some of the lines."""
        if all(keep):
            return self
        kept = [memoryview(line + b"\n") for line in compress(self.each(), keep)]
        selected = np.array(keep, np.bool_)
        return Lines(kept, sum(map(len, kept)), self.numbers[selected], self.starts[selected])

    def parts(self, nbytes: int) -> Iterator[Lines]:
        """Yield the lines in parts of at most `nbytes`, or of one longer line."""
        if self.nbytes <= nbytes:
            yield self
            return
        lines = [line + b"\n" for line in self.each()]
        stops = np.cumsum([len(line) for line in lines])
        begin, done = 0, 0
        while begin < len(lines):
            end = max(int(np.searchsorted(stops, done + nbytes, "right")), begin + 1)
            part = slice(begin, end)
            runs = [memoryview(b"".join(lines[part]))]
            yield Lines(runs, len(runs[0]), self.numbers[part], self.starts[part])
            begin, done = end, int(stops[end - 1])


class GroupedLines(NamedTuple):
    """The lines of a block by kind."""

    lines: int  # number of lines that are not blank, including overlong ones
    too_long: int  # number of overlong lines, which are left out
    #: Lines that begin as records of a kind do; None has all others.
    by_kind: dict[str | None, Lines]


def group_lines(block: Block) -> GroupedLines:
    """Group the lines of a block by kind."""
    data = np.frombuffer(block.data, np.uint8)
    if not len(data):
        return GroupedLines(block.too_long, block.too_long, {})
    offsets = range(0, len(data), _PIECE_BYTES)
    newlines = [np.flatnonzero(data[a : a + _PIECE_BYTES] == _NEWLINE) + a for a in offsets]
    stops = np.concatenate(newlines) + 1
    starts = np.concatenate(([0], stops[:-1]))
    blank = (stops - starts == 1) | ((stops - starts == 2) & (data[starts] == _CARRIAGE_RETURN))
    if blank.any():
        starts, stops = starts[~blank], stops[~blank]
    numbers = np.arange(len(starts))
    long = stops - starts > MAX_LINE_BYTES
    if long.any():
        starts, stops, numbers = starts[~long], stops[~long], numbers[~long]
    codes = _kind_codes(data, starts)
    # The last line of a file that grows, or of a frame that was cut, may not be whole.
    if len(starts) and parse_record(bytes(block.data[starts[-1] : stops[-1]])) is None:
        codes[-1] = -1
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
            nbytes=int((end - begin).sum()),
            numbers=numbers[codes == code],
            starts=starts[codes == code],
        )
    skipped = int(long.sum()) + block.too_long
    return GroupedLines(len(blank) - int(blank.sum()) + block.too_long, skipped, by_kind)


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
