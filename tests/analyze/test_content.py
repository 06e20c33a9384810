"""What is kept of a damaged file; how it comes out as a trace is in test_load.py."""

import gzip

import pytest
import zstandard

from roast_analyze.open import decompress as content
from roast_analyze.open.damage import Damage
from roast_analyze.open.decompress import Content, detect_compression

COMPRESS = {
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "gzip": gzip.compress,
}


@pytest.fixture(params=["zstd", "gzip"])
def compress(request):
    return COMPRESS[request.param]


@pytest.fixture
def read(tmp_path):
    """Read some bytes; gives the pieces as (data, end) and the damage."""

    def read(
        held: bytes, start: int = 0, stop: int | None = None
    ) -> tuple[list[tuple[bytes, int | None]], list[Damage]]:
        (tmp_path / "file").write_bytes(held)
        with (tmp_path / "file").open("rb") as file:
            compression = detect_compression(file)
            found = Content(file, compression, start, len(held) if stop is None else stop)
            pieces = [(bytes(piece.data), piece.end) for piece in found]
        return pieces, list(found.breaks.damage())

    return read


@pytest.mark.parametrize(
    ("held", "name"),
    [
        (zstandard.compress(b"x"), "zstd"),
        (gzip.compress(b"x", mtime=0), "gzip"),
        (b'{"kind"', "uncompressed"),
        (b"", "uncompressed"),
    ],
)
def test_compression_is_told_by_the_first_bytes(tmp_path, held, name):
    (tmp_path / "file").write_bytes(held)

    with (tmp_path / "file").open("rb") as file:
        assert detect_compression(file) == name


def test_a_frame_is_a_piece_and_reading_can_begin_again_behind_all_but_the_last(read, compress):
    one, two = compress(b"one\n"), compress(b"two\nthree\n")

    assert read(one + two) == (
        [(b"one\n", len(one)), (b"two\nthree\n", None)],
        [],
    )
    assert read(one + two, start=len(one)) == ([(b"two\nthree\n", None)], [])


def test_nothing_behind_the_size_that_it_had_is_read(read, compress):
    one, two = compress(b"one\n"), compress(b"two\n")

    assert read(one + two, stop=len(one)) == ([(b"one\n", None)], [])
    assert read(b"one\ntwo\n", stop=4) == ([(b"one\n", 4)], [])


def test_a_damaged_frame_costs_no_other(read, compress):
    one, two, three = (compress(text) for text in (b"one\n", b"two\n", b"three\n"))
    broken = two[:-4] + bytes(byte ^ 0xFF for byte in two[-4:])

    (first, *_, last), damage = read(one + broken + three)

    assert (first[0], last[0]) == (b"one\n", b"three\n")
    assert damage == [
        Damage("damaged compression", None, f"once at byte {len(one)} of the compressed file")
    ]


def test_what_comes_out_of_a_damaged_frame_ends_its_line_and_is_no_place_to_begin(
    read, compress
):
    cut = compress(b"a long line that has no end")[:-9]

    pieces, _ = read(compress(b"one\n") + cut + compress(b"three\n"))

    (half, end) = pieces[1]
    assert half.endswith(b"\n")
    assert end is None


def test_damage_is_counted(read, compress):
    two = compress(b"two\n")
    broken = two[:-4] + bytes(byte ^ 0xFF for byte in two[-4:])

    _, [damage] = read(broken + compress(b"one\n") + broken)

    assert damage.detail == "2 times, first at byte 0 of the compressed file"


def test_a_cut_is_where_the_file_ends(read, compress):
    held = compress(b"one\n") + compress(b"two\n")[:-1]

    pieces, [damage] = read(held)

    assert pieces[0][0] == b"one\n"
    assert damage.detail == f"cut off at byte {len(held)} of the compressed file"


def test_a_large_frame_comes_in_pieces(monkeypatch, read, compress):
    monkeypatch.setattr(content, "_FRAME_BYTES", 1000)
    text = bytes(range(256)) * 5000

    frame = compress(text)

    pieces, damage = read(frame + compress(b"end"))

    assert b"".join(data for data, _ in pieces) == text + b"end"
    assert len(pieces) > 2
    assert [end for _, end in pieces if end is not None] == [len(frame)]
    assert damage == []


def test_the_beginning_of_a_frame_is_found_across_two_reads(monkeypatch, read):
    monkeypatch.setattr(content, "_PLAIN_BYTES", 7)
    broken = zstandard.compress(b"one\n")[:-1] + b"\xff"
    for filling in range(9):
        held = broken + b"\0" * filling + zstandard.compress(b"two\n")

        pieces, _ = read(held)

        assert pieces[-1] == (b"two\n", None)


def test_a_byte_order_mark_is_no_part_of_the_first_line(read):
    assert read(b"\xef\xbb\xbfone\n") == ([(b"one\n", 7)], [])
