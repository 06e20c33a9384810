"""Blocks of whole lines, and lines grouped by kind."""

import json

import pytest

from roast_analyze.open import block_reader
from roast_analyze.open.block_reader import MAX_LINE_BYTES, Block, group_lines, read_blocks
from roast_analyze.open.decompress import Piece
from roast_schemas.records import KINDS

TASK = b'{"kind":"task","t":1,"n":%d}'
MOVE = b'{"kind":"transition","t":1,"n":%d}'


def by_kind(text: bytes) -> dict[str | None, tuple[list[bytes], list[int]]]:
    """Return the lines of each kind and their numbers."""
    found = group_lines(Block(memoryview(text), None))
    return {
        kind: (list(lines.each()), lines.numbers.tolist())
        for kind, lines in found.by_kind.items()
    }


@pytest.mark.parametrize(
    ("pieces", "anywhere", "expected"),
    [
        # A line can come in several pieces.
        ([(b"one\ntw", 6), (b"o\n3\n", 10)], True, [(b"one\ntwo\n3\n", 10)]),
        # A last line without a newline is a block of its own.
        ([(b"one\ntwo", 7)], True, [(b"one\n", 4), (b"two\n", None)]),
        # Blocks of 12 bytes end with a line. Reading can continue there in plain text, but in
        # a compressed file only between frames.
        (
            [(b"one\ntwo 2\nth", 12), (b"3\n", 14)],
            True,
            [(b"one\ntwo 2\n", 10), (b"th3\n", 14)],
        ),
        (
            [(b"one\ntwo 2\nth", 12), (b"3\n", 14)],
            False,
            [(b"one\ntwo 2\n", None), (b"th3\n", 14)],
        ),
        # Reading cannot continue after a cut frame.
        ([(b"one\n", 5), (b"half\n", None)], False, [(b"one\n", 5), (b"half\n", None)]),
    ],
)
def test_blocks(monkeypatch, pieces, anywhere, expected):
    monkeypatch.setattr(block_reader, "BLOCK_BYTES", 12)

    found = list(read_blocks((Piece(*piece) for piece in pieces), anywhere=anywhere))

    assert [(bytes(data), end) for data, end, _ in found] == expected


@pytest.mark.parametrize("size", [1, 3, 50])
def test_overlong_lines_are_skipped_and_counted(monkeypatch, size):
    monkeypatch.setattr(block_reader, "MAX_LINE_BYTES", 10)
    text = b"one\n" + b"x" * 40 + b"\ntwo\n"
    pieces = [
        Piece(text[i : i + size], min(i + size, len(text))) for i in range(0, len(text), size)
    ]

    found = [group_lines(block) for block in read_blocks(pieces, anywhere=True)]

    assert sum(block.too_long for block in found) == 1
    assert sum(block.lines for block in found) == 3
    kept = [line for block in found for line in block.by_kind[None].each()]
    assert kept == [b"one", b"two"]
    assert MAX_LINE_BYTES == 16 * 1024 * 1024  # the limit of DuckDB


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_every_kind_is_recognized_by_the_start_of_a_line(separators):
    for kind in KINDS:
        record = {"kind": kind, "t": 1.0, "x": "y" * 20}
        line = json.dumps(record, separators=separators).encode()
        assert by_kind(line + b"\n") == {kind: ([line], [0])}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"x",
        b'{"kind":"task',
        b'{"kind":"tas","t":1}',
        b'{"kind":"tasks","t":1}',
        b'{"t":1,"kind":"task"}',
        b' {"kind":"task","t":1}',
        b'{"kind":task,"t":1}                    ',
        b'{"kind" :"task","t":1,"key":"abcdefghij"}',
        b"\0" * 40,
    ],
)
def test_other_lines_have_no_kind(line):
    assert set(by_kind(b"first\n" + line + b"\n")) == {None}


def test_lines_keep_their_order_and_numbers():
    text = b"\n".join([TASK % 0, MOVE % 1, MOVE % 2, b"?", TASK % 4, b""])

    assert by_kind(text) == {
        "task": ([TASK % 0, TASK % 4], [0, 4]),
        "transition": ([MOVE % 1, MOVE % 2], [1, 2]),
        None: ([b"?"], [3]),
    }


def test_blank_lines_do_not_count():
    text = b"\n\r\n" + TASK % 0 + b"\r\n\n" + TASK % 1 + b"\n"

    assert by_kind(text) == {"task": ([TASK % 0 + b"\r", TASK % 1], [0, 1])}
    assert group_lines(Block(memoryview(text), None)).lines == 2
    assert group_lines(Block(memoryview(b""), None, too_long=2)) == (2, 2, {})
