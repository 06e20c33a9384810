"""Trace files: valid after each append, for DuckDB and zstd too, and after failed writes."""

import errno
import gzip
import json
import os
import random
import stat
import subprocess
import threading

import duckdb
import pytest
import zstandard

from roast_recorder.writer import trace_file
from roast_recorder.writer.trace_file import ENDINGS, TraceFile


def lines(seed: int, count: int = 5) -> bytes:
    """Return transitions as from a scheduler: similar lines with random numbers."""
    draw = random.Random(seed)
    records = (
        {
            "kind": "transition",
            "t": 1.7e9 + seed + n / 100,
            "key": f"('read-parquet-7fd7e2c4b1f0a6d39c1e5a8b2f4d6c80', {n // 2})",
            "start": ["waiting", "processing"][n % 2],
            "stimulus_id": f"task-finished-{1.7e9 + draw.random()}",
            "worker": f"tcp://10.0.0.{draw.randrange(16)}:40331",
            "nbytes": draw.randrange(10**4),
        }
        for n in range(seed * count, (seed + 1) * count)
    )
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def unzstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()


DECOMPRESS = {".jsonl": bytes, ".zst": unzstd, ".gz": gzip.decompress}


def content(path) -> bytes:
    return DECOMPRESS[path.suffix](path.read_bytes())


@pytest.fixture(params=ENDINGS)
def path(request, tmp_path):
    return tmp_path / f"my.run{request.param}"


def test_the_file_is_valid_after_each_append(path):
    file, expected = TraceFile(path), b""

    for seed in range(60):
        file.append(lines(seed, 40))
        expected += lines(seed, 40)

        assert content(path) == expected
        assert file.nbytes == path.stat().st_size
    query = f"SELECT count(*) FROM read_json('{path}', format = 'newline_delimited')"
    assert duckdb.sql(query).fetchall() == [(2400,)]
    if path.suffix == ".zst":
        tool = subprocess.run(["zstd", "-dc", path], capture_output=True)
        assert (tool.stdout, tool.stderr) == (expected, b"")


def test_small_appends_compress_as_well_as_a_large_one(tmp_path):
    flushes = [lines(seed, 40) for seed in range(100)]

    small, large = TraceFile(tmp_path / "small.jsonl.zst"), TraceFile(tmp_path / "l.jsonl.zst")
    for flush in flushes:
        small.append(flush)
    large.append(b"".join(flushes))

    assert small.nbytes <= 1.15 * large.nbytes
    assert small.nbytes < 0.85 * sum(len(zstandard.compress(flush, 6)) for flush in flushes)


@pytest.mark.parametrize(
    ("appends", "frames"),
    [
        ([1], 1),
        ([50, 50], 1),  # the first append is shorter than FRAME_BYTES
        ([100, 1], 2),
        ([1, 250, 1], 2),
        ([250], 1),
        ([801], 2),  # one more than PIECE_BYTES
        ([50, 1650, 1], 3),  # 50 + 800, 800, 50 + 1
    ],
)
def test_frames(tmp_path, monkeypatch, appends, frames):
    monkeypatch.setattr(trace_file, "FRAME_BYTES", 100)
    monkeypatch.setattr(trace_file, "PIECE_BYTES", 800)
    file = TraceFile(tmp_path / "trace.jsonl.zst")

    for nbytes in appends:
        file.append(b"\n" * nbytes)

    data = file.path.read_bytes()
    assert data.count(zstandard.FRAME_HEADER) == frames
    assert len(unzstd(data)) == sum(appends)


def test_a_large_append_is_split_between_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "FRAME_BYTES", 1000)
    monkeypatch.setattr(trace_file, "PIECE_BYTES", 1000)
    file = TraceFile(tmp_path / "trace.jsonl.zst")

    file.append(lines(0, 40))

    frames = file.path.read_bytes().split(zstandard.FRAME_HEADER)[1:]
    assert len(frames) > 5
    for frame in frames:
        assert unzstd(zstandard.FRAME_HEADER + frame).endswith(b"}\n")


def test_a_failed_append_changes_nothing(path, monkeypatch):
    write, room = os.pwrite, [10**6]

    def pwrite(descriptor, data, offset):
        if len(data) > 3 and not room[0]:  # restoring the end of a frame needs no space
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data if len(data) <= 3 else data[: room[0]], offset)
        room[0] -= written
        return written

    monkeypatch.setattr(os, "pwrite", pwrite)
    file = TraceFile(path)
    file.append(lines(1))
    file.append(lines(2))
    before = path.read_bytes()

    room[0] = 10
    with pytest.raises(OSError, match="No space"):
        file.append(lines(3))

    assert path.read_bytes() == before
    assert file.nbytes == len(before)
    room[0] = 10**6
    file.append(lines(4))
    assert content(path) == lines(1) + lines(2) + lines(4)


def test_a_file_that_cannot_be_truncated_is_truncated_by_the_next_append(path, monkeypatch):
    file = TraceFile(path)
    file.append(lines(1))

    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", refuse)
        broken.setattr(os, "pwrite", refuse)
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output"):
                file.append(lines(2))

    file.append(lines(3))
    assert content(path) == lines(1) + lines(3)


@pytest.mark.parametrize("torn", [b"", b"t", b"torn in the middle of a block"])
def test_another_writer_resumes_a_file(path, torn):
    killed = TraceFile(path)
    killed.append(lines(1))
    nbytes = killed.nbytes
    del killed
    end_nbytes = 3 if path.suffix == ".zst" else 0  # overwritten by the torn append
    with path.open("r+b") as file:
        file.seek(nbytes - end_nbytes)
        file.write(torn)

    file = TraceFile(path, resume_nbytes=nbytes)

    assert content(path) == lines(1)
    file.append(lines(3))
    assert content(path) == lines(1) + lines(3)


def test_a_file_that_became_shorter_is_not_resumed(path):
    path.write_bytes(b"{}\n")

    with pytest.raises(ValueError, match=r"has 3 bytes, but 100 were written"):
        TraceFile(path, resume_nbytes=100)


def test_an_older_trace_is_replaced_by_the_first_append(path):
    older = b"an older trace\n" * 1000
    path.write_bytes(older)
    path.chmod(0o644)

    file = TraceFile(path)
    file.append(b"")
    assert path.read_bytes() == older

    file.append(lines(1))
    assert content(path) == lines(1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_empty_file_is_private_locked_and_removed_at_the_end(path):
    file = TraceFile(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(ValueError, match="is being recorded to; stop that recording"):
        TraceFile(path)

    file.close()
    file.close()

    assert not path.exists()
    TraceFile(path)


def test_a_fifo_receives_complete_frames(path):
    os.mkfifo(path)
    received = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()

    file = TraceFile(path)
    file.append(lines(1))
    file.append(lines(2))
    file.close()
    reader.join()

    assert DECOMPRESS[path.suffix](received[0]) == lines(1) + lines(2)
    assert path.is_fifo()
