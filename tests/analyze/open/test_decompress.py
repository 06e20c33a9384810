"""Decompression of damaged, cut and growing files."""

import gzip

import pytest
import zstandard

from roast_analyze.open import decompress
from roast_analyze.open.decompress import Content, detect_compression


@pytest.fixture(params=["zstd", "gzip"])
def compress(request):
    if request.param == "gzip":
        return gzip.compress
    return zstandard.ZstdCompressor(write_checksum=True).compress


@pytest.fixture
def read(tmp_path):
    """Return the pieces of some bytes as (data, end), and the details of their damage."""

    def read(content: bytes, start: int = 0, stop: int | None = None):
        (tmp_path / "file").write_bytes(content)
        with (tmp_path / "file").open("rb") as file:
            stop = len(content) if stop is None else stop
            found = Content(file, detect_compression(file, ""), start, stop)
            pieces = [(bytes(piece.data), piece.end) for piece in found]
        return pieces, [damage.detail for damage in found.breaks.damage()]

    return read


def broken(frame: bytes) -> bytes:
    return frame[:-4] + bytes(byte ^ 0xFF for byte in frame[-4:])


def test_compression_is_detected_by_the_first_bytes(tmp_path):
    for content, suffix, name in [
        (zstandard.compress(b"x"), ".gz", "zstd"),
        (gzip.compress(b"x"), ".zst", "gzip"),
        (b'{"kind"', ".zst", "uncompressed"),
        (b"", ".zst", "uncompressed"),
        # A file that was cut within its first bytes
        (b"\x28\xb5\x2f", ".zst", "zstd"),
        (b"\x1f", ".gz", "gzip"),
        (b"\x1f", ".zst", "uncompressed"),
    ]:
        (tmp_path / "file").write_bytes(content)
        with (tmp_path / "file").open("rb") as file:
            assert detect_compression(file, suffix) == name, content


def test_reading_can_continue_after_every_frame_but_the_last(read, compress):
    one, two = compress(b"one\n"), compress(b"two\nthree\n")

    assert read(one + two) == ([(b"one\n", len(one)), (b"two\nthree\n", None)], [])
    assert read(one + two, start=len(one)) == ([(b"two\nthree\n", None)], [])


def test_nothing_after_stop_is_read(read, compress):
    one, two = compress(b"one\n"), compress(b"two\n")

    assert read(one + two, stop=len(one)) == ([(b"one\n", None)], [])
    assert read(b"one\ntwo\n", stop=4) == ([(b"one\n", 4)], [])


def test_frames_around_a_damaged_one_are_read(read, compress):
    one, two, three = (compress(text) for text in (b"one\n", b"two\n", b"three\n"))

    (first, *_, last), damage = read(one + broken(two) + three)

    assert (first[0], last[0]) == (b"one\n", b"three\n")
    assert damage == [f"once at byte {len(one)} of the compressed file"]
    assert read(broken(two) + one + broken(two))[1] == [
        "2 times, first at byte 0 of the compressed file"
    ]


def test_the_output_of_a_damaged_frame_ends_with_a_newline(read, compress):
    cut = compress(b"a long line that has no end")[:-9]

    pieces, _ = read(compress(b"one\n") + cut + compress(b"three\n"))

    (text, end) = pieces[1]
    assert text.endswith(b"\n")
    assert end is None


def test_a_file_that_was_cut_in_its_last_frame(read, compress):
    content = compress(b"one\n") + compress(b"two\n")[:-1]

    pieces, damage = read(content)

    assert pieces[0][0] == b"one\n"
    assert damage == [f"cut off at byte {len(content)} of the compressed file"]


def test_a_large_frame_is_yielded_in_pieces(monkeypatch, read, compress):
    monkeypatch.setattr(decompress, "_FRAME_BYTES", 1000)
    text = bytes(range(256)) * 5000
    frame = compress(text)

    pieces, damage = read(frame + compress(b"end"))

    assert b"".join(data for data, _ in pieces) == text + b"end"
    assert len(pieces) > 2
    assert [end for _, end in pieces if end is not None] == [len(frame)]
    assert damage == []


def test_the_start_of_a_frame_is_found_across_two_reads(monkeypatch, read):
    monkeypatch.setattr(decompress, "_PLAIN_BYTES", 7)
    for filling in range(9):
        content = zstandard.compress(b"one\n")[:-1] + b"\xff" + b"\0" * filling

        pieces, _ = read(content + zstandard.compress(b"two\n"))

        assert pieces[-1] == (b"two\n", None)


def test_a_byte_order_mark_is_skipped(read):
    assert read(b"\xef\xbb\xbfone\n") == ([(b"one\n", 7)], [])
