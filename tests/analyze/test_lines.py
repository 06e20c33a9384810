"""Content taken apart: whole lines, and lines by the kind of their record."""

import json

import pytest

from roast_analyze.open import block_reader as module
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
    """What blocks hold, where each of them ends, and how many lines were left out."""
    found = read_blocks((Piece(data, end) for data, end in pieces), anywhere)
    return [(bytes(block.data), block.end, block.too_long) for block in found]


def by_kind(text: bytes) -> dict[str | None, tuple[list[bytes], list[int]]]:
    """Lines of each kind, and which lines of the text they are."""
    found = group_lines(Block(memoryview(text), None))
    return {
        kind: (list(each_line(lines)), lines.numbers.tolist())
        for kind, lines in found.by_kind.items()
    }


# -- blocks ------------------------------------------------------------------------------


def test_a_line_may_come_in_several_pieces():
    assert blocks_of((b"one\ntw", 6), (b"o\nthree\n", 14)) == [(b"one\ntwo\nthree\n", 14, 0)]


def test_a_last_line_without_an_end_is_a_block_of_its_own_behind_the_place_to_begin_again():
    assert blocks_of((b"one\ntwo", 7)) == [(b"one\n", 4, 0), (b"two\n", None, 0)]


def test_blocks_end_with_a_line(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 6)

    assert blocks_of((b"one\ntwo\nth", 10), (b"ree\n", 14)) == [
        (b"one\ntwo\n", 8, 0),
        (b"three\n", 14, 0),
    ]


def test_in_frames_reading_can_begin_again_only_between_them(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 6)

    assert blocks_of((b"one\ntwo\nth", 5), (b"ree\n", 9), anywhere=False) == [
        (b"one\ntwo\n", None, 0),
        (b"three\n", 9, 0),
    ]


def test_what_cannot_be_begun_again_with_is_not_mixed_with_what_can():
    pieces = [(b"one\n", 5), (b"half\n", None)]

    assert blocks_of(*pieces, anywhere=False) == [(b"one\n", 5, 0), (b"half\n", None, 0)]


@pytest.mark.parametrize("cuts", [1, 3, 50])
def test_lines_beyond_the_limit_are_dropped_and_counted(monkeypatch, cuts):
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 10)
    text = b"one\n" + b"x" * 40 + b"\ntwo\n"
    pieces = [
        (text[i : i + cuts], i + len(text[i : i + cuts])) for i in range(0, len(text), cuts)
    ]

    found = [
        group_lines(block) for block in read_blocks((Piece(*p) for p in pieces), anywhere=True)
    ]

    assert sum(block.too_long for block in found) == 1
    assert sum(block.lines for block in found) == 3
    kept = [line for block in found for line in each_line(block.by_kind[None])]
    assert kept == [b"one", b"two"]


def test_the_limit_is_as_much_as_duckdb_reads():
    assert MAX_LINE_BYTES == 16 * 1024 * 1024


# -- kinds -------------------------------------------------------------------------------


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_is_told_by_the_beginning_of_a_line(kind, separators):
    line = json.dumps({"kind": kind, "t": 1.0, "x": "y" * 20}, separators=separators).encode()

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
def test_lines_that_begin_in_another_way_are_the_others(line):
    text = b"first\n" + line + b"\n"

    assert set(by_kind(text)) == {None}


def test_lines_keep_their_order_and_know_their_numbers():
    task, move = b'{"kind":"task","t":1,"n":%d}', b'{"kind":"transition","t":1,"n":%d}'
    text = b"\n".join([task % 0, move % 1, move % 2, b"?", task % 4, b""])

    assert by_kind(text) == {
        "task": ([task % 0, task % 4], [0, 4]),
        "transition": ([move % 1, move % 2], [1, 2]),
        None: ([b"?"], [3]),
    }


def test_blank_lines_are_no_lines():
    task = b'{"kind":"task","t":1,"n":1}'

    found = group_lines(Block(memoryview(b"\n\r\n" + task + b"\r\n\n" + task + b"\n"), None))

    assert found.lines == 2
    assert list(each_line(found.by_kind["task"])) == [task + b"\r", task]
    assert found.by_kind["task"].numbers.tolist() == [0, 1]


def test_an_empty_block():
    found = group_lines(Block(memoryview(b""), None, too_long=2))

    assert (found.lines, found.too_long, found.by_kind) == (2, 2, {})
