"""What is kept of a damaged file; how it comes out as a trace is in test_load.py."""

import gzip

import pytest
import zstandard

from roast_analyze.damage import Damage
from roast_analyze.salvage import MAX_LINE_BYTES, compression_of, salvage

COMPRESS = {
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "gzip": gzip.compress,
}


@pytest.fixture(params=["zstd", "gzip"])
def compress(request):
    return COMPRESS[request.param]


@pytest.fixture
def rescued(tmp_path):
    """Salvage some bytes; gives what was kept and the damage."""

    def rescued(content: bytes) -> tuple[bytes, list[Damage]]:
        (tmp_path / "damaged").write_bytes(content)
        damage = salvage(tmp_path / "damaged", tmp_path / "copy")
        return (tmp_path / "copy").read_bytes(), damage

    return rescued


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (zstandard.compress(b"x"), "zstd"),
        (gzip.compress(b"x"), "gzip"),
        (b'{"kind"', "uncompressed"),
        (b"", "uncompressed"),
    ],
)
def test_compression_is_told_by_the_first_bytes(tmp_path, content, name):
    (tmp_path / "file").write_bytes(content)

    assert compression_of(tmp_path / "file") == name


def test_whole_frames_are_kept(rescued, compress):
    assert rescued(compress(b"one\n") + compress(b"two\nthree\n")) == (b"one\ntwo\nthree\n", [])


def test_a_damaged_frame_costs_no_other(rescued, compress):
    one, two, three = (compress(text) for text in (b"one\n", b"two\n", b"three\n"))
    broken = two[:-4] + bytes(byte ^ 0xFF for byte in two[-4:])

    kept, damage = rescued(one + broken + three)

    assert kept.splitlines()[0] == b"one"
    assert kept.splitlines()[-1] == b"three"
    detail = f"once at byte {len(one)} of the compressed file"
    assert damage == [Damage("damaged compression", None, detail)]


def test_a_line_that_is_cut_by_damage_does_not_swallow_the_next(rescued, compress):
    cut = compress(b"a long line that has no end")[:-9]

    kept, _ = rescued(compress(b"one\n") + cut + compress(b"three\n"))

    assert kept.splitlines()[-1] == b"three"


def test_damage_is_counted(rescued, compress):
    two = compress(b"two\n")
    broken = two[:-4] + bytes(byte ^ 0xFF for byte in two[-4:])

    _, [damage] = rescued(broken + compress(b"one\n") + broken)

    assert damage.detail == "2 times, first at byte 0 of the compressed file"


def test_a_cut_is_where_the_file_ends(rescued, compress):
    content = compress(b"one\n") + compress(b"two\n")[:-1]

    kept, [damage] = rescued(content)

    assert kept.startswith(b"one\n")
    assert damage.detail == f"cut off at byte {len(content)} of the compressed file"


def test_blank_lines_go_and_a_last_line_without_an_end_stays(rescued):
    assert rescued(b"one\n\n\ntwo") == (b"one\ntwo\n", [])


@pytest.mark.parametrize(("extra", "too_long"), [(0, 0), (1, 1), (3_000_000, 1)])
def test_lines_beyond_the_limit_are_dropped_and_counted(rescued, extra, too_long):
    kept, damage = rescued(b"one\n" + b"x" * (MAX_LINE_BYTES + extra) + b"\ntwo\n")

    assert kept.startswith(b"one\n")
    assert kept.endswith(b"\ntwo\n")
    assert len(kept) == (8 if too_long else MAX_LINE_BYTES + 9)
    assert [found.records for found in damage] == [too_long] * too_long


def test_a_byte_order_mark_is_no_part_of_the_first_line(rescued):
    assert rescued(b"\xef\xbb\xbfone\n") == (b"one\n", [])
