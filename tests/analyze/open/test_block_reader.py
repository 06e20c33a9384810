"""Blocks of whole lines, and lines grouped by kind."""

import json

import pytest

from roast_analyze.open import block_reader
from roast_analyze.open.block_reader import (
    MAX_LINE_BYTES,
    Block,
    each_line,
    group_lines,
    read_blocks,
)
from roast_analyze.open.decompress import Piece
from roast_schemas.records import KINDS


def blocks_of(*pieces: tuple[bytes, int | None], anywhere: bool = True) -> list[tuple]:
    found = read_blocks((Piece(data, end) for data, end in pieces), anywhere=anywhere)
    return [(bytes(block.data), block.end, block.too_long) for block in found]


def by_kind(text: bytes) -> dict[str | None, tuple[list[bytes], list[int]]]:
    """Return the lines of each kind and their numbers."""
    found = group_lines(Block(memoryview(text), None))
    return {
        kind: (list(each_line(lines)), lines.numbers.tolist())
        for kind, lines in found.by_kind.items()
    }


def test_a_line_can_come_in_several_pieces():
    assert blocks_of((b"one\ntw", 6), (b"o\nthree\n", 14)) == [(b"one\ntwo\nthree\n", 14, 0)]


def test_a_last_line_without_newline_is_a_block_of_its_own():
    assert blocks_of((b"one\ntwo", 7)) == [(b"one\n", 4, 0), (b"two\n", None, 0)]


@pytest.mark.parametrize(
    ("ends", "anywhere", "expected_end"), [((10, 14), True, 8), ((5, 14), False, None)]
)
def test_blocks_end_with_a_line(monkeypatch, ends, anywhere, expected_end):
    """Reading can continue within plain text, and between compressed frames."""
    monkeypatch.setattr(block_reader, "BLOCK_BYTES", 6)

    found = blocks_of((b"one\ntwo\nth", ends[0]), (b"ree\n", ends[1]), anywhere=anywhere)

    assert found == [(b"one\ntwo\n", expected_end, 0), (b"three\n", 14, 0)]


def test_a_piece_after_which_reading_cannot_continue_has_its_own_block():
    pieces = [(b"one\n", 5), (b"half\n", None)]

    assert blocks_of(*pieces, anywhere=False) == [(b"one\n", 5, 0), (b"half\n", None, 0)]


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
    kept = [line for block in found for line in each_line(block.by_kind[None])]
    assert kept == [b"one", b"two"]
    assert MAX_LINE_BYTES == 16 * 1024 * 1024  # the limit of DuckDB


def test_every_kind_is_recognized_by_the_start_of_a_line():
    for separators in [(",", ":"), (", ", ": ")]:
        for kind in KINDS:
            record = {"kind": kind, "t": 1.0, "x": "y" * 20}
            line = json.dumps(record, separators=separators).encode()
            assert by_kind(line + b"\n") == {kind: ([line], [0])}


def test_other_lines_have_no_kind():
    for line in [
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
    ]:
        assert set(by_kind(b"first\n" + line + b"\n")) == {None}, line


def test_lines_keep_their_order_and_numbers():
    task, move = b'{"kind":"task","t":1,"n":%d}', b'{"kind":"transition","t":1,"n":%d}'
    text = b"\n".join([task % 0, move % 1, move % 2, b"?", task % 4, b""])

    assert by_kind(text) == {
        "task": ([task % 0, task % 4], [0, 4]),
        "transition": ([move % 1, move % 2], [1, 2]),
        None: ([b"?"], [3]),
    }


def test_blank_lines_do_not_count():
    task = b'{"kind":"task","t":1,"n":1}'

    found = group_lines(Block(memoryview(b"\n\r\n" + task + b"\r\n\n" + task + b"\n"), None))

    assert found.lines == 2
    assert list(each_line(found.by_kind["task"])) == [task + b"\r", task]
    assert found.by_kind["task"].numbers.tolist() == [0, 1]


def test_an_empty_block():
    found = group_lines(Block(memoryview(b""), None, too_long=2))

    assert (found.lines, found.too_long, found.by_kind) == (2, 2, {})
