"""Decompression of damaged, cut and growing files."""

import contextlib
import gzip
import os
import subprocess
import sys

import pytest
import xxhash
import zstandard

from roast_analyze.open import decompress
from roast_analyze.open.decompress import Content, detect_compression, open_for_content
from roast_recorder.writer.trace_file import TraceFile


@pytest.fixture(params=["zstd", "gzip"])
def compress(request):
    zstd = zstandard.ZstdCompressor(write_checksum=True).compress
    return gzip.compress if request.param == "gzip" else zstd


@pytest.fixture
def read(tmp_path):
    """Return the pieces of some bytes as (data, end), and the details of their damage."""

    def read(content: bytes, start: int = 0, stop: int | None = None):
        (tmp_path / "file").write_bytes(content)
        with open_for_content(tmp_path / "file") as file:
            stop = len(content) if stop is None else stop
            found = Content(file, detect_compression(file, ""), start, stop)
            return list(found), [damage.detail for damage in found.breaks.damage()]

    return read


@pytest.mark.parametrize(
    ("content", "suffix", "name"),
    [
        (zstandard.compress(b"x"), ".gz", "zstd"),
        (gzip.compress(b"x", mtime=0), ".zst", "gzip"),
        (b'{"kind"', ".zst", "uncompressed"),
        (b"", ".zst", "uncompressed"),
        # A file that was cut within its first bytes.
        (b"\x28\xb5\x2f", ".zst", "zstd"),
        (b"\x1f", ".gz", "gzip"),
        (b"\x1f", ".zst", "uncompressed"),
    ],
)
def test_compression_is_detected_by_the_first_bytes(tmp_path, content, suffix, name):
    (tmp_path / "file").write_bytes(content)
    with open_for_content(tmp_path / "file") as file:
        assert detect_compression(file, suffix) == name


def test_reading_can_continue_after_every_frame_but_the_last(read, compress):
    one, two = compress(b"one\n"), compress(b"two\n")

    assert read(one + two) == ([(b"one\n", len(one)), (b"two\n", None)], [])
    assert read(one + two, start=len(one)) == ([(b"two\n", None)], [])
    assert read(one + two, stop=len(one)) == ([(b"one\n", None)], [])


def test_plain_text(read):
    assert read(b"one\ntwo\n", stop=4) == ([(b"one\n", 4)], [])
    assert read(b"\xef\xbb\xbfone\n") == ([(b"one\n", 7)], [])  # a byte order mark


def test_frames_around_a_damaged_one_are_read(read, compress):
    one, two, three = (compress(text) for text in (b"one\n", b"two\n", b"three\n"))
    broken = two[:-4] + bytes(byte ^ 0xFF for byte in two[-4:])

    (first, *_, last), damage = read(one + broken + three)
    assert (first[0], last[0]) == (b"one\n", b"three\n")
    assert damage == [f"once at byte {len(one)} of the compressed file"]
    _, damage = read(broken + one + broken)
    assert damage == ["2 times, first at byte 0 of the compressed file"]


def test_cut_frames(read, compress):
    one, two = compress(b"one\n"), compress(b"a long line that has no end")

    _, damage = read(one + two[:-1])
    assert damage == [f"cut off at byte {len(one + two) - 1} of the compressed file"]
    # The next line must not be joined to a part of this one.
    (_, (text, end), *_), _ = read(one + two[:-9] + one)
    assert (text[-1:], end) == (b"\n", None)


def test_a_frame_that_a_recorder_extends_meanwhile_is_not_damaged(tmp_path):
    path = tmp_path / "trace.jsonl.zst"
    with contextlib.closing(TraceFile(path)) as trace:
        trace.append(b"one\n")
        with open_for_content(path) as file:
            content = Content(file, "zstd", 0, path.stat().st_size)
            trace.append(b"two\n")

            assert b"".join(data for data, _ in content).split() == [b"one"]
            assert list(content.breaks.damage()) == []


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


def test_the_digest_is_of_all_bytes_and_missing_if_some_were_not_read(tmp_path, compress):
    one, two = compress(b"one\n"), compress(b"two\n")
    path = tmp_path / "file"

    def digest(content: bytes, start: int = 0, stop: int | None = None):
        path.write_bytes(content)
        with open_for_content(path) as file:
            stop = len(content) if stop is None else stop
            found = Content(file, detect_compression(file, ""), start, stop)
            list(found)
            return found.digest

    for whole in (b"\xef\xbb\xbfone\ntwo\n", one + two, one + two[:-1]):
        assert digest(whole) == xxhash.xxh3_128_hexdigest(whole)
    assert digest(one + two, stop=len(one)) == xxhash.xxh3_128_hexdigest(one)
    assert digest(one + two, start=len(one)) is None
    assert digest(one[:-1] + b"\xff" + two) is None  # damage is skipped
    assert digest(one, stop=len(one) + 1) is None  # the file was truncated


@pytest.mark.parametrize("compression", ["zstd", "gzip"])
def test_a_frame_that_expands_a_thousandfold_is_read_in_parts(tmp_path, compression):
    """200 MB of zeros: no piece has more than the content of a frame and of a step."""
    block = bytes(10_000_000)
    path = tmp_path / "bomb"
    opener = gzip.open if compression == "gzip" else zstandard.open
    with opener(path, "wb") as file:
        for _ in range(20):
            file.write(block)

    with open_for_content(path) as file:
        content = Content(file, compression, 0, path.stat().st_size)
        sizes = [len(piece.data) for piece in content]

    assert sum(sizes) == 200_000_000
    assert max(sizes) <= 2 * 64 * 2**20


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("beginning", "end", "code"),
    [
        (b"", b"", 2),  # nothing but zeros
        (b'{"kind":"event","t":1.0,"topic":"', b'"}\n', 2),  # a record of 4 GiB
    ],
)
def test_a_file_that_expands_to_4_gib_is_read_within_2_gib(tmp_path, beginning, end, code):
    compress = zstandard.ZstdCompressor().compress
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    parts = [compressor.compress(beginning)]
    parts += [compressor.compress(b"x" * 2**24) for _ in range(2**8)]
    parts += [compressor.compress(end), compressor.flush()]
    path = tmp_path / "trace.jsonl.zst"
    path.write_bytes(b"".join(parts) + compress(b"\n"))
    command = [sys.executable, "-m", "roast_analyze", "check", str(path), "--no-cache"]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        error = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)

    assert process.returncode == code
    assert error.count("\n") == 1
    assert "contains no records" in error
    assert usage.ru_maxrss < 2**21  # KiB


def test_a_file_whose_only_member_is_damaged_is_not_empty(tmp_path, analyze, compress):
    content = bytearray(compress(b'{"kind":"event","t":1.0,"topic":"x"}\n' * 50))
    content[12:16] = b"\xff" * 4
    path = tmp_path / "trace.jsonl.zst"
    path.write_bytes(content)

    message = "cannot be decompressed: name a trace recorded by roast"
    assert analyze("check", path) == (2, "", f"roast-analyze: {str(path)!r} {message}\n")
